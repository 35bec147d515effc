"""The sizes report: what DESIGN section 7 asks for, over ``src``. Prints a table; exits 1 over a hard limit.

Run it as ``python tests/sizes.py [DIRECTORY]``. A function's length is from its ``def`` to its last line,
less its docstring; nested functions count for themselves too.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FUNCTION_LINES = 40
FILE_LINES = 400
PARAMETERS = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Size(NamedTuple):
    where: str
    size: int


def main(root: Path) -> int:
    files, functions, parameters = measure(root)
    rows = (
        ("function lines", functions, FUNCTION_LINES),
        ("file lines", files, FILE_LINES),
        ("parameters", parameters, PARAMETERS),
    )
    print(f"{'sizes':<16}{'median':>8}{'p90':>8}{'max':>8}{'limit':>8}")
    for name, sizes, limit in rows:
        found = [size.size for size in sizes]
        print(f"{name:<16}{_at(found, 50):>8}{_at(found, 90):>8}{max(found, default=0):>8}{limit:>8}")
    over = [(name, size, limit) for name, sizes, limit in rows for size in sizes if size.size > limit]
    for name, size, limit in over:
        print(f"{size.where}: {size.size} {name}, more than {limit}", file=sys.stderr)
    twice = namesakes(Path(__file__).parent)
    for name in twice:
        print(f"{name}: two files of tests have this name, and pytest takes one of them", file=sys.stderr)
    return 1 if over or twice else 0


def namesakes(tests: Path) -> list[str]:
    """Names of test files that stand in more than one folder."""
    names = Counter(path.name for path in tests.rglob("test_*.py"))
    return sorted(name for name, count in names.items() if count > 1)


def measure(root: Path) -> tuple[list[Size], list[Size], list[Size]]:
    """Lines of files, lines of functions, parameters of functions."""
    files: list[Size] = []
    functions: list[Size] = []
    parameters: list[Size] = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        files.append(Size(str(path), text.count("\n")))
        for function, in_class in _functions(ast.parse(text), in_class=False):
            where = f"{path}:{function.lineno} {function.name}"
            functions.append(Size(where, _lines(function)))
            parameters.append(Size(where, _parameters(function, in_class=in_class)))
    return files, functions, parameters


def _functions(node: ast.AST, *, in_class: bool) -> Iterator[tuple[Function, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child, in_class
            yield from _functions(child, in_class=False)
        else:
            yield from _functions(child, in_class=isinstance(child, ast.ClassDef))


def _lines(function: Function) -> int:
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def _parameters(function: Function, *, in_class: bool) -> int:
    names = function.args
    count = len(names.posonlyargs) + len(names.args) + len(names.kwonlyargs)
    static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in function.decorator_list)
    return count - (1 if in_class and not static else 0)


def _at(values: list[int], percent: int) -> int:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, len(ranked) * percent // 100)] if ranked else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("src")))
