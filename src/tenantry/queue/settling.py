"""From the outcome of an attempt to the settlement of its job. Pure."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tenantry.config.model import TargetSettings
from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.lanes.adaptive import is_adaptive
from tenantry.lanes.fingerprint import fingerprint_of
from tenantry.lanes.outcome import Fault, Outcome
from tenantry.lanes.retry import Decision, Step, Tries, reason_of, replay_rule, settle_rule
from tenantry.lanes.summary import Summary, summary_of
from tenantry.queue.model import Attempt, ClaimedJob, Ending, EndKind, FlowId, ParkReason, Settlement

_LOST = Outcome("worker_lost")

LOST_FINGERPRINT = fingerprint_of(_LOST.error_class, None, "")
"""Of every attempt whose worker was lost."""


def spent_before(job: ClaimedJob, settings: TargetSettings) -> Settlement | None:
    """The end of a job whose attempts are used up already, by workers that were lost or because fewer are
    allowed now; None when one is left.

    The attempt that would be the next is never made, so it neither counts nor has a record. What is told is
    how the last one ended; a replay's message that is itself to blame is parked, as it would have been."""
    if job.attempt <= settings.max_attempts:
        return None
    last = job.last or _LOST
    is_parked = job.replay is not None and last.fault is Fault.MESSAGE
    return Settlement(
        job,
        Ending.PARKED if is_parked else Ending.DEAD,
        0.0,
        reason=reason_of(job.number - 1, last),
        status=last.status,
        park_reason=ParkReason.POISON if is_parked else None,
        fingerprint=_print(job, last),
    )


def error_class_of(settlement: Settlement) -> str:
    """The class of what went wrong; empty when nothing did."""
    if settlement.failure is not None:
        return settlement.failure.error_class
    if settlement.ending not in {Ending.DEAD, Ending.PARKED}:
        return ""
    return (settlement.job.last or _LOST).error_class


def settlement_of(
    job: ClaimedJob, settings: TargetSettings, outcome: Outcome, *, ended_at: Timestamp, draw: float
) -> Settlement:
    """What becomes of ``job``. ``draw`` is uniform in [0, 1]."""
    decision = _decision(job, settings, outcome, draw)
    heard = outcome if is_adaptive(job.target, settings) else None
    if decision.step is Step.DELIVERED:
        return Settlement(job, Ending.DELIVERED, outcome.busy_for, status=outcome.status, outcome=heard)
    failure = Attempt(
        job.number, ended_at, outcome.busy_for, outcome.status, outcome.error_class, outcome.excerpt
    )
    return Settlement(
        job,
        Ending(decision.step.value),
        outcome.busy_for,
        retry_for=decision.retry_for,
        failure=failure,
        reason=decision.reason,
        status=outcome.status,
        outcome=heard,
        park_reason=ParkReason.POISON if decision.step is Step.PARKED else None,
        fingerprint=_print(job, outcome),
    )


def _decision(job: ClaimedJob, settings: TargetSettings, outcome: Outcome, draw: float) -> Decision:
    if job.replay is None:
        return settle_rule(job.attempt, outcome, settings, draw)
    tries = Tries(job.prior, job.faults, job.replay.park_after)
    return replay_rule(job.attempt, outcome, settings, draw, tries=tries)


def _print(job: ClaimedJob, outcome: Outcome) -> str:
    """Of a replay's job alone: nobody compares the failures of others."""
    if job.replay is None:
        return ""
    return fingerprint_of(outcome.error_class, outcome.status, outcome.excerpt)


def summaries_of(settlements: Iterable[Settlement]) -> dict[FlowId, Summary]:
    """What the shapers of the lanes are to hear, by a flow of each, in the order of the endings. O(n)."""
    by_flow: dict[FlowId, list[Outcome]] = {}
    for settlement in settlements:
        if settlement.outcome is not None:
            by_flow.setdefault(settlement.job.flow, []).append(settlement.outcome)
    return {flow: summary_of(outcomes) for flow, outcomes in by_flow.items()}


END_KINDS: Mapping[Ending, EndKind] = MappingProxyType(
    {
        Ending.DELIVERED: EndKind.DELIVERED,
        Ending.RETRY: EndKind.FAILED,
        Ending.DEAD: EndKind.DEAD,
        Ending.PARKED: EndKind.PARKED,
    }
)
"""What a replay is told of an ending; of a job that is given back unharmed nothing."""


def checked_parking(settlement: Settlement) -> tuple[str, ParkReason]:
    """Which replay parks the job, and why. Raises :class:`InvariantBroken` for a job that is no replay's."""
    replay, why = settlement.job.replay, settlement.park_reason
    if replay is None or why is None:
        raise InvariantBroken(f"job {settlement.job.id} is parked without a replay, or without a reason")
    return replay.id, why


def release(job: ClaimedJob, busy_for: Seconds) -> Settlement:
    """Give ``job`` back unharmed: this attempt does not count."""
    return Settlement(job, Ending.RELEASED, busy_for)
