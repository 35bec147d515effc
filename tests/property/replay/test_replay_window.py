"""How much is taken keeps lanes busy and leaves little behind, whatever rate and permits are."""

from hypothesis import given
from hypothesis import strategies as st

from tenantry.replay.model import Traits
from tenantry.replay.window import (
    DEFAULTS,
    IN_HAND,
    Habits,
    Outlook,
    fetch_limit,
    fetch_wait,
    look_again,
    room,
    wanted,
    widened,
)

outlooks = st.builds(Outlook, st.integers(0, 10_000), st.integers(0, 5_000), st.floats(0, 20_000))
traits = st.builds(
    lambda window, within: Traits(
        counts=True, freezes=True, acknowledges=True, window=window, acknowledge_within=within
    ),
    st.integers(1, 10_000),
    st.none() | st.floats(1, 3_600),
)


@given(outlooks)
def test_never_more_than_the_most_is_under_way_by_what_is_taken(outlook: Outlook) -> None:
    more = room(outlook)
    assert more >= 0
    assert more == 0 or outlook.unended + more <= DEFAULTS.most


@given(outlooks)
def test_the_window_covers_permits_and_two_seconds_within_its_bounds(outlook: Outlook) -> None:
    window = wanted(outlook)
    assert DEFAULTS.least <= window <= DEFAULTS.most
    assert window == DEFAULTS.most or window >= max(outlook.permits, 2 * outlook.rate)


@given(outlooks)
def test_what_is_taken_fills_the_window_and_is_a_quarter_of_it_at_least(outlook: Outlook) -> None:
    more, window = room(outlook), wanted(outlook)
    assert more == 0 or (outlook.unended + more == window and 4 * more >= window)
    assert more > 0 or 4 * outlook.unended > 3 * window - 4


@given(outlooks, st.integers(1, 1_000))
def test_more_under_way_never_takes_more(outlook: Outlook, more: int) -> None:
    fuller = Outlook(outlook.unended + more, outlook.permits, outlook.rate)
    assert room(fuller) <= room(outlook)


@given(st.integers(1, 5_000), traits, st.floats(0, 50_000), st.floats(0, 2_000_000))
def test_in_hand_is_never_more_than_the_source_allows_nor_older_nor_larger_than_4_mib(
    n: int, kind: Traits, feeds: float, size: float
) -> None:
    limit = fetch_limit(n, kind, Habits(feeds, size))
    assert 1 <= limit <= min(n, kind.window)
    assert limit == 1 or limit * size <= IN_HAND
    if kind.acknowledge_within is not None:
        assert fetch_wait(kind) <= kind.acknowledge_within / 4
        if feeds > 0 and limit > 1:
            assert limit / feeds <= kind.acknowledge_within / 4


@given(outlooks, st.floats(0, 1))
def test_where_little_is_meant_more_is_fetched_and_never_more_than_could_be_under_way(
    outlook: Outlook, meant: float
) -> None:
    more = room(outlook)
    if more:
        fetched = widened(more, outlook, meant)
        assert more <= fetched <= DEFAULTS.most - outlook.unended
        assert meant < 1 or fetched == more


@given(outlooks)
def test_the_next_look_is_within_half_a_second_and_not_at_once(outlook: Outlook) -> None:
    assert DEFAULTS.soonest <= look_again(outlook) <= DEFAULTS.latest


def test_nothing_is_known_of_a_lane_yet_and_fifty_are_taken() -> None:
    assert room(Outlook(0)) == 50
    assert room(Outlook(38)) == 0
    assert room(Outlook(37)) == 13


def test_a_target_that_is_down_stops_the_reading_by_itself() -> None:
    assert room(Outlook(unended=50, permits=1, rate=0.0)) == 0
