"""What becomes of a job after an attempt: delivered, tried again later, dead or parked. Pure rules.

Retries wait by exponential backoff with full jitter (:mod:`tenantry.algorithms.backoff`); a target's own
``Retry-After`` (RFC 9110, section 10.2.3) is never undercut, and is spread so that a crowd that was told the
same number does not come back together.
"""

import re
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum

from tenantry.algorithms.backoff import Backoff, after_hint
from tenantry.config.model import TargetSettings
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.lanes.outcome import CAUSES, Fault, Outcome

LONGEST_HINT: Seconds = 86_400.0
"""A target may send a job away for a day at most; a longer ``Retry-After`` counts as a day."""

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)


class Step(StrEnum):
    """What to do with the job now. The values are those of the queue's ``Ending``."""

    DELIVERED = "delivered"
    RETRY = "retry"
    DEAD = "dead"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class Tries:
    """What was tried before the attempt that just ended, for a replay's job. ``prior``: attempts before the
    replay. ``faults``: attempts in it that failed by the message's fault. ``park_after``: so many of those,
    with the one that just ended, park the job; 1 to 100."""

    prior: int
    faults: int
    park_after: int


@dataclass(frozen=True, slots=True)
class Decision:
    """``retry_for``: seconds until the next attempt (RETRY only). ``reason``: why the job is dead or parked
    (DEAD and PARKED only)."""

    step: Step
    retry_for: Seconds = 0.0
    reason: str = ""


def settle_rule(attempt: int, outcome: Outcome, settings: TargetSettings, draw: float) -> Decision:
    """What follows from ``outcome`` of attempt number ``attempt`` (counted from 1). Pure, O(1).

    Every attempt counts, whosever fault it was: a job that can never succeed must end (law K1).
    ``draw`` is uniform in [0, 1].
    """
    if outcome.succeeded:
        return Decision(Step.DELIVERED)
    if attempt >= settings.max_attempts or CAUSES[outcome.error_class].final:
        return Decision(Step.DEAD, reason=reason_of(attempt, outcome))
    return Decision(Step.RETRY, retry_for=retry_delay(attempt, outcome.retry_after, settings, draw))


def replay_rule(
    attempt: int, outcome: Outcome, settings: TargetSettings, draw: float, *, tries: Tries
) -> Decision:
    """:func:`settle_rule` for a replay's job, ``attempt`` counted from 1 in this replay. Pure, O(1).

    What the message itself is to blame for parks it, and never kills it: once it failed so ``park_after``
    times, or where another attempt cannot help or is not left. Target faults and ours go on as for live jobs:
    a target that is down makes no message poison.
    """
    number = tries.prior + attempt
    if outcome.fault is not Fault.MESSAGE:
        decision = settle_rule(attempt, outcome, settings, draw)
        return replace(decision, reason=reason_of(number, outcome)) if decision.reason else decision
    spent = tries.faults + 1 >= tries.park_after or attempt >= settings.max_attempts
    if spent or CAUSES[outcome.error_class].final:
        return Decision(Step.PARKED, reason=reason_of(number, outcome))
    return Decision(Step.RETRY, retry_for=retry_delay(attempt, outcome.retry_after, settings, draw))


def retry_delay(attempt: int, hint: Seconds | None, settings: TargetSettings, draw: float) -> Seconds:
    """Seconds until the next attempt: the backoff's, and never less than the target's hint. Pure, O(1).

    A hint of 0 leaves the backoff as it is: a target cannot ask for a hot loop.
    """
    backoff = Backoff(settings.backoff_base, settings.backoff_cap).delay(attempt, draw)
    if hint is None:
        return backoff
    return max(backoff, after_hint(hint, draw, cap=LONGEST_HINT))


def reason_of(attempt: int, outcome: Outcome) -> str:
    """Why a job died, for people: ``http_403 after 3 attempts: the target answered 403 Forbidden``; where no
    target answered, with what was said: ``rejected after 1 attempt: the handler rejected the job: …``."""
    attempts = "1 attempt" if attempt == 1 else f"{attempt} attempts"
    said = f": {outcome.excerpt}" if outcome.excerpt and outcome.status is None else ""
    return f"{outcome.error_class} after {attempts}: {CAUSES[outcome.error_class].meaning}{said}"


def parse_retry_after(text: str | None, *, now: Timestamp) -> Seconds | None:
    """A ``Retry-After`` header as seconds >= 0 from ``now``; None for a missing or meaningless one. Pure.

    Takes seconds (a fraction too: some targets send one) or an HTTP date in any of its three forms. A date in
    the past is 0. ``now`` is best the answer's own ``Date``, so that a wrong clock on either side cancels
    out.
    """
    if text is None:
        return None
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text[:300]), LONGEST_HINT)
    at = parse_http_date(text)
    return None if at is None else max(0.0, at - now)


def parse_http_date(text: str | None) -> Timestamp | None:
    """An HTTP date (RFC 9110, section 5.6.7) as a timestamp, or None if it is not one. Pure."""
    if not text or len(text) > 64 or not text[0].isalpha():
        return None
    try:
        parsed = parsedate_to_datetime(text)
        aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
        return Timestamp(aware.timestamp())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
