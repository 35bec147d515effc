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

States
------
=========  =======================================================
state      a candidate
=========  =======================================================
unknown    is taken, whatever it is
known      is taken if lower; if higher and of a probe, up to drift
=========  =======================================================
"""

from dataclasses import dataclass
from typing import Final

DRIFT: Final = 0.005
"""The most that the reference rises, per minute, as a part of itself."""


@dataclass(frozen=True, slots=True)
class Reference:
    """``latency`` in seconds, None until something was measured. ``risen_at``: up to when its rise is paid:
    it may rise by :data:`DRIFT` for each minute since. ``probe_at``: when the next probe is due."""

    latency: float | None = None
    risen_at: float = 0.0
    probe_at: float = 0.0


def measured(reference: Reference, candidate: float, *, probe: bool, now: float) -> Reference:
    """The reference after a low percentile of ``candidate`` seconds was measured. Pure, O(1)."""
    known = reference.latency
    if known is None or candidate <= known:
        return Reference(candidate, now, reference.probe_at)
    if not probe:
        return reference
    minutes = max(0.0, now - reference.risen_at) / 60.0
    risen = min(candidate, known * (1.0 + DRIFT * minutes))
    return Reference(risen, now, reference.probe_at)


def scheduled(reference: Reference, *, every: float, draw: float, now: float) -> Reference:
    """The reference with its next probe ``every`` seconds ahead, spread by a quarter either way by ``draw``
    in [0, 1]: lanes to one target do not dip together. Pure, O(1)."""
    return Reference(reference.latency, reference.risen_at, now + every * (0.75 + 0.5 * draw))
