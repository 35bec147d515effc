"""What may be committed, for any order of finishing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.brokers.kafka.offsets import OffsetTracker
from tenantry.kernel.errors import InvariantBroken

offsets = st.sets(st.integers(0, 10_000), max_size=60).map(sorted)


@given(offsets, st.data())
def test_nothing_at_or_above_an_unfinished_record_may_ever_be_committed(
    fetched: list[int], data: st.DataObject
) -> None:
    tracker, open_, waiting = OffsetTracker(), set[int](), list(fetched)
    last = None
    while waiting or open_:
        if waiting and (not open_ or data.draw(st.booleans())):
            last = waiting.pop(0)
            tracker.fetched(last)
            open_.add(last)
        else:
            done = data.draw(st.sampled_from(sorted(open_)))
            tracker.finished(done)
            open_.discard(done)
        assert last is not None
        assert tracker.position == (min(open_) if open_ else last + 1)
        assert tracker.unfinished == len(open_)


@given(offsets.filter(bool), st.randoms(use_true_random=False))
def test_the_position_never_goes_back(fetched: list[int], chance: object) -> None:
    tracker = OffsetTracker()
    for offset in fetched:
        tracker.fetched(offset)
    order = list(fetched)
    chance.shuffle(order)  # type: ignore[attr-defined]
    seen = [tracker.position or 0]
    for offset in order:
        tracker.finished(offset)
        seen.append(tracker.position or 0)
    assert seen == sorted(seen)
    assert seen[-1] == fetched[-1] + 1


def test_before_anything_was_fetched_there_is_nothing_to_commit() -> None:
    assert OffsetTracker().position is None


def test_a_bug_in_the_caller_is_not_swallowed() -> None:
    tracker = OffsetTracker()
    tracker.fetched(5)
    with pytest.raises(InvariantBroken, match="after 5"):
        tracker.fetched(5)
    tracker.finished(5)
    with pytest.raises(InvariantBroken, match="not open"):
        tracker.finished(5)
