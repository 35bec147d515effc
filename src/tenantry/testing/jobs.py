"""Jobs as a worker holds them, for tests of handlers and of delivery."""

from dataclasses import replace
from typing import Any

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import tenant_id
from tenantry.lanes.model import Target
from tenantry.queue.model import ClaimedJob, ClaimId, FlowId, JobClass, JobId, Seq

_JOB = ClaimedJob(
    claim=ClaimId(1),
    token=1,
    flow=FlowId(1),
    seq=Seq(1),
    id=JobId("019b7c5e-7a30-7c11-8b56-3f1f0c6a2d10"),
    tenant=tenant_id("acme"),
    target=Target("https://example.com/hook"),
    job_class=JobClass.LIVE,
    attempt=1,
    payload=b'{"hello":"world"}',
    content_type="application/json",
    submitted_at=Timestamp(1_767_225_600.0),
    ordered=False,
    waited_for=0.0,
)


def claimed_job(target: str = "https://example.com/hook", **changes: Any) -> ClaimedJob:
    """The first attempt of one small JSON job of tenant ``acme``, with these fields of it changed.

    Raises TypeError for a field that :class:`~tenantry.queue.model.ClaimedJob` does not have.
    """
    return replace(_JOB, target=Target(target), **changes)
