"""What happened, as typed values. Rooms emit; ``telemetry`` alone turns events into metrics and logs.

An event class is frozen, named as a past participle, and holds no secret. The published table of events
(``docs/telemetry.md``) is drawn from the subclasses.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """The base of everything that is told."""


EventSink = Callable[[Event], None]
"""Where events go. Must return at once and never raise."""


def ignore(event: Event) -> None:
    """The sink of those who do not listen."""
