"""Messages that fail by their own fault: single ones, whole classes, and backlogs that are nearly all poison.

Theory
    *One message* is parked after ``park_after`` failures by its own fault; that is the queue's
    (:func:`tenantry.lanes.retry.replay_rule`).

    *A class* is what failed alike before: the fingerprint of a message's recorded failure, or, where its
    source does not say, its target. After ``class_after`` attempts of a class that failed alike, with nearly
    no delivery, its further messages are parked unsent (rule ``class``), and the rest goes on. A target that
    words each failure anew makes a class of each, so stores keep the frequent ones and forget the rare.

    *Nearly all poison.* Of the messages that lately ended by delivery or by parking, the share of the parked
    is judged by Wilson's interval: when its lower bound, one-sided at 95 %, is 0.9 or more after 30 messages
    at least, the replay holds itself. Messages are counted and not attempts: three attempts of one bad
    message would otherwise weigh as three. "Lately" forgets exponentially beyond 1,000 messages, so that a
    backlog that turns bad after a good beginning is noticed too, and a cluster of fifty bad ones in a good
    backlog is not mistaken. Looking again and again finds 0.9 a little more often than one look does: that
    costs a person's `continue`, after which the count begins anew.

    What the *target* is to blame for counts for nothing here: a target that is down makes no message poison.

All pure. Case R9.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from tenantry.algorithms.wilson import ONE_SIDED_95, interval
from tenantry.lanes.fingerprint import fingerprint_of
from tenantry.lanes.model import Target
from tenantry.replay.model import ClassFailure, Counts, Hold, HoldRule, Message

NEARLY_ALL: Final = 0.9
LEAST_ENDED: Final = 30
REMEMBERED: Final = 1_000.0
NEARLY_NONE: Final = 0.05
"""Of a class's ends: so small a part of deliveries does not clear it."""
CLASSES_KEPT: Final = 250
"""Of a replay, in each count: those with most failures, and as many origins with most deliveries. A store may
hold four times as many rows before it forgets."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """How the messages that lately ended did: delivered or parked. Weights, not counts: the past fades."""

    delivered: float = 0.0
    parked: float = 0.0

    @property
    def ended(self) -> float:
        return self.delivered + self.parked


NO_EVIDENCE: Final = Evidence()


def heard(evidence: Evidence, before: Counts, after: Counts) -> Evidence:
    """With what ended between two readings of the counts. Pure, O(1)."""
    found = Evidence(
        evidence.delivered + max(0, after.delivered - before.delivered),
        evidence.parked + max(0, after.parked - before.parked),
    )
    if found.ended <= REMEMBERED:
        return found
    kept = REMEMBERED / found.ended
    return Evidence(found.delivered * kept, found.parked * kept)


def nearly_all(evidence: Evidence) -> Hold | None:
    """The hold of a replay that is nearly all poison, with the figures. Pure, O(1)."""
    ended, parked = evidence.ended, evidence.parked
    if ended < LEAST_ENDED or interval(parked, ended, ONE_SIDED_95)[0] < NEARLY_ALL:
        return None
    reason = (
        f"{parked:,.0f} of the last {ended:,.0f} messages that ended were parked, by their own fault; "
        "look at some of them, then continue or cancel"
    )
    return Hold(HoldRule.POISON, reason, stops=True)


def origin_of(message: Message, target: Target) -> str:
    """The class of a message: the fingerprint of its recorded failure; without one, its target's. Pure,
    O(length). At most 64 characters, none of them from the message."""
    if message.error_class or message.failure:
        return fingerprint_of(message.error_class, None, message.failure)
    return "target:" + blake2b(target.encode(), digest_size=8).hexdigest()


def held_classes(failures: Iterable[ClassFailure], class_after: int) -> Mapping[str, str]:
    """The classes whose further messages are parked, each with why. Pure, O(classes)."""
    return {each.origin: _why(each) for each in failures if _is_held(each, class_after)}


def _is_held(each: ClassFailure, class_after: int) -> bool:
    most = NEARLY_NONE * (each.failures + each.delivered)
    return each.failures >= class_after and each.delivered <= most


def _why(each: ClassFailure) -> str:
    return f"{each.failures:,} attempts of its class failed alike and {each.delivered:,} of it were delivered"
