"""What a coordinator remembers of one replay between two looks at it: its rate, how long it ran, whether what
ends is poison. Pure: it is told counts and times. Lost with its coordinator, and then learned anew; nothing
here decides what was taken."""

from collections.abc import Mapping
from math import exp
from types import MappingProxyType
from typing import Final

import msgspec

from tenantry.algorithms import estimate
from tenantry.kernel.instant import Instant, Seconds, Timestamp
from tenantry.replay.model import Counts, Hold, ReplayState, ReplayView
from tenantry.replay.poison import NO_EVIDENCE, heard, nearly_all
from tenantry.replay.progress import DryRun, Progress, Standing, decoded, done, progress, remaining

RUNS = frozenset({ReplayState.RUNNING, ReplayState.DRAINING, ReplayState.CANCELLING})
"""The states whose time counts: held and paused time does not."""


RATE_OVER: Final[Seconds] = 2.0
"""The rate that windows go by is of about the last so many seconds: what is ahead of them is as far ahead."""


class Watch:
    """One replay's, of one coordinator. Told with :meth:`look`, in the order of time."""

    def __init__(self, view: ReplayView, now: Instant) -> None:
        self.counts = view.counts
        self.running_for: Seconds = view.running_for
        self.dry = _found_before(view) if view.spec.dry_run else None
        self.shares: tuple[float, float] | None = None
        self.held_classes: Mapping[str, str] = MappingProxyType({})
        self.new: int | None = None
        # Ends at targets a second: duplicates and what is parked unsent cost lanes nothing.
        self.rate = 0.0
        self._seen, self._evidence = estimate.opened(now), NO_EVIDENCE
        self._done, self._looked_at, self._moved_at = done(view.counts), now, now
        self._told: object = None
        self._told_at: Instant | None = None

    def look(self, counts: Counts, state: ReplayState, now: Instant) -> None:
        """What is now, after ``state`` has lasted since the last look."""
        passed, through = max(0.0, now - self._looked_at), done(counts, self.dry)
        runs = state in RUNS
        self.running_for += passed if runs else 0.0
        ended = max(0, through - self._done)
        self._seen = estimate.observed(self._seen, ended, held_for=0.0 if runs else passed, now=now)
        self._evidence = heard(self._evidence, self.counts, counts)
        if ended or counts.in_flight:
            self._moved_at = now
        if runs and passed > 0:
            sent = counts.delivered + counts.dead - self.counts.delivered - self.counts.dead
            self.rate += (max(0, sent) / passed - self.rate) * (1.0 - exp(-passed / RATE_OVER))
        self.counts, self._done, self._looked_at = counts, through, now

    def poison(self) -> Hold | None:
        """The hold of a replay that is nearly all poison."""
        return nearly_all(self._evidence)

    def continued(self) -> None:
        """A person let it go on: what was seen until now is no reason any more."""
        self._evidence = NO_EVIDENCE

    def record(self, view: ReplayView, at: Timestamp) -> Progress:
        """The record for people, of ``view`` as it is now."""
        rest = remaining(view, self.dry)
        held = view.state not in RUNS
        found = estimate.estimate(self._seen, rest or 0, held=held)
        quiet = self._looked_at - self._moved_at
        return progress(view, Standing(at, found, self.shares, self.new, quiet, self.dry, self.held_classes))

    def is_news(self, view: ReplayView, now: Instant, *, every: Seconds, at_least_every: Seconds) -> bool:
        """Whether a record is to be written: while it runs or something changes every ``every`` seconds, else
        so often that its age shows that somebody looks. Cheap: it is asked each turn, the record is not."""
        if self._told_at is None:
            return True
        told = self._tellable(view)
        often = told != self._told or view.state in RUNS
        return now - self._told_at >= (every if often else at_least_every)

    def told(self, view: ReplayView, now: Instant) -> None:
        """The record of ``view`` was written."""
        self._told, self._told_at = self._tellable(view), now

    def _tellable(self, view: ReplayView) -> object:
        return view.state, view.hold, view.counts, self.new, self.dry


def _found_before(view: ReplayView) -> DryRun:
    """A dry run that has read everything has told what it found; any other begins anew."""
    try:
        told = decoded(view.progress).dry if view.exhausted and view.progress else None
    except msgspec.MsgspecError:
        told = None
    return told or DryRun()
