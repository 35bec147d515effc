"""Exponential backoff with full jitter.

Source: M. Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015): of the schemes compared
there, full jitter has the least work and near the least completion time, since retries that failed
together do not come back together.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before attempt n + 1: uniform in (0, min(cap, base * 2**(n - 1))].

    ``base`` and ``cap`` are in seconds, both > 0.
    """

    base: float = 2.0
    cap: float = 600.0

    def delay(self, failed_attempts: int, draw: float) -> float:
        """Seconds to wait after ``failed_attempts`` >= 1 failures; ``draw`` is uniform in [0, 1]. O(1)."""
        return draw * self.ceiling(failed_attempts)

    def ceiling(self, failed_attempts: int) -> float:
        """The longest wait after that many failures. Safe for any count: the exponent is bounded."""
        exponent = min(max(failed_attempts, 1) - 1, 62)
        return min(self.cap, self.base * 2.0**exponent)


def after_hint(hint: float, draw: float, *, spread: float = 0.1, cap: float = 3600.0) -> float:
    """Seconds to wait when the peer named ``hint`` seconds: never earlier, spread over the next tenth.

    A peer that tells a crowd the same number gets the crowd back spread, and none of it early. ``hint`` is
    taken as at most ``cap``; a negative or NaN one as 0.
    """
    asked = min(hint, cap) if hint > 0 else 0.0
    return asked * (1.0 + spread * draw)
