"""What the API needs of the rest of the house, as ports. ``cli`` wires them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tenantry.config.keys_port import ApiKeys, OperatorKeys
from tenantry.config.ports import TenantDirectory
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.events import EventSink, ignore
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import Randomness, SystemRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.queue.model import Accepted, BulkSet, NewJob
from tenantry.queue.ports import IntakeStore, OperatorStore
from tenantry.replay.desk import ReplayService


class JobIntake(Protocol):
    """The way into the queue; :class:`tenantry.queue.intake.Admission` is one.

    Raises :class:`~tenantry.kernel.errors.InvalidValue` naming the row (``jobs[3].cost``),
    :class:`~tenantry.kernel.errors.UnknownTenant` and :class:`~tenantry.kernel.errors.StoreUnavailable`.
    """

    async def submit(self, tenant: TenantId, jobs: Sequence[NewJob]) -> Accepted | Refusal: ...

    async def submit_bulk(self, tenant: TenantId, jobs: Sequence[NewJob]) -> BulkSet | Refusal: ...


class Readiness(Protocol):
    """Whether this process can serve."""

    async def check(self) -> None:
        """Returns when it can. Raises :class:`~tenantry.kernel.errors.StoreUnavailable` when it cannot."""
        ...


class Answers(Protocol):
    """Whether the store answers, asked at most once a moment."""

    async def ready(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """What one request may bring. Sizes in bytes of the body as sent, durations in seconds.

    ``job``, ``batch`` and ``bulk``: the body of a submit of that kind. ``line``: one line of a bulk set in
    NDJSON. ``read_for``: for the body to arrive. ``ready_for``: for the store to answer a readiness check,
    whose answer is kept for ``ready_kept_for``. ``key_kept_for``: how long a verified key is trusted without
    asking the store, so the longest that a revocation takes to act; ``keys_kept``: how many keys at most.
    """

    job: int = 1_048_576
    batch: int = 8 * 1_048_576
    bulk: int = 64 * 1_048_576
    line: int = 1_048_576
    read_for: Seconds = 30.0
    ready_for: Seconds = 2.0
    ready_kept_for: Seconds = 1.0
    key_kept_for: Seconds = 5.0
    keys_kept: int = 10_000


@dataclass(frozen=True, slots=True)
class OrderServices:
    """What orders over lanes take: where they are kept, whose lanes there are, and who may give them."""

    store: OperatorStore
    directory: TenantDirectory
    keys: OperatorKeys


class Ambient(Protocol):
    """What every exchange uses, whatever it is about."""

    @property
    def events(self) -> EventSink: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def randomness(self) -> Randomness: ...


@dataclass(frozen=True, slots=True)
class ApiServices:
    """Everything that the API uses. All of it is used from one event loop. ``replays``: None to serve
    none."""

    intake: JobIntake
    store: IntakeStore
    keys: ApiKeys
    directory: TenantDirectory
    readiness: Readiness
    replays: ReplayService | None = None
    events: EventSink = ignore
    limits: ApiLimits = ApiLimits()
    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)


@dataclass(frozen=True, slots=True)
class OperatorServices:
    """``exposition``: the metrics as they are scraped, and their content type
    (:meth:`tenantry.telemetry.prometheus.Metrics.exposition`). ``ready``: whether the store answers, asked as
    the tenants' application asks it. ``orders``: None to serve metrics and health alone."""

    exposition: Callable[[], tuple[bytes, str]]
    ready: Answers
    events: EventSink = ignore
    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)
    orders: OrderServices | None = None
    limits: ApiLimits = ApiLimits()
