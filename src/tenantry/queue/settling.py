"""From the outcome of an attempt to the settlement of its job. Pure."""

from collections.abc import Iterable

from tenantry.config.model import TargetSettings
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.lanes.adaptive import is_adaptive
from tenantry.lanes.outcome import Outcome
from tenantry.lanes.retry import Step, reason_of, settle_rule
from tenantry.lanes.summary import Summary, summary_of
from tenantry.queue.model import Attempt, ClaimedJob, Ending, FlowId, Settlement

_LOST = Outcome("worker_lost")


def lost_before(job: ClaimedJob, settings: TargetSettings) -> Settlement | None:
    """The end of a job whose attempts are used up by workers that were lost; None when one is left.

    The attempt that would be the next is never made, so it neither counts nor has a record."""
    if job.attempt <= settings.max_attempts:
        return None
    return Settlement(job, Ending.DEAD, 0.0, reason=reason_of(job.attempt - 1, _LOST))


def error_class_of(settlement: Settlement) -> str:
    """The class of what went wrong; empty when nothing did."""
    if settlement.failure is not None:
        return settlement.failure.error_class
    return _LOST.error_class if settlement.ending is Ending.DEAD else ""


def settlement_of(
    job: ClaimedJob, settings: TargetSettings, outcome: Outcome, *, ended_at: Timestamp, draw: float
) -> Settlement:
    """What becomes of ``job``. ``draw`` is uniform in [0, 1]."""
    decision = settle_rule(job.attempt, outcome, settings, draw)
    heard = outcome if is_adaptive(job.target, settings) else None
    if decision.step is Step.DELIVERED:
        return Settlement(job, Ending.DELIVERED, outcome.busy_for, status=outcome.status, outcome=heard)
    failure = Attempt(
        job.attempt, ended_at, outcome.busy_for, outcome.status, outcome.error_class, outcome.excerpt
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
    )


def summaries_of(settlements: Iterable[Settlement]) -> dict[FlowId, Summary]:
    """What the shapers of the lanes are to hear, by a flow of each, in the order of the endings. O(n)."""
    by_flow: dict[FlowId, list[Outcome]] = {}
    for settlement in settlements:
        if settlement.outcome is not None:
            by_flow.setdefault(settlement.job.flow, []).append(settlement.outcome)
    return {flow: summary_of(outcomes) for flow, outcomes in by_flow.items()}


def release(job: ClaimedJob, busy_for: Seconds) -> Settlement:
    """Give ``job`` back unharmed: this attempt does not count."""
    return Settlement(job, Ending.RELEASED, busy_for)
