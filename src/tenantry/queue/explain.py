"""Why a waiting job waits: facts about its surroundings in, sentences out. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Kind, Target
from tenantry.queue.model import JobState


class WaitsFor(StrEnum):
    """What a job can wait for; the values are public."""

    DELAY = "delay"
    LANE_PAUSED = "lane_paused"
    LANE_LIMIT = "lane_limit"
    ORDER = "order"
    NO_SLOT = "no_slot"
    CAP = "cap"
    RATE = "rate"
    LINE = "line"
    SHARE = "share"
    PLANNER = "planner"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the store knows about one job's surroundings, read at ``now``. Counts are jobs or slots."""

    state: JobState
    tenant: TenantId
    target: Target
    kind: Kind
    now: Timestamp
    due_at: Timestamp | None
    attempts: int
    ahead_in_flow: int
    flow_in_flight: int
    ordered: bool
    lane_paused: bool
    lane_in_flight: int
    lane_limit: int | None
    tenant_in_flight: int
    tenant_waiting: int
    pool_slots: int
    pool_in_flight: int
    pool_slots_of_kind: int
    tenants_waiting: int
    planner_live: bool
    # from the directory, filled by who asks
    pool: str = "shared"
    cap: float = 1.0
    dispatch_rate: float | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that a job waits for, most decisive first; ``until`` is when it frees, where known."""

    waits_for: WaitsFor
    detail: str
    until: Timestamp | None = None
