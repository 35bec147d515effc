"""docs/invariants.md names, for every law and case, tests that exist."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "invariants.md"
LAWS = [f"F{n}" for n in range(1, 9)] + [f"K{n}" for n in range(1, 6)] + ["I1", "I2"]
CASES = [f"Q{n}" for n in range(1, 21)] + [f"P{n}" for n in range(1, 5)] + [f"L{n}" for n in range(1, 10)]
CASES += [f"S{n}" for n in range(1, 11)] + [f"R{n}" for n in range(1, 11)]
CASES += [f"D{n}" for n in range(1, 10)]

HOMES = "(QueueStore|Scheduling|ReplayStore)"
"""The suites that stores run."""

Named = list[tuple[str, str]]


def sections() -> Mapping[str, Named]:
    """For each heading's first word the (file, test) pairs under it."""
    found: dict[str, Named] = {}
    for part in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        named: Named = []
        for bullet in re.split(r"^- ", part, flags=re.M)[1:]:
            path, *tests = re.findall(r"`([^`]+)`", re.split(r"\n\n", bullet)[0])
            named += [(path, test) for test in tests]
        found[part.split()[0]] = named
    return found


def names_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_law_and_case_has_a_section_in_order_and_there_is_no_other() -> None:
    assert list(sections()) == [*LAWS, *CASES]


@pytest.mark.parametrize("law", [*LAWS, *CASES])
def test_every_law_and_case_names_tests_and_each_of_them_exists(law: str) -> None:
    named = sections()[law]
    assert named, f"{law} has no test"
    for path, test in named:
        assert test in names_in(path), f"{law}: {path} has no {test}"


def test_a_suite_that_is_named_is_run() -> None:
    """A test in a suite counts only because a file of tests derives from the suite."""
    suites = {
        Path(path).stem for named in sections().values() for path, _ in named if path.startswith("src/")
    }
    for suite in suites:
        text = (ROOT / "src/tenantry/testing/conformance" / f"{suite}.py").read_text(encoding="utf-8")
        (name,) = re.findall(r"^class (\w+Conformance)", text, flags=re.M)
        homes = [
            p.read_text(encoding="utf-8") for p in (ROOT / "src/tenantry/testing/conformance").glob("*.py")
        ]
        assert any(
            re.search(rf"^class {HOMES}Conformance\([^)]*\b{name}\b", home, flags=re.M | re.S)
            for home in homes
        ), f"{name} is in no suite that a store runs"
