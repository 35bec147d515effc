"""What the stories of replays are told with."""

from dataclasses import replace

from tenantry.queue.model import (
    ClaimedJob,
    Ending,
    JobId,
    JobView,
    Node,
    ReplayEnd,
    ReplayTerms,
    Settlement,
)
from tenantry.testing.conformance.world import (
    ACME,
    World,
    job,
    settlement,
)

HOLDING = ReplayTerms("r1", park_after=5, hold_unknown=True)


async def dead_letter(world: World, node: Node, *, attempts: int, error_class: str = "http_503") -> JobId:
    """A job of a live submit that died after so many attempts, its books heard of."""
    (id_,) = await world.submit(job())
    for attempt in range(1, attempts + 1):
        (held,) = await world.claim(node)
        report = failing(held, error_class)
        dead = replace(report, ending=Ending.DEAD, reason="tried enough")
        await world.worker.settle(node, [dead if attempt == attempts else report])
    await world.room()
    return id_


def failing(held: ClaimedJob, error_class: str) -> Settlement:
    report = settlement(held, Ending.RETRY)
    assert report.failure is not None
    return replace(report, failure=replace(report.failure, error_class=error_class))


async def lose(world: World) -> None:
    """A worker takes everything that waits and is never heard of again."""
    node = await world.node()
    assert await world.claim(node, lease_for=2.0)
    await world.pass_time(3.0)
    await world.worker.reclaim(limit=100)


async def view_of(world: World, id_: JobId) -> JobView:
    view = await world.intake.job(ACME, id_)
    assert view is not None
    return view


def short(end: ReplayEnd) -> tuple[object, ...]:
    return end.job, end.kind, end.attempts, end.error_class, end.status, end.fingerprint
