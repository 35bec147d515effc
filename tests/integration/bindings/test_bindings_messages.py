"""What a binding costs on the wire: no message of its own, and none at all where it refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from binding_wire import CountingProxy
from binding_world import OpenDoor

from tenantry.bindings import TenantMissing
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
