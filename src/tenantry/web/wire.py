"""What stands in bodies: requests as they are read, answers as they are written, and their schemas.

Ranges are checked by the queue's own rules, so the schemas only tell of them: one rule, one home. Instants
are RFC 3339 in UTC, durations seconds.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.kernel.instant import Timestamp, as_datetime
from tenantry.lanes.orders import LARGEST_CEILING, LONGEST_REASON, Action, OrderRecord
from tenantry.lanes.table import LaneRow, LaneState
from tenantry.queue.explain import Reason
from tenantry.queue.model import Attempt, BulkSet, JobClass, JobState, JobView

CLASSES = tuple(each.name.lower() for each in JobClass)


def _told(text: str, **schema: Any) -> Meta:
    return Meta(description=text, extra_json_schema=schema or None)


_Text = _told("1 to 255 bytes, without NUL", minLength=1, maxLength=255)


class NewJob(Struct, frozen=True, forbid_unknown_fields=True):
    """One job. Give `payload` or `payload_base64`, not both."""

    target: Annotated[
        str,
        _told(
            "An http(s) URL, `handler:NAME`, or a name that the tenant's document declares",
            minLength=1,
            maxLength=2_048,
        ),
    ]
    payload: Annotated[
        Raw | UnsetType, _told("Any JSON value. The target gets its bytes exactly as they stand here")
    ] = UNSET
    payload_base64: Annotated[
        str | UnsetType,
        _told("Any bytes, in base64 with padding (RFC 4648, section 4)", contentEncoding="base64"),
    ] = UNSET
    content_type: Annotated[
        str | UnsetType,
        _told("For the target. Unless given: application/json, with payload_base64 application/octet-stream"),
    ] = UNSET
    job_class: Annotated[str, _told("Order of service across the tenant's lanes", enum=list(CLASSES))] = (
        msgspec.field(default="live", name="class")
    )
    delay_for: Annotated[
        float, _told("Seconds until it is due: 0 to 366 days", minimum=0, maximum=366 * 86_400)
    ] = 0.0
    cost: Annotated[
        float | None, _told("Expected slot-seconds; null to go by the lane's average", exclusiveMinimum=0)
    ] = None
    ordering_key: Annotated[str | None, _Text] = None
    idempotency_key: Annotated[str | None, _Text] = None


class NewJobs(Struct, frozen=True, forbid_unknown_fields=True):
    """Many jobs. Each element is a `NewJob`."""

    jobs: list[Raw]


class JobAccepted(Struct, frozen=True, omit_defaults=True):
    """Durably accepted. `existing`: the idempotency key answered with a job submitted before."""

    id: str
    state: str
    status_url: str
    existing: bool = False


class JobsAccepted(Struct, frozen=True):
    """One entry a job, in the order sent."""

    jobs: list[JobAccepted]


class FailedAttempt(Struct, frozen=True):
    """A failed attempt."""

    number: int
    ended_at: datetime
    busy_for: float
    error_class: str
    status: int | None
    excerpt: str


class Job(Struct, frozen=True):
    """A job as its owner sees it. Of an ended job some fields are no longer kept and are null."""

    id: str
    state: JobState
    target: str | None
    job_class: str | None = msgspec.field(name="class")
    attempts: int
    submitted_at: datetime | None
    due_at: datetime | None
    ended_at: datetime | None
    reason: str
    status: int | None
    history: list[FailedAttempt]
    status_url: str


class JobList(Struct, frozen=True):
    """The newest first."""

    jobs: list[Job]


class JobCancelled(Struct, frozen=True):
    """It is cancelled, now or before."""

    id: str
    state: JobState


class WaitReason(Struct, frozen=True):
    """One thing that the job waits for. `until`: when it frees, where known."""

    waits_for: str
    detail: str
    until: datetime | None


class Explanation(Struct, frozen=True):
    """Why a job waits, most decisive first. Empty for one that does not wait."""

    id: str
    state: JobState
    reasons: list[WaitReason]


class BulkProgress(Struct, frozen=True):
    """total = stored + queued + delivered + dead + cancelled."""

    id: str
    status_url: str
    total: int
    stored: int
    queued: int
    delivered: int
    dead: int
    cancelled: int
    created_at: datetime


class Lane(Struct, frozen=True):
    """One tenant's way to one target. Latencies in seconds, rates a second; null where it is not known."""

    tenant: str
    target: str
    state: LaneState
    reason: str
    frees_at: datetime | None
    limit: int | None
    ceiling: int | None
    in_flight: int
    waiting: int
    delayed: int
    reference_latency: float | None
    latency: float | None
    breaker: BreakerState
    rate: float | None
    rate_limit: float | None


class LaneList(Struct, frozen=True):
    """`next_url`: where the table goes on, with the sort `name`; null at its end."""

    lanes: list[Lane]
    next_url: str | None


class NewOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """An order. `tenant`, `target` or, for one lane, both."""

    action: Annotated[str, _told("What to do with each of the lanes", enum=list(Action))]
    reason: Annotated[
        str, _told("One line: why. Tenants whose jobs it stops see it", minLength=1, maxLength=LONGEST_REASON)
    ]
    tenant: Annotated[str | None, _told("Only lanes of this tenant")] = None
    target: Annotated[str | None, _told("Only lanes to this target")] = None
    ceiling: Annotated[
        int | None,
        _told("With `ceiling`: the most in flight in each lane", minimum=1, maximum=LARGEST_CEILING),
    ] = None


class Order(Struct, frozen=True):
    """An order as it was given. `by`: the name of the operator's key, or what the command line was told."""

    number: int
    action: Action
    tenant: str | None
    target: str | None
    ceiling: int | None
    reason: str
    by: str
    at: datetime


class OrderList(Struct, frozen=True):
    """The newest first. `next_url`: where the log goes on; null at its end, and for the orders that stand."""

    orders: list[Order]
    next_url: str | None


class Health(Struct, frozen=True):
    """The process is there; for `ready` its store answers too."""

    status: str


class InvalidField(Struct, frozen=True, omit_defaults=True):
    """One value that is not accepted."""

    path: str
    accepted: str
    hint: str = ""
    line: int | None = None


class Problem(Struct, frozen=True, omit_defaults=True):
    """RFC 9457. Which members there are depends on `type`."""

    type: str
    title: str
    status: int
    detail: str
    rule: Annotated[str | None, _told("The rule that refused")] = None
    retry_after: Annotated[float | None, _told("Seconds; the Retry-After header is this rounded up")] = None
    errors: list[InvalidField] | None = None
    state: Annotated[str | None, _told("The state in which a job was found")] = None
    bulk_url: Annotated[str | None, _told("Where a set larger than the bound can go")] = None
    line: Annotated[int | None, _told("Where a malformed body breaks off, from 1")] = None
    column: int | None = None
    limit: Annotated[int | None, _told("The largest body, in bytes")] = None
    instance: Annotated[str | None, _told("Names one fault in the operator's log")] = None


def job_url(job: str) -> str:
    return f"/v1/jobs/{job}"


def bulk_url(bulk: str) -> str:
    return f"/v1/bulk/{bulk}"


def job_out(view: JobView) -> Job:
    """A job as JSON shows it."""
    return Job(
        id=view.id,
        state=view.state,
        target=view.target,
        job_class=None if view.job_class is None else view.job_class.name.lower(),
        attempts=view.attempts,
        submitted_at=_moment(view.submitted_at),
        due_at=_moment(view.due_at),
        ended_at=_moment(view.ended_at),
        reason=view.reason,
        status=view.status,
        history=[_attempt_out(attempt) for attempt in view.history],
        status_url=job_url(view.id),
    )


def bulk_out(bulk: BulkSet) -> BulkProgress:
    """A bulk set as JSON shows it."""
    return BulkProgress(
        id=bulk.id,
        status_url=bulk_url(bulk.id),
        total=bulk.total,
        stored=bulk.stored,
        queued=bulk.queued,
        delivered=bulk.delivered,
        dead=bulk.dead,
        cancelled=bulk.cancelled,
        created_at=as_datetime(bulk.created_at),
    )


def reasons_out(reasons: Sequence[Reason]) -> list[WaitReason]:
    return [WaitReason(reason.waits_for.value, reason.detail, _moment(reason.until)) for reason in reasons]


def lane_out(row: LaneRow) -> Lane:
    """A lane as JSON shows it."""
    return Lane(
        tenant=row.lane.tenant,
        target=row.lane.target,
        state=row.state,
        reason=row.reason,
        frees_at=_moment(row.frees_at),
        limit=row.limit,
        ceiling=row.ceiling,
        in_flight=row.in_flight,
        waiting=row.waiting,
        delayed=row.delayed,
        reference_latency=row.reference,
        latency=row.latency,
        breaker=row.breaker,
        rate=row.rate,
        rate_limit=row.rate_limit,
    )


def order_out(record: OrderRecord) -> Order:
    """An order as JSON shows it."""
    order = record.order
    return Order(
        number=record.number,
        action=order.action,
        tenant=order.scope.tenant,
        target=order.scope.target,
        ceiling=order.ceiling,
        reason=order.reason,
        by=order.by,
        at=as_datetime(record.at),
    )


def _attempt_out(attempt: Attempt) -> FailedAttempt:
    return FailedAttempt(
        number=attempt.number,
        ended_at=as_datetime(attempt.ended_at),
        busy_for=attempt.busy_for,
        error_class=attempt.error_class,
        status=attempt.status,
        excerpt=attempt.excerpt,
    )


def _moment(at: Timestamp | None) -> datetime | None:
    return None if at is None else as_datetime(at)
