"""What a client of the HTTP API sends, reads and retries. Pure; :mod:`tenantry.delivery.client` is the loop.

The records are the API's own, not the queue's: a client may be older than its server, so fields that it
does not know are passed over.
"""

from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypedDict, TypeVar, Unpack

import msgspec

from tenantry.algorithms.backoff import Backoff, after_hint
from tenantry.kernel.errors import DependencyError, InvalidValue, PeerError, UsageError
from tenantry.kernel.instant import Seconds
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.lanes.model import Target
from tenantry.lanes.retry import LONGEST_HINT
from tenantry.queue.model import ENDS, JobClass, JobState, NewJob

T = TypeVar("T")

JSON: Final = "application/json"
PREFIX: Final = "urn:tenantry:problem:"
RETRIED: Final = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may go through."""


class CredentialRefused(UsageError):
    """The API key is not accepted, or not for this. ``problem``: the name of the answer's problem."""

    def __init__(self, problem: str, detail: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}: {detail}")


class RequestRefused(UsageError):
    """The request cannot be accepted as it is, for a reason that names no single value."""

    def __init__(self, status: int, problem: str, detail: str) -> None:
        self.status, self.problem = status, problem
        super().__init__(f"{status} {problem}: {detail}")


class ServiceUnavailable(DependencyError):
    """No answer, or none but "later", until the attempts or the time ran out. ``attempts``: how many were
    made.

    What a submit asked for may have been accepted all the same: submit again under the same idempotency key.
    """

    def __init__(self, reason: str, attempts: int) -> None:
        self.reason, self.attempts = reason, attempts
        super().__init__(f"no answer to rely on after {attempts} attempts: {reason}")


class ServiceFault(PeerError):
    """The server answered what a Tenantry server does not, or reported a fault of its own."""

    def __init__(self, status: int, detail: str, instance: str = "") -> None:
        self.status, self.instance = status, instance
        super().__init__(f"{status}: {detail} {instance}".rstrip())


@dataclass(frozen=True, slots=True)
class Ticket:
    """An accepted job. ``existing``: its idempotency key answered with a job submitted before."""

    id: str
    state: JobState
    existing: bool = False


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One failed attempt of a job."""

    number: int
    ended_at: datetime
    busy_for: Seconds
    error_class: str
    status: int | None = None
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its owner sees it. ``reason`` says why a dead one died."""

    id: str
    state: JobState
    attempts: int
    target: str | None = None
    submitted_at: datetime | None = None
    due_at: datetime | None = None
    ended_at: datetime | None = None
    reason: str = ""
    status: int | None = None
    history: tuple[FailedAttempt, ...] = ()

    @property
    def ended(self) -> bool:
        return self.state in ENDS


@dataclass(frozen=True, slots=True)
class BulkProgress:
    """total = stored + queued + delivered + dead + cancelled."""

    id: str
    total: int
    stored: int
    queued: int
    delivered: int
    dead: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class WaitReason:
    """One thing that a job waits for, and when it frees, where known."""

    waits_for: str
    detail: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Retries:
    """How a client tries again. Durations in seconds.

    ``attempts``: at most, >= 1. ``deadline_for``: for the whole call, waits included; what would end later is
    not begun. ``attempt_for``: for one exchange. ``backoff``: where the server does not say when to come
    back.
    """

    attempts: int = 8
    deadline_for: Seconds = 60.0
    attempt_for: Seconds = 15.0
    backoff: Backoff = field(default_factory=lambda: Backoff(0.2, 10.0))

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidValue("retries.attempts", self.attempts, "a whole number >= 1")
        for name in ("deadline_for", "attempt_for"):
            if not getattr(self, name) > 0:
                raise InvalidValue(f"retries.{name}", getattr(self, name), "seconds above 0")

    def wait_for(self, failed: int, hint: Seconds | None, draw: float) -> Seconds:
        """Seconds before the next attempt after ``failed`` >= 1 attempts: what the server asked for, spread
        over the next tenth and never early; else the backoff. ``draw`` is uniform in [0, 1]. Pure."""
        if hint is None:
            return self.backoff.delay(failed, draw)
        return after_hint(hint, draw, cap=LONGEST_HINT)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it came: ``retry_after`` is its ``Retry-After`` in seconds, where there is one."""

    status: int
    body: bytes = field(repr=False)
    retry_after: Seconds | None = None


class JobFields(TypedDict, total=False):
    """The fields of a job beside its target and payload; see :class:`~tenantry.queue.model.NewJob`."""

    job_class: JobClass
    delay_for: Seconds
    cost: Seconds | None
    ordering_key: str | None
    idempotency_key: str | None
    content_type: str


class _Problem(msgspec.Struct):
    type: str = ""
    detail: str = ""
    rule: str | None = None
    retry_after: float | None = None
    errors: list[dict[str, Any]] = []
    state: str | None = None
    instance: str = ""


def json_job(target: str, payload: object, **fields: Unpack[JobFields]) -> NewJob:
    """A job whose payload is ``payload`` as JSON. Raises TypeError for what has no JSON form. Pure."""
    return NewJob(Target(target), msgspec.json.encode(payload), **fields)


def encode_job(job: NewJob, *, on_one_line: bool = False) -> bytes:
    """A job as the API reads it. The target gets the payload's bytes exactly: JSON goes as it stands, other
    bytes in base64. ``on_one_line``: for NDJSON. Pure, O(payload)."""
    fields: dict[str, object] = {"target": job.target, "content_type": job.content_type}
    if job.job_class is not JobClass.LIVE:
        fields["class"] = job.job_class.name.lower()
    if job.delay_for:
        fields["delay_for"] = job.delay_for
    named = {"cost": job.cost, "ordering_key": job.ordering_key, "idempotency_key": job.idempotency_key}
    fields |= {name: value for name, value in named.items() if value is not None}
    if _can_stand_as_it_is(job.payload, on_one_line=on_one_line):
        fields["payload"] = msgspec.Raw(job.payload)
    else:
        fields["payload_base64"] = b64encode(job.payload).decode("ascii")
    return msgspec.json.encode(fields)


def encode_jobs(jobs: list[NewJob]) -> bytes:
    """Many jobs as one body. Pure."""
    return msgspec.json.encode({"jobs": [msgspec.Raw(encode_job(job)) for job in jobs]})


def encode_lines(jobs: list[NewJob]) -> bytes:
    """Many jobs as NDJSON. Pure."""
    return b"\n".join(encode_job(job, on_one_line=True) for job in jobs)


def decode(reply: Reply, kind: type[T]) -> T:
    """The record in an answer. Raises :class:`ServiceFault` for an answer that is no such record. Pure."""
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except msgspec.MsgspecError as error:
        raise ServiceFault(reply.status, f"the answer is not what the API says: {error}") from None


def hint_of(reply: Reply) -> Seconds | None:
    """When to come back: exactly, from the body, else from the header, which is rounded up. Pure."""
    exact = _problem_of(reply).retry_after
    return reply.retry_after if exact is None or not exact >= 0 else exact


def refusal_of(reply: Reply) -> Refusal | None:
    """The queue's own refusal in an answer, or None for another answer. Pure."""
    problem = _problem_of(reply)
    if problem.rule is None or problem.rule not in set(Rule):
        return None
    return Refusal(Rule(problem.rule), problem.detail, hint_of(reply))


def is_absent(reply: Reply) -> bool:
    """Whether the API says that there is no such thing. (A 404 of something else on the way says nothing.)
    Pure."""
    return reply.status == 404 and _problem_of(reply).type == f"{PREFIX}not-found"


def found_state(reply: Reply) -> JobState | None:
    """The state in which a job was found that could not be cancelled. Pure."""
    state = _problem_of(reply).state
    return JobState(state) if state in set(JobState) else None


def error_of(reply: Reply) -> Exception:
    """What an answer that is neither a success nor to be retried means, as an exception. Pure."""
    problem = _problem_of(reply)
    name, detail = problem.type.removeprefix(PREFIX) or "no problem named", problem.detail
    if reply.status in (401, 403):
        return CredentialRefused(name, detail)
    if name == "invalid-value" and problem.errors:
        first = problem.errors[0]
        return InvalidValue(str(first.get("path")), _Sent(), str(first.get("accepted")), detail)
    if 400 <= reply.status < 500 and problem.type:
        return RequestRefused(reply.status, name, detail)
    return ServiceFault(
        reply.status, detail or "the answer is not one of a Tenantry server", problem.instance
    )


class _Sent:
    """Stands for a value that need not be shown again."""

    def __repr__(self) -> str:
        return "the value sent"


def _problem_of(reply: Reply) -> _Problem:
    try:
        return msgspec.json.decode(reply.body, type=_Problem)
    except msgspec.MsgspecError:  # a proxy's page, not ours
        return _Problem()


def _can_stand_as_it_is(payload: bytes, *, on_one_line: bool) -> bool:
    if on_one_line and b"\n" in payload:
        return False
    try:
        payload.decode()
        msgspec.json.decode(payload, type=msgspec.Raw)
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError):
        return False
    return True
