"""Every driver keeps a tenant's transaction its own, whatever happens in it and to it: one suite for all."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from binding_doors import Door, Hand
from binding_world import OTHER_ROLE, OpenDoor, administer, until_asleep

from tenantry.bindings import (
    Binding,
    FailureHidden,
    LeftBehind,
    LeftoverKind,
    OtherTenant,
    TenantChanged,
    TenantMissing,
    use_tenant,
)
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.randomness import SeededRandomness

pytestmark = pytest.mark.needs_postgres

TENANTS = ("acme", "globex", "initech")
SEEN = "SELECT DISTINCT tenant_id FROM notes"
SETTING = "SELECT coalesce(current_setting('app.tenant_id', true), '')"


async def seen(hand: Hand) -> set[str]:
    return {row[0] for row in await hand.rows(SEEN)}


async def assert_fit(door: Door) -> None:
    """The pool's connections have no tenant bound, and each tenant still sees its own rows alone."""
    async with door.raw() as hand:
        assert await hand.rows(SETTING) == [("",)]
        assert await seen(hand) == set()
    for tenant in TENANTS:
        async with door.bound(tenant) as hand:
            assert await seen(hand) == {tenant}


async def pid_of(hand: Hand) -> int:
    return int((await hand.rows("SELECT pg_backend_pid()"))[0][0])


async def test_a_tenant_sees_and_writes_its_own_rows_alone(door_to: OpenDoor, name: str) -> None:
    door = await door_to(name)
    async with door.bound("acme") as hand:
        assert await seen(hand) == {"acme"}
        await hand.rows("INSERT INTO notes VALUES ('acme', 50, 'new')")
        assert await hand.rows("UPDATE notes SET body = 'x' WHERE tenant_id = 'globex' RETURNING 1") == []
    async with door.bound("globex") as hand:
        assert await hand.rows("SELECT FROM notes WHERE id = 50") == []
    with pytest.raises(Exception, match="row-level security"):
        async with door.bound("globex") as hand:
            await hand.rows("INSERT INTO notes VALUES ('acme', 51, 'foreign')")
    async with door.bound("acme") as hand:
        assert await hand.rows("DELETE FROM notes WHERE id >= 50 RETURNING body") == [("new",)]
    await assert_fit(door)


async def test_without_a_tenant_a_strict_binding_refuses_and_another_shows_no_rows(
    door_to: OpenDoor, name: str
) -> None:
    strict = await door_to(name)
    with pytest.raises(TenantMissing, match="Nothing was sent"):
        async with strict.bound(None):
            pytest.fail("there is no transaction without a tenant")
    lenient = await door_to(name, binding=Binding(strict=False))
    async with lenient.bound(None) as hand:
        assert await seen(hand) == set()
    for door in (strict, lenient):
        await assert_fit(door)


async def test_what_is_no_tenant_is_refused_before_anything_is_sent(door_to: OpenDoor, name: str) -> None:
    door = await door_to(name)
    for wrong in ("", "a'; RESET ROLE; --", 7):
        with pytest.raises(InvalidValue, match="tenant"):
            async with door.bound(wrong):
                pytest.fail("that is no tenant")
    await assert_fit(door)


class Broken(Exception):
    """What a body may raise."""


async def test_an_exception_rolls_back_and_leaves_no_tenant(door_to: OpenDoor, name: str) -> None:
    door = await door_to(name)
    with pytest.raises(Broken):
        async with door.bound("acme") as hand:
            await hand.rows("INSERT INTO notes VALUES ('acme', 60, 'lost')")
            raise Broken
    async with door.bound("acme") as hand:
        assert await hand.rows("SELECT FROM notes WHERE id = 60") == []
    await assert_fit(door)


async def test_a_failed_statement_that_the_body_hides_is_told_and_nothing_is_committed(
    door_to: OpenDoor, name: str
) -> None:
    door = await door_to(name)
    with pytest.raises(FailureHidden):
        async with door.bound("acme") as hand:
            await hand.rows("INSERT INTO notes VALUES ('acme', 61, 'lost')")
            with pytest.raises(Exception, match="division"):
                await hand.rows("SELECT 1 / 0")
    async with door.bound("acme") as hand:
        assert await hand.rows("SELECT FROM notes WHERE id = 61") == []
    await assert_fit(door)


@pytest.mark.parametrize("after", ["at_rest", "in_a_statement"])
async def test_cancellation_in_mid_transaction_leaves_no_tenant(
    door_to: OpenDoor, name: str, after: str, notes_admin_url: str
) -> None:
    """Tasks are cancelled; the statements of sync drivers are cancelled at the server."""
    door = await door_to(name)
    inside: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        async with door.bound("acme") as hand:
            inside.set_result(await pid_of(hand))
            if after == "at_rest":
                await asyncio.Event().wait()
            await hand.rows("SELECT pg_sleep(60)")

    task = asyncio.create_task(work())
    await asyncio.wait((task, inside), return_when=asyncio.FIRST_COMPLETED)
    pid = await inside if inside.done() else pytest.fail(f"not begun: {task}")
    if after == "in_a_statement":
        await asyncio.to_thread(until_asleep, notes_admin_url, pid)
    if door.sync and after == "in_a_statement":
        administer(notes_admin_url, f"SELECT pg_cancel_backend({pid})")
    else:
        task.cancel()
    with pytest.raises((asyncio.CancelledError, Exception)) as ended:
        await task
    assert ended.value is not None
    await assert_fit(door)


async def test_a_task_that_is_cancelled_at_every_step_of_its_transaction_leaves_no_tenant(
    door_to: OpenDoor, name: str
) -> None:
    """Cancelled after each number of turns of the event loop, so that BEGIN and COMMIT are hit as well."""
    door = await door_to(name, size=2)

    async def work() -> None:
        async with door.bound("acme") as hand:
            await hand.rows("SELECT 1")

    await work()
    for turns in range(30):
        task = asyncio.create_task(work())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await assert_fit(door)


async def test_a_connection_that_the_server_ends_is_not_lent_again(
    door_to: OpenDoor, name: str, notes_admin_url: str
) -> None:
    door = await door_to(name)
    with pytest.raises(Exception, match=r"(?i)terminat|closed|lost|connection"):
        async with door.bound("acme") as hand:
            await hand.rows("INSERT INTO notes VALUES ('acme', 70, 'lost')")
            administer(notes_admin_url, f"SELECT pg_terminate_backend({await pid_of(hand)}, 5000)")
            await hand.rows("SELECT 1")
    async with door.bound("acme") as hand:
        assert await hand.rows("SELECT FROM notes WHERE id = 70") == []
    await assert_fit(door)


async def test_the_bodys_own_exception_is_what_is_raised_when_the_connection_is_gone_too(
    door_to: OpenDoor, name: str, notes_admin_url: str
) -> None:
    door = await door_to(name)
    its_own = Exception if "sqlalchemy" in name else Broken  # that one tells of its rollback instead
    with pytest.raises(its_own):
        async with door.bound("acme") as hand:
            administer(notes_admin_url, f"SELECT pg_terminate_backend({await pid_of(hand)}, 5000)")
            raise Broken
    await assert_fit(door)


async def test_savepoints_keep_the_tenant_whether_released_or_rolled_back(
    door_to: OpenDoor, name: str
) -> None:
    door = await door_to(name)
    async with door.bound("acme") as hand:
        async with hand.savepoint():
            assert await seen(hand) == {"acme"}
        with pytest.raises(Broken):
            async with hand.savepoint():
                await hand.rows("INSERT INTO notes VALUES ('acme', 80, 'undone')")
                raise Broken
        assert await hand.rows("SELECT FROM notes WHERE id = 80") == []
        assert await seen(hand) == {"acme"}
    await assert_fit(door)


async def test_d3_a_tenant_bound_inside_a_savepoint_that_is_released_is_found_and_all_is_rolled_back(
    door_to: OpenDoor, name: str
) -> None:
    door = await door_to(name)
    with pytest.raises(TenantChanged):
        async with door.bound("acme") as hand:
            await hand.rows("INSERT INTO notes VALUES ('acme', 81, 'lost')")
            async with hand.savepoint():
                await hand.rows("SELECT set_config('app.tenant_id', 'globex', true)")
    async with door.bound("acme") as hand:
        assert await hand.rows("SELECT FROM notes WHERE id = 81") == []
    await assert_fit(door)


async def test_d3_a_tenant_bound_inside_a_savepoint_that_is_rolled_back_is_gone(
    door_to: OpenDoor, name: str
) -> None:
    door = await door_to(name)
    async with door.bound("acme") as hand:
        with pytest.raises(Broken):
            async with hand.savepoint():
                await hand.rows("SELECT set_config('app.tenant_id', 'globex', true)")
                raise Broken
        assert await seen(hand) == {"acme"}
    await assert_fit(door)


@pytest.mark.parametrize("change", ["SET app.tenant_id = 'globex'", "COMMIT", f"SET ROLE {OTHER_ROLE}"])
async def test_a_body_that_changes_its_tenant_or_role_or_ends_its_transaction_is_told(
    door_to: OpenDoor, name: str, change: str
) -> None:
    door = await door_to(name)
    with pytest.raises(TenantChanged):
        async with door.bound("acme") as hand:
            await hand.rows(change)
    await assert_fit(door)


async def test_a_nested_transaction_of_another_tenant_is_refused_and_the_outer_one_goes_on(
    door_to: OpenDoor, name: str
) -> None:
    door = await door_to(name, size=2)

    async with door.bound("acme") as hand:
        if not door.sync:
            with pytest.raises(OtherTenant, match="Nothing was sent"):
                async with door.bound("globex"):
                    pytest.fail("that is another tenant")
        assert await seen(hand) == {"acme"}
    await assert_fit(door)


async def test_a_child_task_has_transactions_of_its_own(door_to: OpenDoor, name: str) -> None:
    """A task inherits the current tenant, never its parent's open transaction."""
    door = await door_to(name, size=3)

    async def child(tenant: str) -> set[str]:
        async with door.bound(tenant) as hand:
            return await seen(hand)

    async with door.bound("acme") as hand:
        found = await asyncio.gather(
            *(asyncio.create_task(child(tenant)) for tenant in ("globex", "initech"))
        )
        assert found == [{"globex"}, {"initech"}]
        assert await seen(hand) == {"acme"}
    with use_tenant("acme"):
        found = await asyncio.gather(child("globex"), asyncio.create_task(child("acme")))
    assert found == [{"globex"}, {"acme"}]


LEFT = {
    "SET app.tenant_id = 'globex'": LeftoverKind.SETTING,
    f"SET ROLE {OTHER_ROLE}": LeftoverKind.ROLE,
    "CREATE TEMP TABLE notes AS SELECT 1 AS leaked": LeftoverKind.TEMPORARY,
    "DECLARE kept CURSOR WITH HOLD FOR SELECT * FROM notes": LeftoverKind.CURSOR,
}


@pytest.mark.parametrize("statement", list(LEFT))
async def test_d2_what_careless_code_left_on_a_connection_is_refused_and_cleaned(
    door_to: OpenDoor, name: str, statement: str
) -> None:
    door = await door_to(name)
    await assert_fit(door)
    async with door.raw() as hand:
        await hand.rows(statement)
    with pytest.raises(LeftBehind, match="No tenant was bound") as refused:
        async with door.bound("acme") as hand:
            await hand.rows("SELECT 1")
    assert [leftover.kind for leftover in refused.value.leftovers] == [LEFT[statement]]
    assert refused.value.cleaned
    await assert_fit(door)


async def test_all_that_was_left_at_once_is_named_and_cleaned(door_to: OpenDoor, name: str) -> None:
    door = await door_to(name)
    async with door.raw() as hand:
        for statement in LEFT:
            await hand.rows(statement)
    with pytest.raises(LeftBehind) as refused:
        async with door.bound("acme") as hand:
            await hand.rows("SELECT 1")
    assert {leftover.kind for leftover in refused.value.leftovers} == set(LEFT.values())
    await assert_fit(door)


async def test_a_session_whose_temporary_tables_are_gone_is_fit(door_to: OpenDoor, name: str) -> None:
    door = await door_to(name)
    for _ in range(2):
        async with door.bound("acme") as hand:
            await hand.rows("CREATE TEMP TABLE scratch (n int) ON COMMIT DROP")
    await assert_fit(door)


async def test_a_superuser_is_never_bound(door_to: OpenDoor, name: str, notes_admin_url: str) -> None:
    door = await door_to(name, url=notes_admin_url)
    with pytest.raises(LeftBehind, match="no row policy applies") as refused:
        async with door.bound("acme") as hand:
            await hand.rows("SELECT 1")
    assert not refused.value.cleaned


async def test_a_login_that_is_not_the_declared_role_is_refused(door_to: OpenDoor, name: str) -> None:
    door = await door_to(name, binding=Binding(role="somebody_else"))
    with pytest.raises(LeftBehind, match="not the one declared"):
        async with door.bound("acme") as hand:
            await hand.rows("SELECT 1")


async def test_an_exhausted_pool_refuses_and_serves_again_when_a_connection_is_free(
    door_to: OpenDoor, name: str
) -> None:
    door = await door_to(name, size=1)

    async def starved() -> None:
        async with asyncio.timeout(3), door.bound("acme"):
            pytest.fail("there is no connection left")

    async with door.bound("acme") as hand:
        with pytest.raises(Exception) as refused:
            await asyncio.create_task(starved())
        assert re.search(r"(?i)timeout|timed out|couldn't get a connection", repr(refused.value))
        assert await seen(hand) == {"acme"}
    await assert_fit(door)


def break_if(fails: bool) -> None:
    if fails:
        raise Broken


async def switch(door: Door, times: int, seed: int) -> None:
    """Transactions of tenants in a random order, some of which fail; none sees a foreign row."""
    chance = SeededRandomness(seed)
    for _ in range(times):
        tenant = TENANTS[int(chance.uniform(0, 2.999))]
        fails = chance.uniform(0, 1) < 0.1
        try:
            async with door.bound(tenant) as hand:
                found = await seen(hand)
                assert found == {tenant}
                break_if(fails)
        except Broken:
            assert fails


async def test_tasks_and_threads_interleaved_never_see_a_foreign_row(door_to: OpenDoor, name: str) -> None:
    """Eight at once over three connections."""
    door = await door_to(name, size=3)
    waiting = asyncio.Semaphore(3)  # a pool's own wait is bounded, and that is another test

    @asynccontextmanager
    async def bound(tenant: object | None) -> AsyncIterator[Hand]:
        async with waiting, door.bound(tenant) as hand:
            yield hand

    class Shared:
        sync = door.sync

    shared = Shared()
    shared.bound = bound  # type: ignore[attr-defined]
    await asyncio.gather(*(switch(shared, 25, seed) for seed in range(8)))  # type: ignore[arg-type]
    await assert_fit(door)


@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_switching_tenants_on_one_connection_never_shows_a_foreign_row(
    door_to: OpenDoor, name: str, times: int
) -> None:
    door = await door_to(name)
    await switch(door, times, seed=times)
    await assert_fit(door)
