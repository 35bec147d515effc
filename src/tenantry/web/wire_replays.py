"""Replays as they are in JSON: what a tenant asks for, and what it is told."""

from base64 import b64encode
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from tenantry.kernel.instant import as_datetime
from tenantry.replay.desk import Planned
from tenantry.replay.model import ParkedMessage
from tenantry.replay.plan import Report
from tenantry.replay.progress import Progress


def _told(text: str) -> Meta:
    return Meta(description=text)


class ReplaySource(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the messages lie: the tenant's own dead letters, or a place that the operator opened to it."""

    kind: Literal["dead_letters", "jsonl", "table", "rabbitmq", "kafka", "sqs", "nats"]
    place: str = ""
    connection: str = "default"
    options: dict[str, str] = {}


class ReplayCondition(Struct, frozen=True, forbid_unknown_fields=True):
    """What the payload must have at a JSON path: any JSON value, or its text."""

    path: str
    equals: Any = None
    equals_json: str | None = None


class ReplayFilters(Struct, frozen=True, forbid_unknown_fields=True):
    """Which messages are meant: all conditions hold."""

    error_classes: list[str] = []
    targets: list[str] = []
    failed_from: Annotated[str | float | None, _told("A time, or seconds since 1970; inclusive")] = None
    failed_before: str | float | None = None
    headers: dict[str, str] = {}
    json: list[ReplayCondition] = []
    attempts_from: int | None = None
    attempts_to: int | None = None


class ReplayEdit(Struct, frozen=True, forbid_unknown_fields=True):
    """One change, at `header:NAME` or a JSON path."""

    kind: Literal["set", "remove", "rename", "move"]
    at: str
    value: Any = None
    value_json: str | None = None


class ReplayBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """What a replay may use; reaching any holds it. Null: no limit."""

    messages: int | None = None
    failures: Annotated[int | None, _told("Dead and parked")] = None
    running_for: Annotated[float | None, _told("Seconds; held and paused time is not counted")] = None
    until: str | float | None = None


class NewReplay(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be replayed, and how."""

    source: ReplaySource
    target: Annotated[str | None, _told("Send there, instead of where each message failed")] = None
    filters: ReplayFilters = ReplayFilters()
    edits: list[ReplayEdit] = []
    on_unknown: Annotated[
        Literal["send", "hold"], _told("What to do with a message that a target may have got already")
    ] = "send"
    again: Annotated[bool, _told("Also what is known to be delivered")] = False
    park_after: Annotated[int, _told("Failures by its own fault before a message is parked")] = 3
    class_after: Annotated[int, _told("Failures alike before a class of messages is held")] = 20
    budget: ReplayBudget = ReplayBudget()
    sample: Annotated[float | None, _told("Run this share first, then wait for `continue`")] = None
    dry_run: bool = False
    note: str = ""


class ReplayPlan(Struct, frozen=True):
    """A plan, kept for a day."""

    replay: str
    report: Report
    progress: Progress
    status_url: str


class ReplayList(Struct, frozen=True):
    """The newest first."""

    replays: list[Progress]


class Parked(Struct, frozen=True, omit_defaults=True):
    """A message that was put aside. The payload is text, or base64 where it is not UTF-8."""

    id: str
    replay: str
    target: str
    rule: Literal["poison", "unknown", "class", "broken", "person"]
    reason: str
    fingerprint: str
    attempts: int
    parked_at: datetime
    content_type: str
    headers: dict[str, str] = field(default_factory=dict)
    payload: str | None = None
    payload_base64: str | None = None


class ParkedList(Struct, frozen=True):
    """By id. `next_url`: the next page, or null on the last."""

    parked: list[Parked]
    next_url: str | None


class SendBack(Struct, frozen=True, forbid_unknown_fields=True):
    """As what the message goes back; what is left out stays as it is."""

    payload: Annotated[Any, _told("Any JSON value")] = None
    payload_base64: str | None = None
    headers: dict[str, str] | None = None
    target: Annotated[str | None, _told("Where it goes instead")] = None


class ParkedDone(Struct, frozen=True):
    """It is no longer parked."""

    id: str
    done: Literal["sent back", "dropped"]


def replay_url(replay: str) -> str:
    return f"/v1/replays/{replay}"


def plan_out(planned: Planned, progress: Progress) -> ReplayPlan:
    return ReplayPlan(planned.view.id, planned.report, progress, replay_url(planned.view.id))


def parked_out(message: ParkedMessage) -> Parked:
    try:
        text, raw = message.payload.decode(), None
    except UnicodeDecodeError:
        text, raw = None, b64encode(message.payload).decode()
    return Parked(
        message.job,
        message.replay,
        message.target,
        message.rule,  # type: ignore[arg-type]  # a closed set, kept by the database
        message.reason,
        message.fingerprint,
        message.attempts,
        as_datetime(message.parked_at),
        message.content_type,
        dict(message.headers),
        text,
        raw,
    )
