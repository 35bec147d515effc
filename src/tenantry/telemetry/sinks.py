"""Joining sinks."""

from tenantry.kernel.events import Event, EventSink


def fan_out(*sinks: EventSink) -> EventSink:
    """One sink that tells each of ``sinks``, in order. As safe to call from many threads as they are."""

    def tell(event: Event) -> None:
        for sink in sinks:
            sink(event)

    return tell
