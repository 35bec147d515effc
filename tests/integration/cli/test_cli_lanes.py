"""``tenantry lanes``: what a person sees of the lanes and orders of them, on a database of its own."""

import json
from typing import Any

import pytest
from cli_commands import Command, said

pytestmark = pytest.mark.needs_postgres

X, Y = "handler:x", "handler:y"
WHY = ("--reason", "the target moves", "--by", "ada")


def lanes(run: Command, *words: str) -> list[Any]:
    found = said(run("lanes", "--json", *words))
    assert isinstance(found, list)
    return found


def submit(run: Command, target: str, tenant: str) -> str:
    return str(said(run("submit", target, "-t", tenant, "--json"))["id"])


def test_a_paused_lane_is_the_first_thing_that_explains_a_wait(registered: Command) -> None:
    job = submit(registered, X, "acme")
    registered("lanes", "pause", "-t", "acme", "--target", X, *WHY)
    assert "Its lane is paused by ada since " in registered("jobs", "explain", job, "-t", "acme")
    registered("lanes", "resume", "-t", "acme", "--target", X, *WHY)
    assert "paused" not in registered("jobs", "explain", job, "-t", "acme")


@pytest.mark.parametrize(
    ("scope", "paused"),
    [
        (("-t", "acme", "--target", X), {("acme", X)}),
        (("--target", X), {("acme", X), ("globex", X)}),
        (("--tenant", "acme"), {("acme", X), ("acme", Y)}),
    ],
    ids=["lane", "target", "tenant"],
)
def test_a_pause_covers_the_lanes_that_are_there_and_those_that_come(
    registered: Command, scope: tuple[str, ...], paused: set[tuple[str, str]]
) -> None:
    submit(registered, X, "acme")
    said_so = registered("lanes", "pause", *scope, *WHY)
    for target, tenant in ((Y, "acme"), (X, "globex"), (Y, "globex")):
        submit(registered, target, tenant)
    found = lanes(registered, "--state", "paused")
    assert {(each["tenant"], each["target"]) for each in found} == paused
    assert all("by ada since" in each["reason"] and "the target moves" in each["reason"] for each in found)
    assert "paused (1 lane now)." in said_so


def test_what_still_pauses_a_resumed_lane_is_said(registered: Command) -> None:
    submit(registered, X, "acme")
    registered("lanes", "pause", "--target", X, *WHY)
    told = registered("lanes", "resume", "-t", "acme", "--target", X, "--reason", "done", "--by", "bob")
    assert "Still pause over some of them: every lane to handler:x, by ada since" in told


def test_a_ceiling_shows_as_the_limit_until_it_is_lifted(registered: Command) -> None:
    submit(registered, X, "acme")
    registered("lanes", "ceiling", "7", "--target", X, *WHY)
    registered("lanes", "ceiling", "3", "-t", "acme", "--target", X, *WHY)
    [lane] = lanes(registered)
    assert (lane["ceiling"], lane["limit"]) == (3, 3)
    registered("lanes", "lift", "-t", "acme", "--target", X, *WHY)
    [lane] = lanes(registered)
    assert (lane["ceiling"], lane["limit"]) == (7, 7)


def test_every_order_is_in_the_log_with_who_when_and_why(registered: Command) -> None:
    for words in (("pause",), ("resume",), ("ceiling", "5"), ("lift",), ("reset",)):
        registered("lanes", *words, "-t", "acme", *WHY)
    log = said(registered("lanes", "orders", "--log", "--json"))
    assert [each["action"] for each in log] == ["reset", "lift", "ceiling", "resume", "pause"]
    assert {(each["by"], each["reason"], each["tenant"]) for each in log} == {
        ("ada", "the target moves", "acme")
    }
    assert said(registered("lanes", "orders", "--json")) == []
    assert "--log" in registered("lanes", "orders")
    page = said(registered("lanes", "orders", "--log", "--before", str(log[1]["number"]), "--json"))
    assert page == log[2:]


def test_who_ordered_is_the_user_unless_told(registered: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "grace")
    given = said(registered("lanes", "pause", "-t", "acme", "-r", "why", "--json"))
    assert given["by"] == "grace"

    def nobody() -> str:
        raise KeyError("no such user")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert "--by" in registered("lanes", "pause", "-t", "acme", "-r", "why", code=2)
    monkeypatch.setenv("TENANTRY_OPERATOR", "eve")
    assert said(registered("lanes", "pause", "-t", "acme", "-r", "why", "--json"))["by"] == "eve"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("pause", "--target", X), "--reason"),
        (("pause", *WHY), "which lanes?"),
        (("pause", "-t", "acmee", *WHY), "Did you mean 'acme'?"),
        (("pause", "-t", "no tenant", *WHY), "tenant: 'no tenant' is not accepted"),
        (("pause", "--target", "", *WHY), "target: '' is not accepted"),
        (("pause", "-t", "acme", "--reason", " "), "Say why"),
        (("pause", "-t", "acme", "--reason", "two\nlines"), "one line"),
        (("ceiling", "0", "--target", X, *WHY), "pause instead"),
        (("orders", "--before", "3"), "--before is for --log"),
        (("--sort", "size"), "backlog, in_flight"),
        (("--state", "closed"), "open, paused, held"),
        (("--watch",), "--watch needs a terminal"),
        (("--limit", "5", "pause", "-t", "acme", *WHY), "--limit stands before `pause`"),
    ],
)
def test_a_call_that_must_change_says_what_and_how(
    registered: Command, words: tuple[str, ...], told: str
) -> None:
    assert told in registered("lanes", *words, code=2)
    assert said(registered("lanes", "orders", "--log", "--json")) == []


def test_a_removed_tenants_lanes_can_still_be_ordered_about(registered: Command, tmp_path: Any) -> None:
    submit(registered, X, "acme")
    file = tmp_path / "others.toml"
    file.write_text('[tenants]\nglobex = "free"\n')
    registered("tenants", "import", str(file), "--yes")
    assert "paused (1 lane now)" in registered("lanes", "pause", "-t", "acme", *WHY)


def test_the_table_for_people_names_each_lane_and_why_it_is_not_open(registered: Command) -> None:
    assert "None yet" in registered("lanes")
    submit(registered, X, "acme")
    registered("lanes", "pause", "-t", "acme", *WHY)
    heading, row, reason = registered("lanes").splitlines()
    assert heading.split() == ["tenant", "target", "state", "limit", "in", "flight", "backlog", "latency",
                               "reference", "breaker", "rate/s"]  # fmt: skip
    assert row.split() == ["acme", X, "paused", "–", "0", "1", "–", "–", "closed", "–"]
    assert reason.startswith("acme to handler:x: paused by ada since")
    assert registered("lanes", "-t", "globex") == "None.\n"


def test_watching_with_json_prints_a_line_each_time(
    registered: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(registered, X, "acme")
    rounds = 0

    async def two_rounds(seconds: float) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("tenantry.cli.lanes.wait_for", two_rounds)
    told = registered("lanes", "--watch", "--json", code=130).splitlines()
    assert [json.loads(line)[0]["waiting"] for line in told] == [1, 1]
