"""``tenantry limits``: what people and machines are told, alone and beside a real server."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner
from valkey_servers import Fleet

from tenantry.cli.limits import app
from tenantry.cli.limits_files import used_in
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import InvalidValue, StoreUnavailable, UnknownKey, UsageError
from tenantry.kernel.tenant import TenantId
from tenantry.limiter import Limit, Plan, SharedLimiter
from tenantry.limiter.exchange import Ask, Part
from tenantry.limiter.plan_file import parse_plans
from tenantry.valkey import ValkeyLeaseAuthority

PLANS = """
default = "free"

[plans.free]
tenant = "2/s"

[plans.gold]
tenant = "100/s burst 900"
key = "50/s burst 100"
routes = { "POST /orders" = "10/min" }
ledger = true

[tenants]
acme = "gold"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "limits.toml").write_text(PLANS)
    return tmp_path


def said(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


async def apart(*words: str, code: int = 0) -> str:
    """A command beside a running event loop."""
    return await asyncio.to_thread(said, *words, code=code)


@pytest.mark.usefixtures("home")
def test_show_tells_a_tenant_s_limits() -> None:
    told = said("show", "acme")
    assert "the tenant    100/s burst 900  1000" in told
    assert "POST /orders  10/min" in told
    assert json.loads(said("show", "other", "--json"))["limits"] == [["the tenant", "2/s", "2"]]


@pytest.mark.usefixtures("home")
def test_try_counts_what_passes_and_says_why_the_rest_does_not() -> None:
    assert said("try", "acme", "--times", "1000") == "1,000 of 1,000 calls passed.\n"
    told = said("try", "other", "--times", "5", code=1)
    assert told.startswith(
        "2 of 5 calls passed.\nThe first refusal was over the tenant's rate: come back in 0."
    )
    found = json.loads(said("try", "acme", "--route", "POST /orders", "--times", "2", "--json", code=1))
    assert (found["passed"], found["refused"]["scope"]) == (1, "route")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("words", [("watch", "acme"), ("reconcile", "log", "--day", "2026-11-30")])
def test_commands_that_need_an_authority_say_so(words: tuple[str, ...]) -> None:
    Path("log").write_text("tenant\nacme\n")
    with pytest.raises(UsageError, match="TENANTRY_LIMITS_URL"):
        said(*words)


async def test_calls_tried_by_the_command_are_charged_where_all_nodes_see_them(
    fleet: Fleet, home: Path
) -> None:
    server = await fleet.server()
    url = f"redis://{server.name}"
    assert "300 of 300" in await apart("try", "acme", "--authority", url, "--times", "300")
    found = json.loads(await apart("show", "acme", "--authority", url, "--json"))
    (bucket,) = found["buckets"]
    assert bucket["name"] == "tenant"
    assert 700 <= bucket["level"] < 900
    assert bucket["held"] == {}
    told = await apart("watch", "acme", "quiet", "--authority", url, "--times", "2", "--every", "0.1")
    assert told.count("quiet: nothing taken, nothing leased.") == 2


async def test_the_ledger_is_held_against_the_access_log(fleet: Fleet, home: Path) -> None:
    server = await fleet.server()
    url, plan = f"redis://{server.name}", Plan(Limit(1000, 1000), ledger=True)
    async with ValkeyLeaseAuthority(url) as authority:
        async with SharedLimiter(plan, authority) as limiter:
            for tenant, calls in (("acme", 120), ("globex", 70)):
                for _ in range(calls):
                    assert await limiter.acquire(tenant)
        lines = await authority.ledger(TenantId("acme"))
    assert sum(line.used for line in lines) == 120
    assert sum(line.held for line in lines) == 0
    day = datetime.fromtimestamp(SystemClock().now(), UTC).date().isoformat()
    rows = ["tenant,status", *["acme,200"] * 120, *["acme,429"] * 30, *["globex,200"] * 70]
    (home / "access.csv").write_text("\n".join(rows))
    told = await apart("reconcile", "access.csv", "--authority", url, "--day", day)
    assert "2 tenants, 0 off." in told
    more = [json.dumps({"tenant": "acme", "cost": 130}), json.dumps({"tenant": "globex", "cost": 70})]
    (home / "access.jsonl").write_text("\n".join(more))
    words = ("reconcile", "access.jsonl", "--authority", url, "--day", day, "--json")
    assert json.loads(await apart(*words, code=1))["off"] == ["acme"]


@pytest.mark.usefixtures("home")
def test_a_log_as_a_spreadsheet_saves_it_is_read_and_a_refusal_costs_nothing() -> None:
    Path("log").write_bytes(b"\xef\xbb\xbftenant,status\r\nacme,200\r\nacme, 429\r\n")
    assert used_in(Path("log")) == {"acme": 1.0}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("words", [("--within", "nan"), ("--within", "-1"), ("--tokens", "inf")])
def test_a_tolerance_that_is_none_is_refused(words: tuple[str, str]) -> None:
    Path("log").write_text("tenant\nacme\n")
    with pytest.raises(InvalidValue, match=words[0]):
        said("reconcile", "log", "--day", "2026-11-30", "--authority", "redis://127.0.0.1:1", *words)


@pytest.mark.usefixtures("home")
def test_try_says_what_no_limit_or_no_authority_was_asked_about() -> None:
    assert "has no limit of the route 'GET /'; of routes it limits 'POST /orders'" in said(
        "try", "acme", "--route", "GET /"
    )
    assert "has no limit of each key" in said("try", "other", "--key", "k")
    told = said("try", "acme", "--authority", "redis://127.0.0.1:1")
    assert "The authority does not answer: 1 call decided on the share" in told


async def booked(url: str, tenants: list[str], *, prefix: str = "tenantry:limits") -> str:
    """Charges each tenant five tokens, in the ledger; which day that is."""
    own = Part("tenant", Limit(100, 100), unleased=5, charge=5)
    async with ValkeyLeaseAuthority(url, prefix=prefix) as authority:
        for tenant in tenants:
            await authority.exchange([Ask(TenantId(tenant), "n", 1, 2.0, (own,), ledger=True)])
        (line,) = await authority.ledger(TenantId(tenants[0]))
    return line.day.isoformat()


async def urls_of_all_kinds(fleet: Fleet) -> list[str]:
    server, nodes, (*_, sentinel) = await fleet.server(), await fleet.cluster(), await fleet.pair()
    return [
        f"redis://{server.name}",
        f"redis+cluster://{nodes[0].name}",
        f"redis+sentinel://{sentinel.name}/limits",
    ]


async def test_a_tenant_that_the_log_does_not_name_is_off_on_every_kind_of_server(
    fleet: Fleet, home: Path
) -> None:
    tenants = [f"tenant-{n}" for n in range(24)]
    for url in await urls_of_all_kinds(fleet):
        day = await booked(url, tenants)
        await booked(url, ["of-others"], prefix="tenantry:limit?")
        (home / "log").write_text("\n".join(["tenant", *tenants[:-1] * 5]))
        words = ("reconcile", "log", "--authority", url, "--day", day, "--json")
        found = json.loads(await apart(*words, code=1))
        assert found["off"] == [tenants[-1]], url
        assert [each["tenant"] for each in found["tenants"]] == sorted(tenants), url
        (home / "log").write_text("\n".join(["tenant", *tenants[1:] * 5]))
        *_, last, summary = (await apart(*words[:-1], code=1)).splitlines()
        assert (last.split(), summary) == (["tenant-0", "5", "0", "-5"], "24 tenants, 1 off."), url
        (home / "log").write_text("\n".join(["tenant", *tenants * 5]))
        await apart(*words)


async def test_a_day_of_which_nothing_is_booked_is_told_so(fleet: Fleet, home: Path) -> None:
    server = await fleet.server()
    (home / "log").write_text("tenant,cost\nacme,1234567.5\n")
    words = ("reconcile", "log", "--authority", f"redis://{server.name}", "--day", "2026-01-31")
    told = await apart(*words, code=1)
    assert "The ledger has nothing of 2026-01-31: only plans with" in told
    assert "acme    0       1,234,567.5  +1,234,567.5" in told


async def test_one_node_of_a_cluster_is_not_taken_for_the_whole(fleet: Fleet, home: Path) -> None:
    node = await fleet.server("--cluster-enabled", "yes")
    (home / "log").write_text("tenant\n")
    words = ("reconcile", "log", "--authority", f"redis://{node.name}", "--day", "2026-01-31")
    with pytest.raises(UsageError, match=f"give redis\\+cluster://{node.name}"):
        await apart(*words)


async def test_a_server_that_is_not_there_is_a_dependency_that_failed(home: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"does not answer: .*127\.0\.0\.1:1"):
        await apart("show", "acme", "--authority", "redis://127.0.0.1:1")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("log", "where"),
    [
        ("who\nacme\n", "log line 1: 'who'"),
        ("tenant,cost\nacme,nothing\n", r"log\[1\].cost"),
        ('{"tenant": "acme"}\n[]\n', r"log\[2\]"),
        ("tenant\nnot a tenant\n", r"log\[1\].tenant"),
        ("tenant\n" + 200_000 * "a" + "\n", "log line 2: 'field larger than"),
        ("tenant\na\0b\n", r"log\[1\].tenant"),
    ],
)
def test_a_log_that_cannot_be_read_says_where(log: str, where: str) -> None:
    Path("log").write_text(log)
    with pytest.raises(InvalidValue, match=where):
        said("reconcile", "log", "--day", "2026-11-30", "--authority", "redis://127.0.0.1:1")


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("[plan.free]", UnknownKey, "Did you mean 'plans'"),
        ("[plans.free]\ntennant = '1/s'", UnknownKey, "Did you mean 'tenant'"),
        (
            "[plans.free]\ntenant = 5",
            InvalidValue,
            "plans.free.tenant: 5 is not accepted; expected a limit in quotes",
        ),
        ("[plans.free]\nroutes = { a = 'much' }", InvalidValue, "plans.free.routes.a: 'much'"),
        ("[plans.gold]\n[tenants]\nacme = 'golt'", InvalidValue, "Did you mean 'gold'"),
        ("default = 'gold'", InvalidValue, "none is defined"),
        ("plans = 3", InvalidValue, "plans: 3 is not accepted; expected a table"),
        ("[plans.a]\nledger = 1", InvalidValue, "plans.a.ledger"),
        ("= broken", InvalidValue, "expected TOML"),
    ],
)
def test_a_plan_file_with_a_slip_says_where_and_what_would_do(
    text: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error) as refused:
        parse_plans(text)
    assert told in str(refused.value)
