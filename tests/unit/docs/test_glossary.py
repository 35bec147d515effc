"""One word for one thing: what the glossary's right column says is not in the public names of the product."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "glossary.md"

FORBIDDEN = (
    "ack", "allowance", "backpressure", "dequeue", "destination", "dispatcher", "dlq", "endpoint", "enqueue",
    "nack", "redrive", "rescue", "throttle",
)  # fmt: skip
"""Those of them that mean one thing only. ``task``, ``max`` or ``lock`` are also words of the language,
``account`` and ``channel`` also those of an operating system and of PostgreSQL."""


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def public_names(path: Path) -> Iterator[str]:
    """Names of modules, and of what they define: functions, classes, their members, parameters, constants."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name


def words(name: str) -> set[str]:
    """The words of a name, in small letters: ``DeadLetter`` and ``dead_letter`` are both dead and letter."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_every_row_has_a_word_and_what_it_is() -> None:
    for row in rows():
        assert len(row) == 3, row
        assert row[0], row
        assert row[1], row


def test_no_word_stands_twice() -> None:
    found = [word.strip() for row in rows() for word in re.sub(r"\(.*?\)", "", row[0]).split(",")]
    assert [word for word in found if found.count(word) > 1] == []


@pytest.mark.parametrize("word", FORBIDDEN)
def test_a_forbidden_word_stands_in_the_glossary_beside_ours(word: str) -> None:
    assert any(word in row[2].lower() for row in rows())


def test_no_public_name_has_a_forbidden_word() -> None:
    found = []
    for path in sorted((ROOT / "src" / "tenantry").rglob("*.py")):
        module = str(path.relative_to(ROOT / "src"))
        for name in public_names(path):
            if not name.startswith("_") and words(name) & set(FORBIDDEN):
                found.append(f"{module}: {name}")
    assert found == []
