"""``tenantry partition``: what people and machines are told."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tenantry.cli.partition import app
from tenantry.kernel.errors import InvalidValue, UsageError

LAYOUTS = """
[[layouts]]
partitions = 32
spreads = { tenant-A = 4 }

[[layouts]]
effective_from = 1_700_000_000
partitions = 32
spreads = { tenant-A = 8 }
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "partitions.toml").write_text(LAYOUTS)
    (tmp_path / "traffic.csv").write_text("tenant,rate\nbig,640\ntenant-A,640\n" + "small,1\n")
    return tmp_path


def said(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.usefixtures("home")
def test_where_goes_by_the_time_of_the_event() -> None:
    assert said("where", "tenant-A", "--at", "1690000000") == "0 7 25 29\n"
    assert said("where", "tenant-A", "--at", "2024-06-01") == "0 7 14 16 22 23 25 29\n"
    assert said("where", "tenant-A", "--entity", "msg-0", "--at", "1710000000") == "16\n"
    during = said("where", "tenant-A", "--entity", "msg-0", "--at", "0", "--until", "1710000000", "--json")
    assert json.loads(during)["partitions"] == [0, 16]


@pytest.mark.usefixtures("home")
def test_plan_says_what_the_newest_layout_moves_and_in_which_order_to_go() -> None:
    told = said("plan")
    assert "1 tenant of 1,001 would move." in told
    assert "50.0%" in told
    assert "4. " not in told
    found = json.loads(said("plan", "--json"))
    assert [move["tenant"] for move in found["movement"]["moves"]] == ["tenant-A"]
    assert [wait["to"] for wait in found["drain"]["waits"]] == [14, 16, 22, 23]


@pytest.mark.usefixtures("home")
def test_plan_for_one_tenant_names_the_cheaper_choice() -> None:
    told = said("plan", "--tenant", "small", "--spread", "3")
    assert "Cheaper" not in told
    told = said("plan", "--tenant", "tenant-A", "--spread", "12")
    assert "Cheaper: 16 partitions by modulo slots moves 50.0%." in told


def test_suggest_reads_traffic_and_draws_the_load_as_it_would_be(home: Path) -> None:
    told = said("suggest", "traffic.csv", "--most", "100", "--svg", "heat.svg", "--json")
    found = {each["tenant"]: each["choice"]["spread"] for each in json.loads(told)["suggestions"]}
    assert found == {"big": 8}
    assert (home / "heat.svg").read_text().startswith("<svg")
    assert "big" in said("suggest", "traffic.csv")
    (home / "even.csv").write_text("tenant,rate\nsmall,1\ntenant-A,8\n")
    assert "as the traffic asks" in said("suggest", "even.csv", "--most", "1")


@pytest.mark.usefixtures("home")
def test_simulate_sets_the_layout_beside_kafkas_hash() -> None:
    found = json.loads(said("simulate", "--crowd", "200", "--json"))
    assert sum(found["load"].values()) == pytest.approx(100_000)
    assert "Kafka's murmur2" in said("simulate", "--traffic", "traffic.csv")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("where", "a", "--at", "soon"), "--at"),
        (("where", "a", "--layouts", "none.toml"), "none.toml cannot be read"),
        (("plan", "--tenant", "a"), "go together"),
        (("suggest", "traffic.csv", "--most", "0"), "a rate above 0"),
        (("simulate", "--svg", "no/such/place.svg"), "cannot be written"),
    ],
)
def test_a_wrong_call_is_told_what_to_change(words: tuple[str, ...], told: str) -> None:
    with pytest.raises((UsageError, InvalidValue), match=told):
        CliRunner().invoke(app, list(words), catch_exceptions=False)


def test_plan_does_not_praise_jump_slots_where_the_tenant_moves_to_reserved_partitions(home: Path) -> None:
    (home / "partitions.toml").write_text("[[layouts]]\npartitions = 8\nreserved = [5, 6, 7]\n")
    told = said("plan", "--tenant", "small", "--spread", "3")
    assert "100.0%" in told
    assert "from the start" not in told
