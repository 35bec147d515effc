"""What this room raises.

::

    DependencyError
    └── BrokerFailed        the broker or its client failed for good: fenced, not authorised
    PeerError
    └── HandlingFailed      a record could not be handled, and nobody takes it aside: the consumer stopped
"""

from tenantry.brokers.kafka.model import Record
from tenantry.kernel.errors import DependencyError, PeerError


class BrokerFailed(DependencyError):
    """``code`` is the broker's name of the fault, such as ``TOPIC_AUTHORIZATION_FAILED``."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(f"Kafka: {code}: {text}")


class HandlingFailed(PeerError):
    """``record`` was not finished and is not committed; ``__cause__`` says why. A restart begins with it."""

    def __init__(self, record: Record) -> None:
        self.record = record
        super().__init__(
            f"{record.spot.topic}/{record.spot.partition}@{record.offset} could not be handled. "
            "Pass Handling(on_failed=...) to put such records aside and go on."
        )
