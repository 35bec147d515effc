"""A clock that stands still until it is moved."""

import threading

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Instant, Seconds, Timestamp


class ManualClock:
    """Implements :class:`~tenantry.kernel.clock.Clock`; safe to call from any thread.

    ``now`` starts at ``at`` (2026-01-01T00:00:00Z unless given), ``monotonic`` at 1,000 seconds.
    """

    def __init__(self, at: float = 1_767_225_600.0) -> None:
        self._lock = threading.Lock()
        self._monotonic, self._wall = 1_000.0, float(at)

    def monotonic(self) -> Instant:
        with self._lock:
            return Instant(self._monotonic)

    def now(self) -> Timestamp:
        with self._lock:
            return Timestamp(self._wall)

    def advance(self, seconds: Seconds) -> None:
        """Time passes: both clocks move on. Raises :class:`InvalidValue` for ``seconds`` < 0."""
        if not seconds >= 0:
            raise InvalidValue("ManualClock.advance", seconds, "seconds >= 0", "step_wall goes back")
        with self._lock:
            self._monotonic += seconds
            self._wall += seconds

    def step_wall(self, seconds: Seconds) -> None:
        """The wall clock alone is set, forward or back, as an administrator or NTP does it."""
        with self._lock:
            self._wall += seconds
