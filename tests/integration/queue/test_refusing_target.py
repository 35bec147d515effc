"""Case Q16, over HTTP and on a real database: a target that always answers 403."""

import pytest
from queue_world import ACME, Doing, Queue, register_tenants, running, until

from tenantry.config.model import TargetSettings
from tenantry.delivery.guard import AddressRule
from tenantry.delivery.http import DeliverySettings, HttpDelivery
from tenantry.delivery.router import Router
from tenantry.lanes.model import Target
from tenantry.queue.model import ClaimedJob, JobState, NewJob
from tenantry.testing.target import Target as HttpTarget

pytestmark = pytest.mark.needs_postgres

THRICE = TargetSettings(max_attempts=3, backoff_base=0.05, backoff_cap=0.05)


async def test_three_attempts_at_a_target_that_says_403_are_exactly_three_and_then_a_dead_letter(
    queue: Queue,
) -> None:
    await register_tenants(queue.urls, ACME, targets=THRICE)
    await queue.directory.refresh()
    settings = DeliverySettings(addresses=AddressRule(allow_private=True))
    async with HttpTarget() as target, HttpDelivery(settings) as http:
        target.at("/closed").answers(403, body=b"not for you")
        router = Router(http=http)

        async def deliver(job: ClaimedJob) -> object:
            return await router.execute(job, THRICE)

        executor = Doing(deliver)  # type: ignore[arg-type]
        async with running(queue, executor):
            (id_,) = await queue.submit(ACME, [NewJob(Target(target.url + "/closed"), b"{}")])
            await until(lambda: _dead(queue))
        assert len(executor.begun) == 3
    assert [job.attempt for job in executor.begun] == [1, 2, 3]
    view = await queue.intake.job(ACME, id_)
    assert view is not None
    assert (view.state, view.attempts, view.status) == (JobState.DEAD, 3, 403)
    assert view.reason.startswith("http_403 after 3 attempts")
    assert [(each.number, each.status, each.excerpt) for each in view.history] == [
        (number, 403, "not for you") for number in (1, 2, 3)
    ]


async def _dead(queue: Queue) -> bool:
    return (await queue.operator.counts())[JobState.DEAD] == 1
