"""The command's own ways: what it loads, how errors end it."""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tenantry.cli import main as cli
from tenantry.cli.loops import Loops
from tenantry.cli.reference import render
from tenantry.kernel.errors import InvariantBroken, PeerError, PlaceLost, StoreUnavailable, UsageError

HEAVY = ("asyncpg", "aiohttp", "starlette", "uvicorn", "rich", "prometheus_client", "structlog", "msgspec")
PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tenantry", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_help_loads_no_room_and_no_library_beyond_the_parser() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['tenantry', '--help']\n"
        "from tenantry.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert all(name in done.stdout for name in cli.COMMANDS)


def test_every_command_of_the_table_but_the_demo_is_there_and_says_what_it_does() -> None:
    for name, entry in cli.COMMANDS.items():
        if name != "demo":
            assert cli.loaded(name, entry).help


def test_an_unknown_command_is_refused_with_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "wroker") == 2
    assert "wroker" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (StoreUnavailable("x"), 3),
        (PlaceLost("x"), 3),
        (PeerError("x"), 3),
        (InvariantBroken("x"), 70),
    ],
)
def test_who_is_at_fault_decides_the_exit_code(error: Exception, code: int) -> None:
    assert cli.exit_code(error) == code  # type: ignore[arg-type]


def test_an_error_is_one_line_on_standard_error_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "jobs", "counts", "--data-dir", str(tmp_path / "none")) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: there is no database")
    assert "tenantry up" in shown.err
    assert shown.err.count("\n") == 1


def test_with_json_an_error_is_one_json_object_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "jobs", "counts", "--json", "--data-dir", str(tmp_path / "none")) == 2
    assert json.loads(capsys.readouterr().err)["error"]["kind"] == "UsageError"


def test_a_missing_library_is_told_as_the_extra_that_brings_it() -> None:
    missing = cli.missing_extra(ModuleNotFoundError("no", name="asyncpg.pool"))
    assert missing is not None
    assert "pip install 'tenantry[server]'" in str(missing)
    assert cli.missing_extra(ModuleNotFoundError("no", name="somebody_elses")) is None


class Burst(Exception):
    """Something that nobody thought of."""


@pytest.mark.parametrize(
    "bug", [InvariantBroken("two\nlines"), KeyError("two\nlines"), Burst("\ud800 two lines")]
)
def test_a_fault_of_ours_is_one_line_that_says_where_to_report_it_and_where_its_trace_is(
    bug: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken() -> None:
        raise bug

    monkeypatch.setattr(cli, "app", broken)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run(monkeypatch, "jobs") == 70
    said = capsys.readouterr().err
    assert said.startswith(f"error: a fault of Tenantry's own, {type(bug).__name__}: ")
    assert "report it in the issue tracker of the project" in said
    assert said.count("\n") == 1
    (trace,) = tmp_path.iterdir()
    assert said.rstrip().endswith(str(trace))
    assert "in broken\n" in trace.read_text()


def test_a_fault_whose_trace_cannot_be_written_shows_it_above_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken() -> None:
        raise InvariantBroken("a bug")

    monkeypatch.setattr(cli, "app", broken)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    assert run(monkeypatch, "jobs") == 70
    trace, _, line = capsys.readouterr().err.rstrip().rpartition("\n")
    assert "in broken\n" in trace
    assert line.endswith("with the trace above")


def test_a_loop_that_ends_by_itself_is_a_fault_of_ours_unless_its_error_says_otherwise() -> None:
    async def ended_by(error: Exception) -> None:
        async def loop() -> None:
            raise error

        async with asyncio.TaskGroup() as group:
            Loops(group).start("planner", loop)

    def code(error: Exception) -> int:
        with pytest.raises(ExceptionGroup) as ended:
            asyncio.run(ended_by(error))
        return cli.exit_code(ended.value.exceptions[0])

    assert [code(each) for each in (UsageError("x"), StoreUnavailable("x"), KeyError("x"))] == [2, 3, 70]


def test_the_page_on_the_command_line_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == render(), "run: python -m tenantry.cli.reference > docs/cli.md"
