"""What breaks isolation in the mutation kit is shown by attack, and nothing leaks from the right twins.

Each rule that the attack can show stands in :data:`SHOWN` with the door by which it does; every other one has
its reason in :data:`~tenantry.rls.prove.limits.WHY_BEYOND`, or is of a family that is not about whose rows
are seen. Here each case is attacked by its door, and of the older server one a door; by all doors, on both
server versions, under ``make soak NAME=prove``.
"""

from collections.abc import AsyncIterator, Collection

import asyncpg
import pytest
import pytest_asyncio

from tenantry.postgres.proving import PostgresRange
from tenantry.rls import RULES, Family
from tenantry.rls.prove.limits import ALL, WHY_BEYOND
from tenantry.rls.prove.model import Proof, Verdict
from tenantry.rls.prove.proving import prove
from tenantry.testing.row_policies import Case, base, cases

SHOWN = {
    "rls-off": "read",
    "dormant-policies": "read",
    "inherited-owner": "read",
    "child-unprotected": "read",
    "superuser": "read",
    "bypassrls": "read",
    "admin-option": "admin",
    "policy-true": "read",
    "policy-check-true": "insert",
    "policy-settable-flag": "flag",
    "policy-inverted": "read",
    "policy-literal": "read",
    "policy-null-open": "read",
    "policy-default-tenant": "read",
    "policy-check-unbound": "insert",
    "policy-blind-update": "move",
    "membership-writable": "member",
    "lookup-unprotected": "read",
    "helper-search-path": "shadow",
    "role-default-tenant": "read",
    "policy-text-normalised": "read",
    "definer-view": "read",
    "nested-definer-view": "read",
    "materialized-view": "read",
    "materialized-of-one": "read",
    "writable-view": "view write",
    "definer-function": "call",
    "definer-dynamic-sql": "call",
    "instead-of-trigger": "view write",
    "rewrite-rule": "fire",
    "partition-unprotected": "read",
    "inheritance-child": "read",
    "inheritance-parent": "read",
    "truncate": "truncate",
    "trigger-privilege": "trigger",
    "unique-across-tenants": "collide",
    "on-conflict": "upsert",
    "exclusion-across-tenants": "collide",
    "foreign-key-oracle": "refer",
    "foreign-key-cascade": "cascade",
    "sequence-readable": "sequence",
}
"""By rule, the door by which its case is shown."""

ANOTHER_DOOR = {
    "definer-view--filter": "peek",
    "owner-reachable--itself": "owner",
    "policy-unbound--for-all": "read",
}
"""Cases that are shown by another door than their rule's others, or alone of their rule."""

NOT_SHOWN = {
    "policy-default-tenant--helper": "a helper's body does not tell which tenant to plant",
    "policy-literal--helper": "a helper's body does not tell which tenant to plant",
    "policy-null-open--coalesce": "rows without a tenant are nobody's",
    "policy-null-open--rows": "rows without a tenant are nobody's",
    "policy-text-normalised": "beside whole numbers, tenants are spelt as numbers, without case",
}
"""Cases that no attempt shows though others of their rule are."""

CASES = cases()


def _door(case: Case) -> str:
    if case.name in NOT_SHOWN:
        return ""
    return ANOTHER_DOOR.get(case.name) or SHOWN.get(case.rule, "")


BY_DOOR = [pytest.param(case, id=case.name) for case in CASES if _door(case)]
ONE_A_DOOR = [
    pytest.param(case, id=case.name)
    for case in {_door(case): case for case in CASES if _door(case) and not case.server}.values()
]
BY_NAME = [pytest.param(case, id=case.name) for case in CASES]


@pytest_asyncio.fixture
async def session(vacant_database_url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """In a transaction that is rolled back, and alone: what was never set differs from what was once."""
    connection = await asyncpg.connect(vacant_database_url, statement_cache_size=0)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def _attacked(
    session: "asyncpg.Connection[asyncpg.Record]", case: Case, script: str, doors: Collection[str]
) -> Proof:
    major = session.get_server_version().major
    if case.server > major:
        pytest.skip(f"needs PostgreSQL {case.server}")
    await session.execute(base() + script)
    await session.execute("RESET ROLE")
    _, proof = await prove(PostgresRange(session), case.declared, doors=doors)
    return proof


@pytest.mark.parametrize("rls_server", [18], indirect=True)
@pytest.mark.parametrize("case", BY_DOOR)
async def test_what_is_broken_is_confirmed_by_its_door(
    session: "asyncpg.Connection[asyncpg.Record]", case: Case
) -> None:
    await _confirm(session, case)


@pytest.mark.parametrize("rls_server", [15], indirect=True)
@pytest.mark.parametrize("case", ONE_A_DOOR)
async def test_each_door_shows_what_is_broken_on_the_oldest_server(
    session: "asyncpg.Connection[asyncpg.Record]", case: Case
) -> None:
    await _confirm(session, case)


@pytest.mark.parametrize("rls_server", [18], indirect=True)
@pytest.mark.parametrize("case", ONE_A_DOOR)
async def test_nothing_leaks_from_the_twin_by_the_same_door(
    session: "asyncpg.Connection[asyncpg.Record]", case: Case
) -> None:
    proof = await _attacked(session, case, case.right, {_door(case)})
    assert [f"{each.attempt.asked}: {each.why}" for each in proof.leaked] == []


async def _confirm(session: "asyncpg.Connection[asyncpg.Record]", case: Case) -> None:
    proof = await _attacked(session, case, case.broken, {_door(case)})
    verdicts = {each.verdict for each in proof.findings if each.finding.rule == case.rule}
    assert verdicts == {Verdict.CONFIRMED}, [each.why for each in proof.outcomes]
    assert [each.attempt.asked for each in proof.unfound] == []


@pytest.mark.soak
@pytest.mark.parametrize("case", BY_NAME)
async def test_what_is_broken_leaks_nothing_that_the_audit_does_not_say(
    session: "asyncpg.Connection[asyncpg.Record]", case: Case
) -> None:
    proof = await _attacked(session, case, case.broken, ALL)
    assert [f"{each.attempt.door}: {each.attempt.asked}: {each.why}" for each in proof.unfound] == []


@pytest.mark.soak
@pytest.mark.parametrize("case", BY_NAME)
async def test_nothing_leaks_from_the_twin_by_any_door(
    session: "asyncpg.Connection[asyncpg.Record]", case: Case
) -> None:
    proof = await _attacked(session, case, case.right, ALL)
    assert [f"{each.attempt.door}: {each.attempt.asked}: {each.why}" for each in proof.leaked] == []
    assert proof.unplanted == {}


def test_each_rule_is_shown_or_its_reason_stands_in_the_limits() -> None:
    silent = {Family.PERFORMANCE, Family.OPERATIONS}
    about_rows = {each.name for each in RULES if each.family not in silent}
    assert about_rows - SHOWN.keys() - WHY_BEYOND.keys() == set()
    assert set(SHOWN.values()) | set(ANOTHER_DOOR.values()) <= ALL
