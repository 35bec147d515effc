"""The records of a lane's shaper: its settings, its state, what it permits. Frozen."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tenantry.algorithms.circuit_breaker import Breaker, BreakerSettings
from tenantry.algorithms.concurrency_limit import Limit, LimitSettings
from tenantry.algorithms.reference_latency import Reference
from tenantry.algorithms.sample_window import EMPTY as NO_SKETCH
from tenantry.algorithms.sample_window import Sketch, Window
from tenantry.algorithms.start_rate import StartRate
from tenantry.kernel.instant import Seconds, Timestamp

NEVER: Final = Timestamp(0.0)
"""Before anything that a store's clock can say."""

LIMIT_SETTINGS: Final = LimitSettings()
BREAKER_SETTINGS: Final = BreakerSettings()

_LIMIT: Final = Limit()
_REFERENCE: Final = Reference()
_BREAKER: Final = Breaker()
_RATE: Final = StartRate()


class Held(StrEnum):
    """Why a lane starts nothing although it is below its limit: public, in the API and in metrics."""

    BREAKER = "breaker"
    RETRY_AFTER = "retry_after"
    PACING = "pacing"


@dataclass(frozen=True, slots=True)
class ShaperSettings:
    """``timeout_for``: the longest that a call may last, in seconds. ``probe_every``: seconds between two
    dips that measure the reference. ``lease_for``: beyond the timeout, until a breaker's probe is given up.
    ``ceiling``: the operator's, >= 1, or None."""

    limit: LimitSettings = LIMIT_SETTINGS
    breaker: BreakerSettings = BREAKER_SETTINGS
    timeout_for: Seconds = 15.0
    probe_every: Seconds = 30.0
    lease_for: Seconds = 5.0
    ceiling: int | None = None


@dataclass(frozen=True, slots=True)
class ShaperState:
    """All that is known of a lane's target. Instants are the store's (law K4).

    ``latency``: what a call took in the last round trip, seconds. ``gathered``: latencies towards a candidate
    for the reference. ``sent_before``: calls sent in the three windows before this one. ``cut_at``: when the
    limit was last cut. ``ended_at``: when a call last came back. ``held_until``: by the target's
    ``Retry-After``.
    """

    window: Window
    limit: Limit = _LIMIT
    reference: Reference = _REFERENCE
    breaker: Breaker = _BREAKER
    rate: StartRate = _RATE
    latency: Seconds = 0.0
    gathered: Sketch = NO_SKETCH
    sent_before: tuple[int, int, int] = (0, 0, 0)
    cut_at: Timestamp = NEVER
    ended_at: Timestamp = NEVER
    held_until: Timestamp = NEVER


@dataclass(frozen=True, slots=True)
class Standing:
    """``in_flight``: jobs of the lane that live claims hold (law K3), at ``now``. ``scarce``: others waited
    for a slot of the pool when it was last planned."""

    in_flight: int
    now: Timestamp
    scarce: bool = False


@dataclass(frozen=True, slots=True)
class Permission:
    """``starts``: how many may start now, >= 0. Where it is 0 for another reason than that the limit is used,
    ``held`` is the reason and ``not_before`` its end, if nothing more is heard."""

    starts: int
    not_before: Timestamp | None = None
    held: Held | None = None
