"""A replay's store over a queue's, with the verbs of the stories."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.queue.model import Attempt, ClaimedJob, Ending, JobId, Node, Settlement
from tenantry.replay.dedup import LIFETIME, key_of
from tenantry.replay.model import (
    Counts,
    Fate,
    FedWindow,
    Lease,
    Membership,
    Message,
    Position,
    Quotas,
    ReplaySpec,
    ReplayState,
    ReplayView,
    SourceAddress,
    Staged,
    Window,
)
from tenantry.replay.ports import ReplayDesk, ReplayStore
from tenantry.testing.conformance.world import ACME, HOOK, World, batch, settlement

SOURCE = SourceAddress("jsonl", "dead.jsonl")
LEASE_FOR: Seconds = 60.0
NO_QUOTAS = Quotas()
REPORT = '{"sampled": 1}'
HOUR: Seconds = 3_600.0
DAY: Seconds = 86_400.0


@dataclass(slots=True)
class ReplayWorld:
    """A queue's world, and the two sides of the replays' store beside it."""

    queue: World
    desk: ReplayDesk
    store: ReplayStore
    node: Node | None = field(default=None)

    async def planned(self, tenant: TenantId = ACME, **spec: Any) -> ReplayView:
        return await self.desk.plan(spec_of(tenant, **spec), Membership("end", 7, True), REPORT)

    async def started(self, quotas: Quotas = NO_QUOTAS, **spec: Any) -> ReplayView:
        view = await self.planned(**spec)
        started = await self.desk.start(view.spec.tenant, view.id, quotas)
        assert started is not None
        return started

    async def running(self, **spec: Any) -> Lease:
        """A replay that runs, and the lease on it."""
        return await self.leased(await self.started(**spec))

    async def leased(self, view: ReplayView, holder: str = "one") -> Lease:
        taken = {each.id: each for each in await self.store.take(holder, LEASE_FOR, limit=100)}
        return Lease(view.id, taken[view.id].token)

    async def view(self, lease: Lease, tenant: TenantId = ACME) -> ReplayView:
        view = await self.desk.replay(tenant, lease.replay)
        assert view is not None
        return view

    async def offer(self, lease: Lease, *messages: Staged, **window: Any) -> FedWindow:
        """Feed what is expected to be judged."""
        fed = await self.store.feed(lease, window_of(*messages, **window))
        assert fed is not None
        return fed

    async def fates(self, lease: Lease, *messages: Staged, **window: Any) -> list[Fate]:
        return list((await self.offer(lease, *messages, **window)).fates)

    async def counts(self, lease: Lease) -> Counts:
        return (await self.store.counts([lease.replay]))[lease.replay]

    async def fold(self, lease: Lease) -> None:
        while await self.store.fold(lease):
            pass

    async def move(self, lease: Lease, state: ReplayState, **options: Any) -> ReplayView | None:
        return await self.store.move(lease, state, running_for=1.5, progress="{}", **options)

    async def finish(self, lease: Lease) -> ReplayView:
        assert await self.move(lease, ReplayState.DRAINING)
        finished = await self.move(lease, ReplayState.FINISHED)
        assert finished is not None
        return finished

    # -- the queue's side ------------------------------------------------------------------------------

    async def worker(self) -> Node:
        if self.node is None:
            self.node = await self.queue.node(slots=1_000)
        return self.node

    async def claim(self, count: int = 1_000) -> list[ClaimedJob]:
        return await self.queue.claim(await self.worker(), count)

    async def run(self, ending: Ending, count: int = 1_000, **failure: Any) -> list[ClaimedJob]:
        """Claim up to ``count`` jobs and settle them all so."""
        held = await self.claim(count)
        await self.settle(held, ending, **failure)
        return held

    async def settle(self, held: list[ClaimedJob], ending: Ending, **failure: Any) -> None:
        ends = [end_of(job, ending, **failure) for job in held]
        assert await self.queue.worker.settle(await self.worker(), ends) == len(held)

    async def lose_worker(self) -> None:
        """Whoever holds jobs is gone, and they are taken back."""
        await self.queue.pass_time(31.0)
        await self.queue.worker.reclaim(limit=1_000)
        self.node = await self.queue.restarted(self.node, slots=1_000) if self.node else None

    async def dead_letters(self, count: int, tenant: TenantId = ACME) -> list[JobId]:
        """Jobs that died once."""
        ids = await self.queue.submit(*batch(count), tenant=tenant)
        held = [job for job in await self.claim() if job.id in ids]
        await self.settle(held, Ending.DEAD)
        return list(ids)


def spec_of(tenant: TenantId = ACME, **spec: Any) -> ReplaySpec:
    return ReplaySpec(tenant=tenant, source=SOURCE, **spec)


def staged(
    id_: str = "m", body: bytes = b"{}", *, target: Target = HOOK, tenant: TenantId = ACME, **of: Any
) -> Staged:
    """A message from elsewhere."""
    job = JobId(SystemRandomness().time_ordered_id())
    attempts = of.pop("attempts", 0)
    message = Message(id=id_, payload=body, target=target, attempts=attempts)
    plain = Staged(
        key=key_of(tenant, target, id_, body),
        job=job,
        message=message,
        target=target,
        payload=body,
        headers={},
        origin="o",
    )
    return replace(plain, **of)


def letter(job: JobId, body: bytes = b"{}", **of: Any) -> Staged:
    """A dead letter of our own."""
    plain = staged(job, body, **of)
    return replace(plain, job=job, message=replace(plain.message, letter=job))


def several(count: int, prefix: str = "m", **of: Any) -> list[Staged]:
    return [staged(f"{prefix}{n}", **of) for n in range(count)]


def window_of(*messages: Staged, **window: Any) -> Window:
    plain = Window(
        messages=messages,
        position=None,
        left=0,
        exhausted=False,
        quotas=NO_QUOTAS,
        lifetime_for=LIFETIME,
    )
    return replace(plain, **window)


def at(position: str) -> Position:
    return Position(position)


def end_of(
    job: ClaimedJob, ending: Ending, *, error: str = "http_422", print_: str = "p", retry_for: Seconds = 0.0
) -> Settlement:
    """An end by the message's own fault, where it fails."""
    plain = settlement(job, ending, retry_for=retry_for)
    if plain.failure is None:
        return plain
    failure: Attempt = replace(plain.failure, error_class=error, status=422)
    return replace(plain, failure=failure, status=422, fingerprint=print_ if job.replay else "")


def where(counts: Counts) -> Mapping[str, int]:
    """The counts that are not zero, of those that add up."""
    names = ("duplicate", "waiting", "in_flight", "delivered", "parked", "dead", "returned")
    return {name: getattr(counts, name) for name in names if getattr(counts, name)}
