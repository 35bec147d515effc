"""What the shaper must show, in virtual time: figures over several seeds, each the median of them."""

from itertools import pairwise
from statistics import median

import pytest

from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.kernel.randomness import SeededRandomness
from tenantry.simulation.shaping import LaneReport, Ours, Spell, TargetModel, run_lane
from tenantry.simulation.shaping.lane import LaneRun

SEEDS = (1, 2, 3, 4, 5)


class Watched(Ours):
    """Ours, and what was in flight at every instant."""

    def __init__(self, seed: int) -> None:
        super().__init__(SeededRandomness(seed))
        self.log: list[tuple[float, int]] = [(0.0, 0)]
        self.count = 0

    def allowed(self, in_flight: int, now: float) -> int:
        count = super().allowed(in_flight, now)
        self.log.append((now, in_flight + count))
        return count

    def started(self, count: int, in_flight: int, now: float) -> None:
        super().started(count, in_flight, now)
        self.count += count

    def by_round_trip(self, start: float, trip: float, count: int) -> list[float]:
        """The mean in flight of each of ``count`` round trips from ``start``."""
        held, lasted = [0.0] * count, [1e-12] * count
        for (at, in_flight), (then, _) in pairwise(self.log):
            place = int((at - start) / trip)
            if at >= start and place < count:
                held[place] += in_flight * (then - at)
                lasted[place] += then - at
        return [part / whole for part, whole in zip(held, lasted, strict=True)]


def runs(model: TargetModel, until: float) -> list[tuple[LaneReport, Watched]]:
    """One run a seed."""
    found = []
    for seed in SEEDS:
        rule = Watched(seed)
        found.append((LaneRun(model, rule, SeededRandomness(100 + seed), until).run(), rule))
    return found


def queueing(capacity: float) -> TargetModel:
    """One server that serves so many a second, behind 50 ms of network."""
    return TargetModel("queueing", servers=((0.0, 1.0),), service=1.0 / capacity, network=0.05)


@pytest.mark.parametrize("capacity", [10.0, 100.0, 1_000.0])
def test_a_queueing_target_gives_95_percent_of_its_capacity_with_little_waiting(capacity: float) -> None:
    model = queueing(capacity)
    found = [report for report, _ in runs(model, until=90.0 if capacity < 1_000 else 45.0)]
    assert median(report.rate(30, report.until) / model.rate_at(0.0) for report in found) >= 0.95
    assert median(report.latency(0.5, 30) / model.reference for report in found) <= 1.5


STEPS = TargetModel(
    "steps", servers=((0.0, 20.0), (60.0, 2.0), (120.0, 20.0)), line=40, foreign=((0.0, 2.0),)
)


def test_s4_after_a_step_up_90_percent_within_30_round_trips_and_overshoot_under_30_percent() -> None:
    trips, most = [], []
    for _, rule in runs(STEPS, until=180.0):
        means = rule.by_round_trip(120.0, 0.1, 100)
        trips.append(next(place for place, mean in enumerate(means) if mean >= 0.9 * 20))
        most.append(max(means) / 20)
    assert median(trips) <= 30
    assert median(most) < 1.3


def test_after_a_step_down_other_clients_errors_are_at_zero_within_ten_seconds() -> None:
    for report, _ in runs(STEPS, until=120.0):
        assert [at for at in report.foreign_failed if at >= 70.0] == []


def test_s1_where_every_call_takes_exactly_the_timeout_the_limit_ends_at_the_minimum() -> None:
    for _, rule in runs(TargetModel("never", spells=((0.0, 1e9, Spell.HOLE),)), until=300.0):
        assert rule.limit() <= 1.0
        assert rule.state.breaker.state is not BreakerState.CLOSED


def test_s2_a_lane_that_starts_while_its_target_is_saturated_learns_when_it_is_idle() -> None:
    model = TargetModel("saturated", foreign=((0.0, 190.0), (60.0, 0.0)))
    for _, rule in runs(model, until=120.0):
        assert rule.state.reference.latency is not None
        assert rule.state.reference.latency <= 1.05 * model.reference


def test_s3_ten_minutes_of_overload_raise_the_reference_by_less_than_a_tenth() -> None:
    """Foreign clients fill the target for ten minutes; the lane probes all the time."""
    model = TargetModel("overloaded", line=40, foreign=((0.0, 0.0), (60.0, 230.0)))
    for _, rule in [(None, Watched(seed)) for seed in SEEDS]:
        run = LaneRun(model, rule, SeededRandomness(7), 660.0)
        report = run.run()
        assert report.latency(0.5, 120) > 2 * model.reference
        assert rule.state.reference.latency is not None
        assert rule.state.reference.latency <= 1.1 * model.reference


def test_s7_a_target_that_hangs_longer_than_the_window_gets_no_more_than_it_had() -> None:
    """It hangs for 20 s, longer than the breaker's window of 10 s and than the timeout."""
    model = TargetModel("hangs", spells=((30.0, 50.0, Spell.HOLE),))
    for report, rule in runs(model, until=90.0):
        most = max(second.most for second in report.seconds[20:30])
        assert max(in_flight for at, in_flight in rule.log if 30.0 <= at < 50.0) <= 1.1 * most
        assert sum(second.failed for second in report.seconds[30:60]) <= 2 * most
        assert report.rate(70, 90) >= 0.9 * model.rate_at(80.0)


def test_a_black_hole_gives_all_its_slots_back_within_a_timeout_and_a_round() -> None:
    model = TargetModel("hole", spells=((30.0, 1e9, Spell.HOLE),))
    for _, rule in runs(model, until=300.0):
        assert all(in_flight <= 1 for at, in_flight in rule.log if at > 30.0 + 5.0 + 0.2)


def test_a_black_hole_holds_a_third_of_a_slot_at_most() -> None:
    """The cool-down grows to twice what a probe costs."""
    model = TargetModel("hole", spells=((30.0, 1e9, Spell.HOLE),))
    for _, rule in runs(model, until=600.0):
        held = sum(
            in_flight * (then - at) for (at, in_flight), (then, _) in pairwise(rule.log) if at >= 120.0
        )
        assert held / 480.0 <= 0.37


def test_a_rate_limit_of_the_targets_own_is_found_and_kept_with_few_refusals() -> None:
    model = TargetModel("limited", servers=((0.0, 200.0),), service=0.05, rate=100.0)
    found = [report for report, _ in runs(model, until=180.0)]
    assert median(report.rate(20, 180) for report in found) >= 90.0
    assert max(report.failed for report in found) <= 40


def test_the_same_seed_gives_the_same_run() -> None:
    one, two = (run_lane(STEPS, Watched(3), SeededRandomness(4), until=30.0) for _ in range(2))
    assert one == two


def test_what_goes_in_comes_out_or_is_in_flight() -> None:
    for model in (STEPS, TargetModel("flaps", spells=((5.0, 9.0, Spell.DOWN), (12.0, 20.0, Spell.HOLE)))):
        rule = Watched(1)
        run = LaneRun(model, rule, SeededRandomness(1), 30.0)
        report = run.run()
        ended = report.succeeded + report.failed
        assert rule.count - ended == rule.log[-1][1] > 0
