"""Events as Prometheus metrics, in a registry of their own."""

from tenantry.kernel.events import Event
from tenantry.telemetry.mapping import HANDLERS
from tenantry.telemetry.meters import MOST_TENANTS, Meters


class Metrics:
    """A sink of events and what may be scraped of them. Safe to call from any thread; it never raises.

    ``per_tenant``: also count by tenant, the first ``most_tenants`` (>= 1) that appear under their own
    names and all others together as ``other``: cardinality stays bounded whatever tenants do.
    """

    def __init__(self, *, per_tenant: bool = False, most_tenants: int = MOST_TENANTS) -> None:
        self.meters = Meters(per_tenant=per_tenant, most_tenants=most_tenants)

    def __call__(self, event: Event) -> None:
        handler = HANDLERS.get(type(event))
        if handler is not None:
            handler(self.meters, event)

    def exposition(self) -> tuple[bytes, str]:
        """What a scrape gets: the body in the text format, and its content type."""
        return self.meters.exposition()
