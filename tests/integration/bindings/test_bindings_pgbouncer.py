"""Behind a PgBouncer in transaction mode, where each transaction may meet another session."""

import asyncio
from pathlib import Path

import asyncpg
import pytest
from binding_wire import pgbouncer
from binding_world import BINDING, OpenDoor
from test_bindings_conformance import TENANTS, seen, switch

from tenantry.bindings import LeftBehind
from tenantry.bindings.asyncpg import Tenants

pytestmark = pytest.mark.needs_postgres


async def test_many_callers_over_two_sessions_never_see_a_foreign_row(
    door_to: OpenDoor, name: str, notes_url: str, server_home: Path
) -> None:
    with pgbouncer(server_home, notes_url, size=2) as url:
        door = await door_to(name, size=4, url=url)
        await asyncio.gather(*(switch(door, 20, seed) for seed in range(4)))


async def test_what_another_client_left_on_a_session_is_refused_and_cleaned_there(
    door_to: OpenDoor, name: str, notes_url: str, server_home: Path
) -> None:
    """The cleaning happens in the transaction that found it: the next one may be elsewhere."""
    with pgbouncer(server_home, notes_url, size=1) as url:
        careless, door = await door_to(name, url=url), await door_to(name, url=url)
        for tenant in TENANTS:
            async with careless.raw() as hand:
                await hand.rows("SET app.tenant_id = 'globex'")
            with pytest.raises(LeftBehind) as refused:
                async with door.bound(tenant) as hand:
                    await hand.rows("SELECT 1")
            assert refused.value.cleaned
            async with door.bound(tenant) as hand:
                assert await seen(hand) == {tenant}


async def test_asyncpgs_own_pool_resets_the_very_session_that_it_committed_on(
    notes_url: str, server_home: Path
) -> None:
    """Its reset comes with COMMIT: as a message of its own it may meet another session."""
    with pgbouncer(server_home, notes_url, size=2) as url:
        async with asyncpg.create_pool(url, min_size=4, max_size=4, statement_cache_size=0) as pool:
            tenants = Tenants(pool, BINDING)

            async def work(tenant: str) -> None:
                for _ in range(10):
                    async with tenants.transaction(tenant) as connection:
                        assert await connection.fetchval("SHOW lock_timeout") == "0"
                        found = await connection.fetch("SELECT DISTINCT tenant_id FROM notes")
                        assert [row[0] for row in found] == [tenant]
                        await connection.execute("SET lock_timeout = 7")

            await asyncio.gather(*(work(tenant) for tenant in TENANTS * 2))
