"""A job whose target is a place in a broker goes there through a whole node, if its tenant may."""

import asyncio

import pytest

aiormq = pytest.importorskip("aiormq", reason="pip install aiormq")

from tenantry.cli.assembly import assemble  # noqa: E402
from tenantry.cli.settings import Address, NodeSettings, Role  # noqa: E402
from tenantry.config.model import TargetSettings, TenantDocument  # noqa: E402
from tenantry.config.registry import Registry  # noqa: E402
from tenantry.kernel.errors import InvalidValue  # noqa: E402
from tenantry.kernel.events import Event  # noqa: E402
from tenantry.kernel.tenant import TenantId, TierName  # noqa: E402
from tenantry.lanes.model import Target  # noqa: E402
from tenantry.postgres.directory import write_registry  # noqa: E402
from tenantry.postgres.urls import DatabaseUrls  # noqa: E402
from tenantry.queue.events import JobsSettled  # noqa: E402
from tenantry.queue.model import Accepted, JobState, NewJob  # noqa: E402
from tenantry.replay.connections import parse_connections  # noqa: E402

pytestmark = pytest.mark.needs_postgres

ONCE = TargetSettings(max_attempts=1)
ACME, OTHER = (TenantDocument(TenantId(name), TierName("standard"), ONCE) for name in ("acme", "other"))


async def test_a_job_is_published_for_a_tenant_that_may_and_dies_for_one_that_may_not(
    rabbitmq: str, database_urls: DatabaseUrls
) -> None:
    link = await aiormq.connect(rabbitmq)
    channel = await link.channel()
    queue = (await channel.queue_declare(exclusive=True)).queue
    outside = parse_connections(
        f'[connections.mq]\nkind = "rabbitmq"\nurl = "{rabbitmq}"\n'
        f'[connections.mq.tenants.acme]\ntargets = ["/{queue}"]\n'
    )
    await write_registry(database_urls.admin, Registry(tenants=(ACME, OTHER)))
    ended = asyncio.Semaphore(0)

    def hear(event: Event) -> None:
        if isinstance(event, JobsSettled):
            ended.release()

    settings = NodeSettings(
        database=database_urls, http=False, outside=outside, listen=Address("127.0.0.1", 0),
        roles=frozenset({Role.PLANNER, Role.WORKER, Role.FEEDER}),
    )  # fmt: skip
    async with assemble(settings, events=hear) as node, asyncio.timeout(60):
        target = Target(f"amqp:mq//{queue}")
        states = []
        for tenant in (ACME, OTHER):
            answer = await node.admission.submit(tenant.tenant, [NewJob(target, b"{}")])
            assert isinstance(answer, Accepted)
            while True:
                view = await node.intake.job(tenant.tenant, answer.ids[0])
                assert view is not None
                if view.state in {JobState.DELIVERED, JobState.DEAD}:
                    break
                await ended.acquire()
            states.append((view.state, view.reason.partition(" ")[0]))
        assert states == [(JobState.DELIVERED, ""), (JobState.DEAD, "address_not_allowed")]
        with pytest.raises(InvalidValue, match="amqp:CONNECTION/"):
            await node.admission.submit(ACME.tenant, [NewJob(Target("amqp:mq/x"), b"{}")])
    assert (await channel.basic_get(queue, no_ack=True)).body == b"{}"
    assert (await channel.basic_get(queue, no_ack=True)).body == b""
    await link.close()
