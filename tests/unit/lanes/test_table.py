"""What a person reads of a lane: its state, why, until when, and the figures of its shaper."""

from dataclasses import replace

import pytest

from tenantry.algorithms.circuit_breaker import Breaker, BreakerState
from tenantry.algorithms.concurrency_limit import Limit
from tenantry.algorithms.reference_latency import Reference
from tenantry.algorithms.start_rate import PLATEAU_AT, StartRate
from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Lane, Target
from tenantry.lanes.orders import Action, Order, OrderRecord, Scope
from tenantry.lanes.shaper import ShaperState, opened
from tenantry.lanes.table import LaneFacts, LaneQuery, LaneRow, LaneSort, LaneState, row, row_of
from tenantry.memory.directory import MemoryDirectory

LANE = Lane(TenantId("acme"), Target("https://hooks.example.com/a"))
NOW = Timestamp(1_000.0)
PAUSE = OrderRecord(1, Order(Action.PAUSE, Scope(target=LANE.target), "it moves", "ada"), Timestamp(940.0))
CEILING = OrderRecord(2, Order(Action.CEILING, Scope(LANE.tenant), "small", "bob", 4), Timestamp(940.0))
SHAPER = replace(
    opened(NOW),
    limit=Limit(level=7.9),
    reference=Reference(latency=0.020),
    rate=StartRate(counting_from=999.0, achieved=12.5),
    latency=0.030,
)
FACTS = LaneFacts(LANE, NOW, waiting=5, delayed=2, in_flight=3)


def seen(
    shaper: ShaperState | None = None, *orders: OrderRecord, timeout: float = 15.0, limit: int | None = None
) -> LaneRow:
    return row(replace(FACTS, shaper=shaper, orders=orders), timeout_for=timeout, limit=limit)


def test_a_lane_without_a_shaper_shows_what_is_known_and_guesses_nothing() -> None:
    found = seen()
    assert (found.state, found.reason, found.frees_at) == (LaneState.OPEN, "", None)
    assert (found.limit, found.reference, found.latency, found.rate) == (None, None, None, None)
    assert (found.in_flight, found.backlog) == (3, 7)


def test_a_working_lane_shows_the_figures_of_its_shaper() -> None:
    found = seen(SHAPER)
    assert (found.limit, found.reference, found.latency) == (7, 0.020, 0.030)
    assert (found.breaker, found.rate, found.rate_limit) == (BreakerState.CLOSED, 12.5, None)


def test_the_limit_is_the_lowest_of_shaper_ceiling_and_document() -> None:
    assert seen(SHAPER, CEILING).limit == 4
    assert seen(SHAPER, CEILING, limit=2).limit == 2
    assert seen(SHAPER, limit=9).limit == 7
    assert seen(SHAPER, CEILING).ceiling == 4


def test_a_pause_goes_before_a_breaker_and_says_who_since_when_and_why() -> None:
    tripped = replace(SHAPER, breaker=Breaker(BreakerState.OPEN, since=990.0, cooled_at=1_005.0))
    found = seen(tripped, PAUSE)
    assert (found.state, found.frees_at) == (LaneState.PAUSED, None)
    assert found.reason == "paused by ada since 1970-01-01 00:15:40Z: it moves"
    assert found.breaker is BreakerState.OPEN


@pytest.mark.parametrize(("in_flight", "frees_at"), [(0, 1_005.0), (3, 1_020.0)])
def test_an_open_breaker_holds_until_it_has_cooled_and_what_it_held_is_back(
    in_flight: int, frees_at: float
) -> None:
    tripped = replace(SHAPER, breaker=Breaker(BreakerState.OPEN, since=990.0, cooled_at=1_005.0))
    found = row(replace(FACTS, shaper=tripped, in_flight=in_flight), timeout_for=30.0, limit=None)
    assert (found.state, found.frees_at) == (LaneState.HELD, frees_at)
    assert "breaker is open" in found.reason


def test_a_half_open_breaker_holds_without_a_known_end() -> None:
    found = seen(replace(SHAPER, breaker=Breaker(BreakerState.HALF_OPEN)))
    assert (found.state, found.frees_at) == (LaneState.HELD, None)
    assert "half-open" in found.reason


def test_retry_after_holds_until_its_time_and_no_longer() -> None:
    found = seen(replace(SHAPER, held_until=Timestamp(1_060.0)))
    assert (found.state, found.frees_at) == (LaneState.HELD, 1_060.0)
    assert "Retry-After" in found.reason
    assert seen(replace(SHAPER, held_until=NOW)).state is LaneState.OPEN


def test_a_target_that_refused_by_rate_shows_the_rate_it_allows() -> None:
    found = seen(replace(SHAPER, rate=StartRate(refused=20.0, since=NOW - PLATEAU_AT, counting_from=999.0)))
    assert found.rate_limit == pytest.approx(20.0, rel=0.01)


def test_the_rate_of_a_lane_that_stood_still_is_zero_and_not_what_it_once_was() -> None:
    assert seen(replace(SHAPER, rate=StartRate(counting_from=900.0, achieved=12.5))).rate == 0.0


def test_the_documents_limit_for_the_target_counts_and_a_removed_tenant_has_none() -> None:
    tier = Tier(TierName("open"))
    document = TenantDocument(LANE.tenant, tier.name, targets={LANE.target: TargetSettings(limit=6)})
    here = MemoryDirectory(Registry(tiers=(tier,), tenants=(document,)))
    assert row_of(FACTS, here).limit == 6
    assert row_of(FACTS, MemoryDirectory(Registry())).limit is None


@pytest.mark.parametrize("limit", [0, 1_001])
def test_a_table_is_of_1_to_1_000_lanes(limit: int) -> None:
    with pytest.raises(InvalidValue, match="from 1 to 1,000"):
        LaneQuery(limit=limit)


def test_only_a_table_by_name_goes_on_where_another_ended() -> None:
    with pytest.raises(InvalidValue, match="after"):
        LaneQuery(sort=LaneSort.BACKLOG, after=LANE)
