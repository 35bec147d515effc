"""What replays tell. No event holds a payload, a target or a key of a message; a hold's reason holds no
secret. Rules, phases and fates are closed sets, so they are safe as labels."""

from collections.abc import Mapping
from dataclasses import dataclass

from tenantry.kernel.events import Event
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.replay.model import Fate, HoldRule, ReplayId, ReplayState


@dataclass(frozen=True, slots=True)
class ReplayOrdered(Event):
    """A person gave a replay an order that was carried out: ``plan``, ``start``, ``pause``, ``resume``,
    ``continue``, ``rebudget`` or ``cancel``."""

    tenant: TenantId
    replay: ReplayId
    order: str


@dataclass(frozen=True, slots=True)
class ReplayTaken(Event):
    """A coordinator took the lease of a replay: it goes on from what is stored."""

    tenant: TenantId
    replay: ReplayId
    holder: str
    token: int
    state: ReplayState


@dataclass(frozen=True, slots=True)
class ReplayLost(Event):
    """A coordinator no longer holds the lease of a replay, or cannot be sure of it: it dropped everything."""

    tenant: TenantId
    replay: ReplayId
    holder: str
    token: int


@dataclass(frozen=True, slots=True)
class ReplayHeld(Event):
    """A rule holds a replay: why, and for how long (None: until a person lets it go on)."""

    tenant: TenantId
    replay: ReplayId
    rule: HoldRule
    reason: str
    frees_in: Seconds | None


@dataclass(frozen=True, slots=True)
class ReplayFreed(Event):
    """What held a replay holds it no longer."""

    tenant: TenantId
    replay: ReplayId
    rule: HoldRule


@dataclass(frozen=True, slots=True)
class WindowFed(Event):
    """A window was staged: how many messages had which fate, how many beside were ``left`` in the source,
    and what the store's part took."""

    tenant: TenantId
    replay: ReplayId
    fates: Mapping[Fate, int]
    left: int
    took_for: Seconds


@dataclass(frozen=True, slots=True)
class MessagesParked(Event):
    """Messages were put aside unsent, ``rule`` says why: ``broken``, ``class`` or ``unknown``."""

    tenant: TenantId
    replay: ReplayId
    rule: str
    count: int


@dataclass(frozen=True, slots=True)
class ClassHeld(Event):
    """A class of messages fails alike: its further messages are parked, the rest goes on."""

    tenant: TenantId
    replay: ReplayId
    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReplayInCircles(Event):
    """The tenant replays what had failed in an earlier replay: ``part`` of what was taken."""

    tenant: TenantId
    replay: ReplayId
    part: float


@dataclass(frozen=True, slots=True)
class SourceFailed(Event):
    """A source could not be read: the class of the error, and when it is tried again."""

    tenant: TenantId
    replay: ReplayId
    kind: str
    error: str
    retry_for: Seconds


@dataclass(frozen=True, slots=True)
class ReplayFaulted(Event):
    """A fault of ours in the work on one replay, with its place; it is tried again, the others go on."""

    tenant: TenantId
    replay: ReplayId
    fault: str
    retry_for: Seconds


@dataclass(frozen=True, slots=True)
class CoordinatorFaulted(Event):
    """A fault of ours in taking or keeping leases, with its place; the replays that are led go on while their
    leases can be trusted."""

    holder: str
    fault: str
    retry_for: Seconds


@dataclass(frozen=True, slots=True)
class ReplayEnded(Event):
    """A replay has finished or was cancelled: how many it took, and what became of them."""

    tenant: TenantId
    replay: ReplayId
    state: ReplayState
    taken: int
    delivered: int
    parked: int
    dead: int
    running_for: Seconds


@dataclass(frozen=True, slots=True)
class ReplaysMeasured(Event):
    """The replays that this coordinator leads, by phase, every few seconds: what is not in it is none."""

    phases: Mapping[str, int]
