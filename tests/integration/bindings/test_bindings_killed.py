"""A server process that is killed takes every connection with it; none of them comes back with a tenant."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator

import psycopg
import pytest
from binding_doors import DOORS, Door
from binding_world import APP, OpenDoor, as_login, made_database
from test_bindings_conformance import assert_fit, pid_of

from tenantry.postgres.embedded import EmbeddedServer

pytestmark = pytest.mark.needs_postgres


@pytest.fixture
def own_url(embedded_server_factory: Callable[..., EmbeddedServer]) -> Iterator[str]:
    """The application's URL of a server that nobody else uses."""
    with embedded_server_factory(made=True) as server:
        yield as_login(made_database(server.url()), APP)


async def test_kill_9_of_a_backend_in_mid_transaction_of_every_driver_leaves_no_tenant(
    door_to: OpenDoor, own_url: str
) -> None:
    """PostgreSQL then ends all its processes and recovers; every driver is in a transaction then."""
    doors: list[Door] = [await door_to(name, url=own_url) for name in DOORS]
    inside, killed = asyncio.Barrier(len(doors) + 1), asyncio.Event()
    pids: list[int] = []

    async def work(door: Door) -> None:
        async with door.bound("acme") as hand:
            pids.append(await pid_of(hand))
            await inside.wait()
            await killed.wait()
            await hand.rows("SELECT 1")

    async with asyncio.timeout(30):
        tasks = [asyncio.create_task(work(door)) for door in doors]
        await inside.wait()
        os.kill(pids[0], signal.SIGKILL)
        await asyncio.to_thread(until_recovered, own_url)
        killed.set()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in ended if not isinstance(each, Exception)] == []
    for door in doors:
        await assert_fit(door)


def until_recovered(url: str) -> None:
    """Returns when the server takes logins again, after the kill has reached it."""
    gone = False
    while True:
        try:
            with psycopg.connect(url):
                if gone:
                    return
        except psycopg.OperationalError:
            gone = True
