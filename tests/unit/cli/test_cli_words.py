"""Options, files and payloads as people write them."""

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from tenantry.cli import main as cli
from tenantry.cli.output import Output

CSV = "service,criticality\nacme,Tier 1\nglobex,free\n"
MAPPED = ("--column", "tenant=service", "--column", "tier=criticality", "--alias", "Tier 1=critical")


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tenantry", *words])
    try:
        cli.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.fixture
def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must be refused with exit code 2; what it said."""

    def refused(*words: str) -> str:
        assert run(monkeypatch, *words) == 2
        return capsys.readouterr().err

    return refused


@pytest.fixture
def registry(tmp_path: Path) -> str:
    file = tmp_path / "services.csv"
    file.write_text(CSV)
    return str(file)


def test_a_registry_file_is_checked_without_a_database(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], registry: str
) -> None:
    assert run(monkeypatch, "tenants", "check", registry, *MAPPED, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"tenants": 2, "tiers": 4, "warnings": []}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no column named 'tenant'"),
        (("--column", "tenant"), "LEFT=RIGHT"),
        (("--column", "owner=x"), "tenant=COLUMN or tier=COLUMN"),
        (("--kind", "Component"), "Not for csv"),
        (("--format", "xml"), "toml"),
    ],
)
def test_a_wrong_word_about_a_file_is_refused_by_name(
    refusal: Callable[..., str], registry: str, words: tuple[str, ...], said: str
) -> None:
    assert said in refusal("tenants", "check", registry, *words)


def test_every_fault_of_a_registry_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "r.toml"
    file.write_text('[tenants]\nacme = "criticl"\n"bad id" = "free"\n')
    assert run(monkeypatch, "tenants", "check", str(file)) == 2
    said = capsys.readouterr().err
    assert "2 errors" in said
    assert "Did you mean 'critical'?" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "either a TARGET"),
        (("handler:x", "--jobs", "-"), "either a TARGET"),
        (("handler:x", "-d", "1", "-f", "x"), "either --data or --file"),
        (("--jobs", "x", "--delay", "3"), "--delay is for one job"),
        (("--jobs", "x", "--class", "replay"), "--class is for one job"),
        (("--jobs", "/none/such"), "cannot be read"),
        (("handler:x", "-d", "{"), "--content-type"),
        (("handler:x", "-d", "NaN"), "ot JSON at line 1, column 1"),
        (("handler:x", "-d", '[{"a": -Infinity}]'), "ot JSON at line 1, column 9"),
        (("handler:x", "-d", ""), "JSON is expected"),
        (("handler:x", "-d", "[" * 3_000 + "]" * 3_000), "nested too deeply"),
        (("handler:x", "-d", '"\\ud800"'), "half of a surrogate pair"),
        (("handler:x", "--class", "urgent"), "live, background, replay"),
        (("handler:x",), "TENANTRY_API_KEY"),
        (("handler:x", "--api-key", "tk_mine"), "a key (not shown)"),
        (("handler:x", "--api-key", "tk_mine", "--url", "nowhere"), "base_url"),
    ],
)
def test_a_submit_that_cannot_be_meant_is_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    monkeypatch.delenv("TENANTRY_API_KEY", raising=False)
    assert run(monkeypatch, "submit", *words) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "tk_mine" not in shown


def test_a_bad_line_names_itself_and_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text('{"target":"handler:x","payload":1}\n\n{"target":"handler:x","payloda":1}\n')
    key = "tk_" + "a" * 17 + "_" + "b" * 49
    assert run(monkeypatch, "submit", "--jobs", str(file), "--api-key", key) == 2
    said = capsys.readouterr().err
    assert "line 3" in said
    assert "payload" in said


@pytest.mark.parametrize(
    "words", [("--listen", "nowhere"), ("--metrics", "x:y"), ("--allow-network", "10.0.0.1/8")]
)
def test_a_wrong_word_for_a_node_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, str],
) -> None:
    assert run(monkeypatch, "up", "--data-dir", str(tmp_path / "d"), *words) == 2
    assert words[0] in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


class Slot(NamedTuple):
    """One place of one command that takes text."""

    path: tuple[str, ...]
    command: Any
    parameter: Any

    @property
    def words(self) -> Callable[[str], list[str]]:
        """The command with a text in this place, and anything in the others that it must have."""
        others = [each for each in self.command.params if each.required and each is not self.parameter]
        return lambda text: [
            *self.path, *(_word(each, "1") for each in others), _word(self.parameter, text)
        ]  # fmt: skip


def _word(parameter: Any, text: str) -> str:
    return text if parameter.param_type_name == "argument" else f"{parameter.opts[0]}={text}"


def _slots(path: tuple[str, ...], command: Any) -> Iterator[Slot]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _slots((*path, name), inner)
    if command.callback is not None and not hasattr(command, "commands"):
        takes = {
            name: str(get_args(each.annotation)[0])
            for name, each in inspect.signature(command.callback).parameters.items()
        }
        for parameter in command.params:
            if "str" in takes.get(parameter.name, ""):
                yield Slot(path, command, parameter)


SLOTS = [slot for name, entry in cli.COMMANDS.items() for slot in _slots((name,), cli.loaded(name, entry))]


def test_the_commands_take_text_in_many_places() -> None:
    assert len(SLOTS) > 50


@pytest.mark.parametrize(
    "slot", SLOTS, ids=[f"{' '.join(slot.path)} {slot.parameter.name}" for slot in SLOTS]
)
def test_text_that_nothing_can_keep_is_refused_wherever_it_is_taken(
    refusal: Callable[..., str], slot: Slot
) -> None:
    """With NUL, or bytes that are not UTF-8: before a file is read, a server asked or a database opened."""
    for text in ("tk_\x00", "tk_\udcff"):
        said = refusal(*slot.words(text))
        assert said.startswith("error: ")
        assert slot.parameter.opts[0].upper() in said.upper()
        assert said.endswith("this text is not accepted; expected text in UTF-8 without NUL\n")
        assert "tk_" not in said, "it may be a key"


def test_a_worker_needs_a_database_that_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("TENANTRY_DATABASE_URL", raising=False)
    assert run(monkeypatch, "worker", "--data-dir", str(tmp_path / "none")) == 2
    assert "TENANTRY_DATABASE_URL" in capsys.readouterr().err


def test_a_database_that_does_not_answer_is_exit_code_3_and_no_password_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://me:hunter2@127.0.0.1:1/db"
    assert run(monkeypatch, "jobs", "counts", "--database-url", url) == 3
    said = capsys.readouterr().err
    assert "no PostgreSQL answers there" in said
    assert "hunter2" not in said


def test_a_table_is_for_people_and_json_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False, colour=False).table(("a", "bb"), [(1_000, "x"), (2, None)])
    Output(json=True, colour=False).table(("a",), [(1,)])
    assert capsys.readouterr().out == "a      bb\n1,000  x\n2\n"
