"""The records of a replay. Frozen; validated at the edge that makes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NewType

from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.queue.model import JobId

ReplayId = NewType("ReplayId", str)
"""A UUIDv7 in canonical text. A plan has one; the replay that runs the plan keeps it."""
MessageKey = NewType("MessageKey", bytes)
"""What makes two messages one: tenant, target, id and digest (:mod:`tenantry.replay.dedup`)."""
Position = NewType("Position", str)
"""How far a source has been read, in the source's own words; '' is its beginning."""

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a source, as it lies there.

    ``id``: the source's own id for it, 1 to 255 bytes without NUL: the same at every reading. ``target``:
    where it was to go when it failed, or None where the source does not say. ``headers``: names in lower
    case; a broker's message key is the header ``tenantry-key``. ``failed_at``, ``attempts``, ``error_class``
    (of :data:`tenantry.lanes.outcome.CAUSES` where it is one of ours, else the source's own word) and
    ``failure`` (what was said, at most 500 characters): as far as the source knows; None, 0 and '' where it
    does not. ``letter``: the dead letter of our own that it is, or None.
    """

    id: str
    payload: bytes
    content_type: str = "application/json"
    target: Target | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    failed_at: Timestamp | None = None
    attempts: int = 0
    error_class: str = ""
    failure: str = ""
    letter: JobId | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """A message in hand. ``receipt``: what the source needs to acknowledge it; opaque, of this session only.

    ``position``: where a later session goes on after this message, for a source that is read by position;
    None for one that forgets what is acknowledged. ``fault``: why the entry cannot be a message (no JSON, no
    id, too large); then ``message`` carries its raw bytes as far as they are known, and it can only be
    parked.
    """

    message: Message
    receipt: object
    position: Position | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """One fetch. ``exhausted``: the membership's end was reached, nothing more will come. An empty batch that
    is not exhausted only says that nothing came in time."""

    messages: tuple[Fetched, ...]
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class Traits:
    """What a kind of source can do. ``counts``: it knows how many messages lie there. ``freezes``: a plan's
    membership is exact, what comes later is not in it. ``acknowledges``: messages in hand are the source's
    until they are acknowledged, and come again otherwise; False: it is read by position. ``window``: most
    messages that may be in hand at once. ``acknowledge_within``: seconds after which the
    source takes back what is in hand, or None."""

    counts: bool
    freezes: bool
    acknowledges: bool
    window: int = 10_000
    acknowledge_within: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """What a plan found in its source. ``bound``: the end of it in the source's own words ('' where the
    source cannot freeze). ``count``: how many lie within it, None where the source cannot count.
    ``counted_exactly``: False for an estimate of the source's."""

    bound: str = ""
    count: int | None = None
    counted_exactly: bool = True


@dataclass(frozen=True, slots=True)
class SourceAddress:
    """Where messages lie. ``kind``: ``dead_letters``, ``jsonl``, ``table``, ``rabbitmq``, ``kafka``, ``sqs``
    or ``nats``. ``place``: the file, queue, topic, stream or table. ``options``: the kind's own, flat text to
    text (``id_field`` -> ``$.event.id``); each adapter refuses a key that it does not read. Holds no secret:
    a URL's credentials are the coordinator's settings, looked up by ``connection``."""

    kind: str
    place: str = ""
    connection: str = "default"
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class OnUnknown(StrEnum):
    """What to do with a message of which nobody knows whether the target has got it (its worker was lost)."""

    SEND = "send"  # again: at least once
    HOLD = "hold"  # park it: at most once, and a person looks


class EditKind(StrEnum):
    SET = "set"
    REMOVE = "remove"
    RENAME = "rename"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class Edit:
    """One declarative change. ``at``: ``header:NAME`` or a JSON path into the payload. ``value``: JSON text
    (SET), the new name (RENAME), the new path (MOVE), '' (REMOVE)."""

    kind: EditKind
    at: str
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which messages of the source are meant: all conditions hold. None and empty: anything.

    ``error_classes``: any of these. ``failed_from``, ``failed_before``: [from, before). ``headers``: each
    with exactly this value. ``json``: a JSON path and the JSON text that a value found there must equal.
    ``attempts_from``, ``attempts_to``: inclusive. ``targets``: any of these."""

    error_classes: frozenset[str] = frozenset()
    targets: frozenset[Target] = frozenset()
    failed_from: Timestamp | None = None
    failed_before: Timestamp | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    json: tuple[tuple[str, str], ...] = ()
    attempts_from: int | None = None
    attempts_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one replay may use; reaching any holds it. ``messages``: taken. ``failures``: dead and parked.
    ``running_for``: seconds of running, held and paused time not counted. ``until``: a deadline."""

    messages: int | None = None
    failures: int | None = None
    running_for: Seconds | None = None
    until: Timestamp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySpec:
    """What a person asks for. ``target``: send there instead of where each message failed; required where the
    source does not say. ``park_after``: message-fault failures of one message before it is parked, 1 to 100.
    ``class_after``: failures alike of one class of messages before that class is held, >= 1. ``sample``: run
    this share first, in (0, 1], then wait for `continue`; None: no sample. ``again``: also what the dedup
    store knows as delivered. ``dry_run``: read, match and count; take and send nothing."""

    tenant: TenantId
    source: SourceAddress
    target: Target | None = None
    filters: Filters = Filters()
    edits: tuple[Edit, ...] = ()
    on_unknown: OnUnknown = OnUnknown.SEND
    again: bool = False
    park_after: int = 3
    class_after: int = 20
    budget: Budget = Budget()
    sample: float | None = None
    dry_run: bool = False
    note: str = ""


class ReplayState(StrEnum):
    """Where a replay is; :mod:`tenantry.replay.lifecycle` has the moves. ``finished``, ``cancelled`` are
    ends."""

    PLANNED = "planned"
    RUNNING = "running"
    PAUSED = "paused"  # by a person
    HELD = "held"  # by a rule, with its reason and when it frees
    DRAINING = "draining"  # the source is exhausted; what was taken is still on its way
    CANCELLING = "cancelling"  # what waits is being returned; what is in flight ends
    FINISHED = "finished"
    CANCELLED = "cancelled"


class HoldRule(StrEnum):
    """The rules that hold a replay. Public: in the API and in metrics."""

    SAMPLE = "sample"  # the sample was run; `continue` goes on
    POISON = "poison"  # nearly all messages fail by their own fault
    BUDGET = "budget"
    QUOTA = "quota"  # of the tenant's tier; frees by itself
    SOURCE = "source"  # the source cannot be read; tried again
    CONCURRENCY = "concurrency"  # the tenant has its most replays running


@dataclass(frozen=True, slots=True)
class Hold:
    """``reason``: a sentence for people, without secrets. ``frees_at``: when it frees by itself, or None:
    then a person's `continue` (or a larger budget) does. ``stops``: what was taken and waits is not started
    either (the replay's flows are paused, as by a person); else only nothing more is taken."""

    rule: HoldRule
    reason: str
    frees_at: Timestamp | None = None
    stops: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Every message that a replay has taken is in exactly one of these: ``taken`` is their sum.

    ``waiting``: fed, not started or between two attempts. ``in_flight``: held by a live claim. ``parked``:
    put aside, with the ``dropped``: those of them, or of the waiting, that a person has ended. ``unknown``:
    an attribute, how many had an attempt whose end nobody knows. ``left``: seen in the source and not meant.
    ``seen_failing``: of the taken, how many had failed in an earlier replay. ``failures``: failed attempts,
    lost ones not counted; ``message_faults``: those by the message's own fault."""

    duplicate: int = 0
    waiting: int = 0
    in_flight: int = 0
    delivered: int = 0
    parked: int = 0
    dead: int = 0
    returned: int = 0
    dropped: int = 0
    unknown: int = 0
    left: int = 0
    seen_failing: int = 0
    failures: int = 0
    message_faults: int = 0

    @property
    def taken(self) -> int:
        return self.duplicate + self.unended + self.delivered + self.parked + self.dead + self.returned

    @property
    def unended(self) -> int:
        """What is still on its way."""
        return self.waiting + self.in_flight


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayView:
    """A replay as its store knows it. ``plan``: the plan's report as JSON text, ``progress``: the
    coordinator's last record as JSON text ('' before the first). ``token``: rises with each coordinator that
    takes it; ``holder``: the node of the live lease, or ''. ``sampled``: the sample was run and continued."""

    id: ReplayId
    spec: ReplaySpec
    state: ReplayState
    membership: Membership
    counts: Counts
    position: Position
    created_at: Timestamp
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    hold: Hold | None = None
    exhausted: bool = False
    sampled: bool = False
    running_for: Seconds = 0.0
    holder: str = ""
    token: int = 0
    plan: str = ""
    progress: str = ""


class Known(StrEnum):
    """What the dedup store knows of a message."""

    STAGED = "staged"
    DELIVERED = "delivered"
    UNKNOWN = "unknown"
    FAILED = "failed"  # it ended dead, parked or returned in an earlier replay: it may be taken again


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """One message as it is to be staged: edits made, target decided, identity from before the edits.
    Everything that is stored is here: ``message`` is kept for what it says of itself.

    ``job``: the id of the job that it becomes: the dead letter's own where it is one. ``origin``: the class
    of messages it belongs to (:mod:`tenantry.replay.poison`), for counting failures alike. ``broken``: it
    cannot be sent; it is parked with this reason instead. ``park_rule``: 'broken' or 'class' then."""

    key: MessageKey
    job: JobId
    message: Message
    target: Target
    payload: bytes
    headers: Mapping[str, str]
    origin: str = ""
    broken: str = ""
    park_rule: str = ""


class Fate(StrEnum):
    """What a feed did with one message. All but QUOTA, BROKEN: it may be acknowledged to its source."""

    STAGED = "staged"
    AGAIN = "again"  # this replay had staged it before: the source delivered it once more
    DUPLICATE = "duplicate"  # delivered before, or in another active replay
    PARKED = "parked"  # broken, of a held class, or unknown and to be held
    GONE = "gone"  # the dead letter is not there any more: another replay has it
    QUOTA = "quota"  # not taken: a quota of the tenant is used up
    BROKEN = "broken"  # the store cannot take it: to be offered again as broken


@dataclass(frozen=True, slots=True)
class Quotas:
    """The tenant's, from its tier; None: no limit. ``replayed_a_day``: messages staged or parked per UTC day.
    ``dedup_keys``: stored at once. ``replays``: running at once."""

    replayed_a_day: int | None = None
    dedup_keys: int | None = None
    replays: int | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """``token``: of this taking; a later taking has a higher one, and ends what this one may do."""

    replay: ReplayId
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What one feed stages. ``position``: where the source is to be read on after it, None for a source
    without positions. ``left``: how many were seen beside these and not meant. ``exhausted``: nothing more
    will come. ``lifetime_for``: seconds that the tenant's dedup keys live, from their first sight."""

    messages: tuple[Staged, ...]
    position: Position | None
    left: int
    exhausted: bool
    quotas: Quotas
    lifetime_for: Seconds


@dataclass(frozen=True, slots=True)
class FedWindow:
    """``fates``: one a message, in their order. ``hold``: the quota that was reached, if one was."""

    fates: tuple[Fate, ...]
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class ClassFailure:
    """Attempts of one class of messages that failed alike, by the messages' own fault, since the replay began
    or was last continued; and how many of the class were delivered. ``example``: the job of one of them."""

    origin: str
    fingerprint: str
    failures: int
    delivered: int
    example: str = ""


@dataclass(frozen=True, slots=True)
class LanePace:
    """``permits``: how many may be in flight now. ``latency``: of a call; None before the first one."""

    permits: int
    latency: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedMessage:
    """One message put aside. ``rule``: poison, unknown, class, broken or person."""

    job: JobId
    tenant: TenantId
    replay: ReplayId
    target: Target
    payload: bytes
    content_type: str
    headers: Mapping[str, str]
    rule: str
    reason: str
    fingerprint: str
    attempts: int
    parked_at: Timestamp
