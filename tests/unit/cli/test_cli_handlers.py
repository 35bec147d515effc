"""Handlers are found by the names that the command line gives."""

from pathlib import Path

import pytest

from tenantry.cli.handlers import loaded_handlers, with_print
from tenantry.config.model import TargetSettings
from tenantry.kernel.errors import InvalidValue, UsageError
from tenantry.testing.jobs import claimed_job


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


MODULE = """
from tenantry.delivery.handlers import Handlers
{name} = Handlers()
@{name}.register("greet")
def greet(job): pass
"""


def test_a_module_in_the_current_directory_is_found(here: Path) -> None:
    (here / "found_here.py").write_text(MODULE.format(name="handlers"))
    found = loaded_handlers(["found_here"])
    assert found is not None
    assert found.kinds == {"handler:greet"}


def test_another_name_than_handlers_can_be_given(here: Path) -> None:
    (here / "other_name.py").write_text(MODULE.format(name="mine"))
    found = loaded_handlers(["other_name:mine"])
    assert found is not None
    assert found.kinds == {"handler:greet"}


def test_no_name_is_no_handlers() -> None:
    assert loaded_handlers([]) is None


def test_a_module_that_is_not_there_is_named(here: Path) -> None:
    with pytest.raises(UsageError, match="importing 'not_there_at_all' failed: ModuleNotFoundError"):
        loaded_handlers(["not_there_at_all"])


def test_a_module_that_fails_is_told_with_its_line(here: Path) -> None:
    (here / "fails_here.py").write_text("x = 1\ny = x / 0\n")
    with pytest.raises(UsageError, match=r"ZeroDivisionError: division by zero \(.*fails_here\.py, line 2\)"):
        loaded_handlers(["fails_here"])


def test_a_module_without_handlers_says_what_to_write(here: Path) -> None:
    (here / "has_none.py").write_text("handlers = {}\n")
    with pytest.raises(InvalidValue, match=r"handlers = Handlers\(\)"):
        loaded_handlers(["has_none"])


def test_two_objects_are_refused_since_a_node_has_one(here: Path) -> None:
    (here / "first_of.py").write_text(MODULE.format(name="handlers"))
    (here / "second_of.py").write_text(MODULE.format(name="handlers"))
    with pytest.raises(InvalidValue, match="share one Handlers object"):
        loaded_handlers(["first_of", "second_of"])


async def test_the_print_handler_prints_a_line_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handlers = with_print(None)
    job = claimed_job("handler:print", payload=b'{"a":\x1b[31m"b"}\n' + b"x" * 300)
    outcome = await handlers.run("print", job, TargetSettings())
    shown = capsys.readouterr().err
    assert outcome.error_class == "ok"
    assert "\x1b" not in shown
    assert shown.count("\n") == 1
    assert shown.endswith("…\n")


def test_a_print_handler_of_ones_own_is_kept() -> None:
    mine = with_print(None)
    assert with_print(mine) is mine
