"""``tenantry replay`` in clumsy hands: a slip ends with a line that says what is wrong, and its exit code."""

import json
from pathlib import Path

import pytest
from cli_commands import Command, said

pytestmark = pytest.mark.needs_postgres

OF = ("-t", "acme")
NOBODY = "01900000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    "words",
    [
        ("status", NOBODY), ("pause", NOBODY), ("start", "nope"), ("budget", NOBODY, "--none"),
        ("parked", "list", "--replay", "nope"), ("parked", "send-back", "--all-of", NOBODY),
    ],
    ids=["status", "pause", "start", "budget", "parked list", "send-back"],
)  # fmt: skip
def test_a_replay_that_is_not_there_is_said_to_be_not_there(
    registered: Command, words: tuple[str, ...]
) -> None:
    assert "there is no replay" in registered("replay", *words, *OF, code=2)


def test_what_is_no_file_of_a_specs_size_is_not_read_to_its_end(registered: Command, tmp_path: Path) -> None:
    assert "longer than 1,048,576 bytes" in registered("replay", "plan", *OF, "--spec", "/dev/zero", code=2)
    words = ("parked", "send-back", NOBODY, "--payload", "/dev/zero")
    assert "longer than 1,048,576 bytes" in registered("replay", *words, *OF, code=2)
    missing = str(tmp_path / "none.toml")
    assert "No such file" in registered("replay", "plan", *OF, "--spec", missing, code=2)


def test_a_condition_that_is_nested_too_deeply_is_the_askers_slip(registered: Command) -> None:
    assert "PATH=JSON" in registered("replay", "plan", *OF, "--where", "$.a=" + "[" * 100_000, code=2)


def test_a_replay_of_a_tenant_that_is_gone_can_still_be_looked_at_and_cancelled(
    registered: Command, tmp_path: Path
) -> None:
    replay = said(registered("replay", "plan", *OF, "--json"))["replay"]
    without = tmp_path / "without.toml"
    without.write_text('[tenants]\nglobex = "free"\n')
    registered("tenants", "import", str(without), "--yes")
    assert "unknown tenant 'acme'" in registered("replay", "start", *OF, replay, code=2)
    assert said(registered("replay", "status", *OF, replay, "--json"))["state"] == "planned"
    assert said(registered("replay", "cancel", *OF, replay, "--json"))["state"] == "cancelled"
    assert "unknown tenant" in registered("replay", "status", "-t", "nobody", replay, code=2)


def test_nothing_is_started_where_nobody_could_watch_it(registered: Command) -> None:
    replay = said(registered("replay", "plan", *OF, "--json"))["replay"]
    assert "needs a terminal" in registered("replay", "start", *OF, replay, "--watch", code=2)
    assert said(registered("replay", "status", *OF, replay, "--json"))["state"] == "planned"


def test_a_plan_is_cancelled_once_and_then_says_that_it_was(registered: Command) -> None:
    replay = said(registered("replay", "plan", *OF, "--json"))["replay"]
    assert said(registered("replay", "cancel", *OF, replay, "--json"))["state"] == "cancelled"
    error = json.loads(registered("replay", "start", *OF, replay, "--json", code=2))["error"]
    assert "cancelled cannot be given 'start'" in error["message"]
    assert "there is no replay" in registered("replay", "status", "-t", "globex", replay, code=2)


def test_a_source_without_its_place_is_told_how_it_is_written(registered: Command) -> None:
    assert "jsonl:CONNECTION/PLACE" in registered("replay", "plan", *OF, "--source", "jsonl", code=2)
    words = ("--source", "jsonl:exports/dead.jsonl")
    assert "--connections-file FILE" in registered("replay", "plan", *OF, *words, code=2)
