"""Replays between their records and the database's rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from tenantry.kernel.instant import Timestamp, as_timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.postgres.replay_flows import encoded_headers
from tenantry.queue.model import JobId
from tenantry.replay.model import (
    ClassFailure,
    Counts,
    Fate,
    Hold,
    HoldRule,
    Known,
    Membership,
    ParkedMessage,
    Position,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
    Staged,
)
from tenantry.replay.specs import decode_spec, encode_spec

MOST_PRIOR = 30_000
"""Attempts elsewhere that are counted: the column is a smallint, and this replay's come on top."""

FATES = {1: Fate.STAGED, 2: Fate.AGAIN, 3: Fate.DUPLICATE, 4: Fate.PARKED, 5: Fate.GONE, 6: Fate.QUOTA}
KNOWN = {1: Known.STAGED, 2: Known.DELIVERED, 3: Known.UNKNOWN, 4: Known.FAILED}


def encoded_spec(spec: ReplaySpec) -> str:
    """A spec as JSON text, the same text for the same spec."""
    return msgspec.json.encode(encode_spec(spec), order="deterministic").decode()


def decoded_spec(tenant: str, text: str) -> ReplaySpec:
    return decode_spec(TenantId(tenant), msgspec.json.decode(text))


def view_of(row: asyncpg.Record) -> ReplayView:
    return ReplayView(
        id=ReplayId(row["replay_id"]),
        spec=decoded_spec(row["tenant_id"], row["spec"]),
        state=ReplayState(row["state"]),
        membership=Membership(row["source_bound"], row["source_count"], row["counted_exactly"]),
        counts=counts_of(row),
        position=Position(row["position"]),
        created_at=as_timestamp(row["created_at"]),
        started_at=_at(row["started_at"]),
        ended_at=_at(row["ended_at"]),
        hold=_hold(row),
        exhausted=row["exhausted"],
        sampled=row["sampled"],
        running_for=row["running_for"],
        holder=row["holder"],
        token=row["token"],
        plan=row["plan"],
        progress=row["progress"],
    )


_COUNTED = (
    "waiting", "in_flight", "duplicate", "delivered", "parked", "dropped", "dead", "returned", "unknown",
    "left", "seen_failing", "failures", "message_faults",
)  # fmt: skip


def counts_of(row: asyncpg.Record) -> Counts:
    return Counts(**{name: row[name] for name in _COUNTED})


def failure_of(row: asyncpg.Record) -> ClassFailure:
    return ClassFailure(row["origin"], row["fingerprint"], row["failures"], row["delivered"], row["example"])


def parked_of(row: asyncpg.Record) -> ParkedMessage:
    return ParkedMessage(
        job=JobId(str(row["job_id"])),
        tenant=TenantId(row["tenant_id"]),
        replay=ReplayId(row["replay_id"]),
        target=Target(row["target"]),
        payload=row["payload"],
        content_type=row["content_type"],
        headers=msgspec.json.decode(row["headers"], type=dict[str, str]) if row["headers"] else {},
        rule=row["park_reason"],
        reason=row["reason"],
        fingerprint=row["fingerprint"],
        attempts=row["attempts"],
        parked_at=as_timestamp(row["parked_at"]),
    )


def _hold(row: asyncpg.Record) -> Hold | None:
    if row["hold_rule"] is None:
        return None
    return Hold(HoldRule(row["hold_rule"]), row["hold_reason"], _at(row["frees_at"]), row["hold_stops"])


def _at(moment: datetime | None) -> Timestamp | None:
    return None if moment is None else as_timestamp(moment)


@dataclass(frozen=True, slots=True)
class Line:
    """One message as the feed takes it: a value a column."""

    values: tuple[Any, ...]

    @classmethod
    def of(cls, staged: Staged) -> "Line":
        """What is broken is kept readable where it cannot be kept as it is: it is to be seen, not sent."""
        message = staged.message
        broken = bool(staged.broken)
        text = _storable if broken else str
        headers = {text(name): text(value) for name, value in staged.headers.items()}
        return cls(
            (
                staged.key,
                UUID(staged.job),
                message.letter is not None,
                text(staged.target),
                staged.payload,
                text(message.content_type),
                encoded_headers(headers),
                min(max(message.attempts, 0), MOST_PRIOR),
                text(staged.origin),
                (staged.park_rule or "broken") if broken else "",
                text(staged.broken),
                text(message.error_class),
            )
        )


def columns(lines: Sequence[Line]) -> tuple[list[Any], ...]:
    """The lines as parallel arrays."""
    return tuple([line.values[at] for line in lines] for at in range(_WIDTH))


_WIDTH = 12


def _storable(text: str) -> str:
    """Without what PostgreSQL's text cannot hold: NUL, and halves of surrogate pairs."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def headers_of(headers: Mapping[str, str] | None) -> str | None:
    """Edited headers; None leaves them as they are."""
    return None if headers is None else msgspec.json.encode(dict(headers)).decode()
