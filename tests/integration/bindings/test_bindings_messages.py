"""What a binding costs on the wire: no message of its own, and none at all where it refuses."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from binding_wire import CountingProxy
from binding_world import BINDING, OpenDoor

from tenantry.bindings import TenantMissing
from tenantry.bindings.asyncpg import Tenants
from tenantry.kernel.errors import InvalidValue

pytestmark = pytest.mark.needs_postgres


@pytest.fixture
def proxy(server_home: Path, notes_url: str) -> Iterator[CountingProxy]:
    proxy = CountingProxy(server_home, notes_url)
    yield proxy
    proxy.close()


async def test_a_bound_transaction_takes_the_round_trips_of_an_unbound_one(
    door_to: OpenDoor, name: str, proxy: CountingProxy
) -> None:
    """BEGIN, the statement, COMMIT."""
    door = await door_to(name, url=proxy.url)
    for tenant in ("acme", "globex", "acme"):
        async with door.bound(tenant) as hand:
            await hand.rows("SELECT id FROM notes")
    proxy.flights = 0
    async with door.bound("globex") as hand:
        await hand.rows("SELECT id FROM notes")
    assert proxy.flights == 3


async def test_the_reset_of_asyncpgs_own_pool_comes_with_commit_and_with_no_other_end(
    proxy: CountingProxy,
) -> None:
    """Once for each transaction, however it ends; and a use of the pool without us resets as ever."""
    async with asyncpg.create_pool(proxy.url, min_size=1, max_size=1) as pool:
        tenants = Tenants(pool, BINDING)

        async def bound(*, fails: bool = False) -> int:
            with suppress(ZeroDivisionError):
                async with tenants.transaction("acme") as connection:
                    await connection.execute("SET lock_timeout = 7")
                    if fails:
                        raise ZeroDivisionError
            return await flights()

        async def flights() -> int:
            taken, proxy.flights = proxy.flights, 0
            return taken

        async def unbound(sql: str) -> Any:
            async with pool.acquire() as connection:
                return await connection.fetchval(sql)

        for _ in range(2):
            await bound()
        assert await bound() == 3
        assert await bound(fails=True) == 4
        assert await unbound("SELECT set_config('lock_timeout', '8', false)") == "8ms"
        assert await flights() > 1
        assert await unbound("SHOW lock_timeout") == "0"
        for fails in (False, True):
            await bound(fails=fails)
            assert await unbound("SHOW lock_timeout") == "0"


async def test_a_pool_with_a_reset_of_its_own_goes_its_own_way(proxy: CountingProxy) -> None:
    seen: list[object] = []

    async def reset(connection: Any) -> None:
        seen.append(await connection.fetchval("SHOW lock_timeout"))
        await connection.execute("RESET lock_timeout")

    async with asyncpg.create_pool(proxy.url, min_size=1, max_size=1, reset=reset) as pool:
        for _ in range(2):
            async with Tenants(pool, BINDING).transaction("acme") as connection:
                await connection.execute("SET lock_timeout = 7")
    assert seen == ["7ms", "7ms"]


async def test_what_is_refused_sends_nothing(door_to: OpenDoor, name: str, proxy: CountingProxy) -> None:
    door = await door_to(name, url=proxy.url)
    async with door.bound("acme") as hand:
        await hand.rows("SELECT id FROM notes")
    proxy.flights = 0
    with pytest.raises(TenantMissing):
        async with door.bound(None):
            pytest.fail("there is no tenant")
    with pytest.raises(InvalidValue):
        async with door.bound("no tenant's name"):
            pytest.fail("there is no such tenant")
    assert proxy.flights == 0
