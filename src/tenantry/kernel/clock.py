"""The one reader of time. Everything else is handed a :class:`Clock`, so that tests own time."""

import time
from typing import Protocol

from tenantry.kernel.instant import Instant, Timestamp


class Clock(Protocol):
    """Two clocks that must not be mixed. Implementations are safe to call from any thread."""

    def monotonic(self) -> Instant:
        """Never goes back; its zero means nothing."""
        ...

    def now(self) -> Timestamp:
        """Wall time. It may be wrong and may step: no lease is ever decided by it (law K4)."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> Instant:
        return Instant(time.monotonic())

    def now(self) -> Timestamp:
        return Timestamp(time.time())
