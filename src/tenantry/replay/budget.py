"""What a replay may use of itself: its budget, and its sample. Reaching one holds it; nothing is lost. Pure.

A budget of messages only ends the taking: what was taken goes on. One of failures, of time or a deadline also
stops what waits, since going on is what it forbids.
"""

from collections.abc import Iterator
from math import ceil
from typing import Final

from tenantry.kernel.instant import Seconds, Timestamp, as_datetime
from tenantry.replay.model import Budget, Counts, Hold, HoldRule, Membership, ReplaySpec

UNCOUNTED_SAMPLE: Final = 100
"""Messages of a sample, where the source cannot count what a share of it is."""

_LARGER: Final = "a larger budget lets it go on"


def reached(budget: Budget, counts: Counts, *, running_for: Seconds, now: Timestamp) -> Hold | None:
    """The hold of the first part of the budget that is used up, those that stop before those that do not.
    Pure, O(1). ``running_for``: seconds of running; held and paused time is not in it."""
    for reason, stops in _used_up(budget, counts, running_for, now):
        return Hold(HoldRule.BUDGET, f"{reason}; {_LARGER}", stops=stops)
    return None


def _used_up(
    budget: Budget, counts: Counts, running_for: Seconds, now: Timestamp
) -> Iterator[tuple[str, bool]]:
    failed = counts.dead + counts.parked
    if budget.until is not None and now >= budget.until:
        yield f"its deadline, {as_datetime(budget.until):%Y-%m-%d %H:%M:%S} UTC, is over", True
    if budget.running_for is not None and running_for >= budget.running_for:
        yield f"its {budget.running_for:,.0f} s of running are used up", True
    if budget.failures is not None and failed >= budget.failures:
        yield f"{failed:,} messages are dead or parked, and its budget is {budget.failures:,}", True
    if budget.messages is not None and counts.taken >= budget.messages:
        yield f"its budget of {budget.messages:,} messages is taken", False


def sample_size(spec: ReplaySpec, membership: Membership) -> int | None:
    """How many messages its sample is, >= 1; None where none was asked for. Pure."""
    if spec.sample is None:
        return None
    return UNCOUNTED_SAMPLE if membership.count is None else max(1, ceil(spec.sample * membership.count))


def room(spec: ReplaySpec, membership: Membership, counts: Counts, *, sampled: bool) -> int | None:
    """How many more messages budget and sample let it take, >= 0; None for no bound. ``sampled``: the sample
    was run and continued. Pure, O(1)."""
    sample = None if sampled else sample_size(spec, membership)
    bounds = [bound for bound in (sample, spec.budget.messages) if bound is not None]
    return max(0, min(bounds) - counts.taken) if bounds else None


def sample_run(spec: ReplaySpec, membership: Membership, counts: Counts, *, sampled: bool) -> Hold | None:
    """The hold of a sample that was taken and has ended, with what became of it. Pure, O(1)."""
    size = None if sampled else sample_size(spec, membership)
    if size is None or counts.taken < size or counts.unended:
        return None
    figures = f"{counts.delivered:,} delivered, {counts.parked:,} parked, {counts.dead:,} dead"
    seen = f"{counts.duplicate:,} were delivered before" if counts.duplicate else ""
    told = ", ".join(filter(None, (figures, seen)))
    return Hold(HoldRule.SAMPLE, f"the sample of {counts.taken:,} messages was run: {told}; continue goes on")
