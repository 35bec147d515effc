"""An expected refusal is a value: it names its rule and says when to come back (law K5)."""

from dataclasses import dataclass
from enum import StrEnum


class Rule(StrEnum):
    """The rules that can refuse or hold work. The values are public: in API bodies and metrics."""

    RATE = "rate"  # the tenant's submit rate; retry_after is exact for a lone caller
    BOUND = "bound"  # the tenant's queue bound; retry_after is an estimate with jitter
    OVERLOAD = "overload"  # the whole pool sheds work of this tier; retry_after is an estimate with jitter
    KEY_REUSED = "idempotency_key_reused"  # the same key came with another body; coming back does not help


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something was not accepted, and when trying again makes sense.

    ``retry_after`` is in seconds, finite and >= 0, or None where coming back with the same request cannot
    help. ``detail`` is a sentence for people: it holds no secret and nothing of another tenant.
    """

    rule: Rule
    detail: str
    retry_after: float | None
