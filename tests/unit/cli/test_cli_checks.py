"""Each of the doctor's checks tells well from ill, and says what to do."""

from dataclasses import replace

import pytest

from tenantry.algorithms.shedding import Level
from tenantry.cli import checks
from tenantry.cli.checks import Check
from tenantry.kernel.instant import Timestamp
from tenantry.postgres.inspection import Life, Login, Server, Unprotected, Worker
from tenantry.queue.model import PoolLevel, StandingLevel

SERVER = Server("18.1", "on", "on", "on", 100, "tenantry_engine", "app", False, Timestamp(0.0))
ENGINE = Login("tenantry_engine", False, False, False, True, False, False)
TENANT = replace(ENGINE, login="tenantry_tenant")
LIFE = Life(term=3, holder="n1", held=True, days_ahead=2, today=True)
SHEDS = StandingLevel(PoolLevel("shared", Level.RETRIES, 9.0, 1.0, 30.0), 40.0, 8.0)
WORKER = Worker("n1", "shared", 20, False, ("http",))

WELL = [
    checks.python_check((3, 11, 0)),
    checks.extras_check([]),
    checks.embedded_check("18.1", wanted=True),
    checks.embedded_check(None, wanted=False),
    checks.server_check(SERVER),
    checks.durability_check(SERVER),
    checks.migrations_check([]),
    checks.logins_check([ENGINE, TENANT]),
    checks.policies_check([]),
    checks.registry_check(3, 1, []),
    checks.planner_check(LIFE),
    checks.workers_check([WORKER], ["shared"]),
    checks.shedding_check([]),
    checks.partitions_check(LIFE),
    checks.audit_check([]),
    checks.clock_check(0.2, 0.1),
]

ILL = [
    ("fail", checks.python_check((3, 10, 9)), "3.11"),
    ("warn", checks.extras_check(["aiohttp"]), "pip install"),
    ("fail", checks.embedded_check(None, wanted=True), "tenantry[embedded]"),
    ("fail", checks.server_check(replace(SERVER, standby=True)), "primary"),
    ("fail", checks.durability_check(replace(SERVER, fsync="off")), "loses accepted jobs"),
    ("fail", checks.durability_check(replace(SERVER, full_page_writes="off")), "loses accepted jobs"),
    ("fail", checks.migrations_check(["0006_more"]), "tenantry migrate"),
    ("fail", checks.logins_check([ENGINE]), "tenantry migrate"),
    ("fail", checks.policies_check([Unprotected("jobs", True, False, True)]), "FORCE"),
    ("warn", checks.registry_check(0, 0, []), "tenantry tenants import"),
    ("warn", checks.registry_check(3, 1, ["doubtful"]), "docs/tenants.md"),
    ("warn", checks.planner_check(replace(LIFE, held=False)), "tenantry worker"),
    ("warn", checks.workers_check([WORKER], ["shared", "gold"]), "tenantry worker --pool gold"),
    ("warn", checks.workers_check([replace(WORKER, draining=True)], ["shared"]), "--pool shared"),
    ("warn", checks.shedding_check([SHEDS]), "Under overload"),
    ("warn", checks.partitions_check(replace(LIFE, days_ahead=0)), "feeder"),
    ("fail", checks.partitions_check(replace(LIFE, today=False)), "feeder"),
    ("fail", checks.audit_check(["job 1/2 is held twice"]), "tenantry jobs audit"),
    ("warn", checks.clock_check(-5.0, 0.1), "NTP"),
    ("fail", checks.clock_check(90.0, 0.1), "NTP"),
]


@pytest.mark.parametrize("check", WELL, ids=lambda check: check.name)
def test_what_is_well_is_ok_and_needs_nothing(check: Check) -> None:
    assert (check.verdict, check.advice) == ("ok", "")


@pytest.mark.parametrize(("verdict", "check", "advice"), ILL, ids=lambda value: getattr(value, "name", None))
def test_what_is_ill_says_what_to_do(verdict: str, check: Check, advice: str) -> None:
    assert check.verdict == verdict
    assert advice in check.advice


@pytest.mark.parametrize(
    "power", ["superuser", "bypasses_policies", "creates_roles", "is_member", "owns_tables"]
)
def test_any_power_of_a_login_fails_by_its_name(power: str) -> None:
    check = checks.logins_check([replace(ENGINE, **{power: True}), TENANT])
    assert check.verdict == "fail"
    assert check.found.startswith("tenantry_engine ")


def test_a_slow_answer_is_not_taken_for_a_wrong_clock() -> None:
    assert checks.clock_check(1.8, 1.0).verdict == "ok"
