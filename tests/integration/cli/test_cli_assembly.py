"""A node in this process: what ends it, what it survives, and how two share one database."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tenantry.cli.assembly import Node, assemble
from tenantry.cli.loops import LoopFailed
from tenantry.cli.settings import Address, NodeSettings, Role
from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.delivery.handlers import Handlers
from tenantry.kernel.errors import InvalidValue, StoreUnavailable
from tenantry.kernel.events import Event
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.lanes.model import Target
from tenantry.postgres.directory import PostgresDirectory, write_registry
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.events import NodeDraining, NodeLeft, PlannerElected, PlannerLeft, StoreFailed
from tenantry.queue.feeder import Feeder
from tenantry.queue.model import Accepted, ClaimedJob, NewJob

pytestmark = pytest.mark.needs_postgres

ACME = TenantDocument(TenantId("acme"), TierName("standard"))
E = TypeVar("E", bound=Event)


class Heard:
    """A sink that lets a test wait for the n-th event of a kind."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, kind: type[E], holds: Callable[[E], bool] = lambda _: True) -> E:
        async with asyncio.timeout(60):
            while True:
                for event in self.all(kind):
                    if holds(event):
                        return event
                self._changed.clear()
                await self._changed.wait()


class Work:
    """A handler `work` that says when it ran, and can be made to hold on."""

    def __init__(self) -> None:
        self.handlers = Handlers()
        self.ran: asyncio.Queue[bytes] = asyncio.Queue()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.handlers.register("work")(self._work)

    async def _work(self, job: ClaimedJob) -> None:
        self.ran.put_nowait(job.payload)
        await self.may_end.wait()

    async def next(self) -> bytes:
        async with asyncio.timeout(60):
            return await self.ran.get()


async def submit(node: Node, payload: bytes = b"1") -> None:
    answer = await node.admission.submit(ACME.tenant, [NewJob(Target("handler:work"), payload)])
    assert isinstance(answer, Accepted)


async def with_acme(node: Node) -> None:
    await write_registry(node.urls.admin, Registry(tenants=(ACME,)))
    await node.directory.refresh()


def settings(urls: DatabaseUrls, work: Work | None = None, **given: object) -> NodeSettings:
    handlers = (work or Work()).handlers
    return NodeSettings(database=urls, handlers=handlers, http=False, connections=2, **given)  # type: ignore[arg-type]


def kill_postmaster(data_dir: Path) -> None:
    pid = int((data_dir / "cluster" / "postmaster.pid").read_text().split("\n")[0])
    os.kill(pid, signal.SIGKILL)


async def test_a_loop_that_ends_takes_the_node_down_by_its_name(
    database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: Feeder) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Feeder, "run", broken)
    with pytest.raises(LoopFailed, match=r"the feeder loop ended.*ZeroDivisionError: a bug"):
        async with assemble(settings(database_urls)), asyncio.timeout(60):
            await asyncio.Event().wait()


async def test_a_node_refuses_what_the_planner_says_that_its_pool_sheds(database_urls: DatabaseUrls) -> None:
    async with assemble(settings(database_urls)) as node:
        await with_acme(node)
        await submit(node)
        row = "'shared', 3, 9.0, 1.0, 45.0, clock_timestamp(), clock_timestamp() + interval '60 s'"
        await node.database.side.execute(f"INSERT INTO tenantry.shedding VALUES ({row})")
        async with asyncio.timeout(60):
            while node.levels.level_of("shared") is None:  # noqa: ASYNC110 - its own loop looks, once a second
                await asyncio.sleep(0.02)
        answer = await node.admission.submit(ACME.tenant, [NewJob(Target("handler:work"), b"1")])
        assert isinstance(answer, Refusal)
        assert answer.rule is Rule.OVERLOAD


async def test_what_the_block_raises_is_what_comes_out(database_urls: DatabaseUrls) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with assemble(settings(database_urls)):
            raise KeyError("mine")


async def test_a_node_drains_before_it_goes(database_urls: DatabaseUrls) -> None:
    heard, work = Heard(), Work()
    work.may_end.clear()

    async def let_go_once_draining() -> None:
        await heard.until(NodeDraining)
        work.may_end.set()

    letting_go = asyncio.create_task(let_go_once_draining())
    async with assemble(settings(database_urls, work), events=heard) as node:
        await with_acme(node)
        await submit(node)
        await work.next()
    await letting_go
    assert [event.released for event in heard.all(NodeLeft)] == [0], "the job ended within the grace"
    assert len(heard.all(PlannerLeft)) == 1


async def test_a_cancelled_block_does_not_wait_for_running_jobs(database_urls: DatabaseUrls) -> None:
    heard, work = Heard(), Work()
    work.may_end.clear()

    async def serve() -> None:
        async with assemble(settings(database_urls, work, grace_for=3_600.0), events=heard) as node:
            await with_acme(node)
            await submit(node)
            await asyncio.Event().wait()

    serving = asyncio.create_task(serve())
    await work.next()
    serving.cancel()
    async with asyncio.timeout(30):
        with pytest.raises(asyncio.CancelledError):
            await serving


async def test_of_two_nodes_one_plans_and_the_other_takes_over_when_it_leaves(
    database_urls: DatabaseUrls,
) -> None:
    first, second, work = Heard(), Heard(), Work()
    async with assemble(settings(database_urls, work, name="one"), events=first) as one:
        await first.until(PlannerElected)
        async with assemble(settings(database_urls, work, name="two"), events=second) as two:
            await with_acme(one)
            await two.directory.refresh()
            await submit(two)
            await work.next()
            assert second.all(PlannerElected) == []
    async with assemble(settings(database_urls, work, name="two"), events=second) as two:
        await second.until(PlannerElected)
        await submit(two, b"2")
        assert await work.next() == b"2"


async def test_a_node_follows_the_registry_and_keeps_its_view_when_it_cannot_read(
    database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, followed, broken = Heard(), asyncio.Event(), asyncio.Event()
    read = PostgresDirectory.refresh

    async def watched(self: PostgresDirectory) -> bool:
        if broken.is_set():
            raise StoreUnavailable("away")
        changed = await read(self)
        if self.tenant(ACME.tenant) is not None:
            followed.set()
        return changed

    monkeypatch.setattr(PostgresDirectory, "refresh", watched)
    async with assemble(settings(database_urls, refresh_every=0.01), events=heard) as node:
        assert node.directory.tenant(ACME.tenant) is None
        await write_registry(database_urls.admin, Registry(tenants=(ACME,)))
        async with asyncio.timeout(60):
            await followed.wait()
        broken.set()
        await heard.until(StoreFailed, lambda event: event.loop == "directory")
        assert node.directory.tenant(ACME.tenant) == ACME


async def test_a_killed_embedded_server_is_started_again_under_the_node(server_home: Path) -> None:
    heard, work = Heard(), Work()
    own = NodeSettings(
        data_dir=server_home / "data", migrate=True, handlers=work.handlers, http=False, connections=2
    )
    async with assemble(own, events=heard) as node:
        await with_acme(node)
        await submit(node)
        await work.next()
        elected = len(heard.all(PlannerElected))
        kill_postmaster(server_home / "data")
        await heard.until(StoreFailed, lambda event: event.loop == "embedded server")
        await heard.until(PlannerElected, lambda event: len(heard.all(PlannerElected)) > elected)
        await submit(node, b"after")
        while await work.next() != b"after":
            pass  # the first may run again: its end may have been in the last fraction of a second


async def test_a_schema_that_is_behind_names_the_command(empty_database_url: str) -> None:
    urls = DatabaseUrls.derived(empty_database_url)
    with pytest.raises(StoreUnavailable, match="Run `tenantry migrate`"):
        async with assemble(settings(urls)):
            pass


async def test_an_address_in_use_is_the_callers_to_change(database_urls: DatabaseUrls) -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    taken = settings(database_urls, roles=frozenset({Role.API}), listen=Address("127.0.0.1", port))
    async with server:
        with pytest.raises(InvalidValue, match="Is it running already"):
            async with assemble(taken):
                pass


async def test_a_node_has_the_roles_that_it_was_given_and_no_others(database_urls: DatabaseUrls) -> None:
    async with assemble(settings(database_urls, roles=frozenset({Role.API}))) as node:
        assert (node.worker, node.planner, node.metrics_url) == (None, None, None)
        assert node.api_url is not None
    async with assemble(settings(database_urls, roles=frozenset({Role.WORKER}), metrics=Address())) as node:
        assert (node.planner, node.api_url) == (None, None)
        assert node.worker is not None
        assert node.metrics_url is not None
