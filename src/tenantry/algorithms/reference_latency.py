"""What a call takes when the target has nothing else of ours to do: the yardstick of queueing.

Theory
------
Time above the reference is time in a queue (L. Brakmo, L. Peterson, "TCP Vegas", 1995, calls it BaseRTT). It
is a *windowed minimum of a low percentile*: low, so that a few slow calls say nothing; a minimum, because a
queue only ever adds. Candidates come in two kinds:

- *lower* ones are taken at once, whenever they were measured: a lane that began while its target was
  saturated learns better as soon as the target is idle;
- *higher* ones only from a **probe**, a short dip to fewer calls in flight, and then at most
  :data:`DRIFT` a minute. A target that is slow because others overload it looks exactly like one that has
  become slower for good, and a reference that followed freely would take any queue for normal: ten minutes of
  overload with a probe each minute move it by 5 %.

The first few calls of a lane go one at a time, and are the anchor. A handful of latencies is off by several
percent, and a reference that is too low by chance would stay so for long: while it is *young*, candidates
that are not far above it are averaged into it, whichever way they point.

States
------
=======  ====================================================================================
state    a candidate
=======  ====================================================================================
unknown  is taken, whatever it is: the reference is young
young    is averaged in, by the calls it stands for, unless it is :data:`NEAR` above or more;
         *known* after :data:`GROWN` calls
known    is taken if lower; if higher and of a probe, up to drift
=======  ====================================================================================
"""

from dataclasses import dataclass, replace
from typing import Final

DRIFT: Final = 0.005
"""The most that the reference rises, per minute, as a part of itself."""


NEAR: Final = 1.15
"""Beyond this times a young reference a candidate is a queue, and no correction."""

GROWN: Final = 100
"""Calls after which a reference is no longer young."""


@dataclass(frozen=True, slots=True)
class Reference:
    """``latency`` in seconds, None until something was measured. ``seen``: calls that it stands for.
    ``risen_at``: up to when its rise is paid:
    it may rise by :data:`DRIFT` for each minute since. ``probe_at``: when the next probe is due."""

    latency: float | None = None
    seen: int = 0
    risen_at: float = 0.0
    probe_at: float = 0.0

    @property
    def young(self) -> bool:
        """Whether it stands for few calls."""
        return self.seen < GROWN


def measured(reference: Reference, candidate: float, *, calls: int, probe: bool, now: float) -> Reference:
    """The reference after a low percentile of ``calls``, ``candidate`` seconds, was measured. Pure, O(1)."""
    known, seen = reference.latency, reference.seen + calls
    if known is None:
        return Reference(candidate, calls, now, reference.probe_at)
    if reference.young:
        if candidate > NEAR * known:
            return reference
        return Reference(known + (candidate - known) * calls / seen, seen, now, reference.probe_at)
    if candidate <= known:
        return Reference(candidate, seen, now, reference.probe_at)
    if not probe:
        return reference
    minutes = max(0.0, now - reference.risen_at) / 60.0
    risen = min(candidate, known * (1.0 + DRIFT * minutes))
    return Reference(risen, seen, now, reference.probe_at)


def scheduled(reference: Reference, *, every: float, draw: float, now: float) -> Reference:
    """The reference with its next probe ``every`` seconds ahead, spread by a quarter either way by ``draw``
    in [0, 1]: lanes to one target do not dip together. Pure, O(1)."""
    return replace(reference, probe_at=now + every * (0.75 + 0.5 * draw))
