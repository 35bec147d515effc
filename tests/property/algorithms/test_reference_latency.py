"""The reference comes down at once, goes up only by probes and slowly, and is not fooled by a few calls."""

from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.reference_latency import DRIFT, GROWN, NEAR, Reference, measured, scheduled

latencies = st.floats(0.001, 100.0)
KNOWN = Reference(1.0, GROWN, 0.0)


@given(st.lists(st.tuples(st.floats(1.0, 600.0), latencies, st.booleans()), max_size=60))
def test_s3_it_never_rises_faster_than_its_drift(story: list[tuple[float, float, bool]]) -> None:
    reference, now, before = KNOWN, 0.0, 0.0
    for passed, candidate, probe in story:
        now += passed
        after = measured(reference, candidate, calls=40, probe=probe, now=now)
        assert after.latency is not None
        assert reference.latency is not None
        if after.latency > reference.latency:
            assert after.latency <= reference.latency * (1.0 + DRIFT * (now - before) / 60.0) + 1e-12
        if after.risen_at == now:
            before = now
        reference = after


@given(latencies)
def test_a_lower_candidate_is_taken_at_once(candidate: float) -> None:
    found = measured(KNOWN, candidate, calls=40, probe=False, now=5.0).latency
    assert found == min(candidate, 1.0)


def test_ten_minutes_with_a_probe_each_minute_raise_it_by_five_percent() -> None:
    reference = KNOWN
    for minute in range(1, 11):
        reference = measured(reference, 10.0, calls=40, probe=True, now=60.0 * minute)
    assert reference.latency is not None
    assert 1.05 <= reference.latency < 1.052


def test_a_higher_candidate_of_no_probe_changes_nothing() -> None:
    assert measured(KNOWN, 1.01, calls=400, probe=False, now=3600.0) == KNOWN


@given(st.floats(0.5, NEAR))
def test_a_young_reference_is_averaged_whichever_way_candidates_point(candidate: float) -> None:
    young = Reference(1.0, 8, 0.0)
    found = measured(young, candidate, calls=8, probe=False, now=1.0)
    assert found.latency is not None
    assert abs(found.latency - (1.0 + candidate) / 2.0) < 1e-12
    assert measured(young, NEAR + 0.01, calls=8, probe=False, now=1.0) == young


@given(st.floats(0.0, 1.0))
def test_the_next_probe_is_spread_by_a_quarter_either_way(draw: float) -> None:
    assert 22.5 <= scheduled(KNOWN, every=30.0, draw=draw, now=0.0).probe_at <= 37.5
