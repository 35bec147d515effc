"""Which event moves which metric: one short function an event, and the table that finds it."""

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar, cast

from tenantry.kernel.events import Event
from tenantry.lanes.outcome import CAUSES
from tenantry.limiter import events as limiter
from tenantry.queue import events as queue
from tenantry.queue.model import Ending, JobClass
from tenantry.telemetry import http_events as http
from tenantry.telemetry import kafka, replay
from tenantry.telemetry.meters import OTHER, Meters

H = TypeVar("H", bound=Callable[..., None])
Handler = Callable[[Meters, Event], None]

_HANDLERS: dict[type[Event], Handler] = {}


def _maps(kind: type[Event]) -> Callable[[H], H]:
    def note(handler: H) -> H:
        _HANDLERS[kind] = cast(Handler, handler)
        return handler

    return note


_CLASS_LABELS = {job_class: job_class.name.lower() for job_class in JobClass}


def class_label(job_class: JobClass) -> str:
    return _CLASS_LABELS[job_class]


def error_label(error_class: str) -> str:
    """The error class, or ``other`` for one that is not in the closed set."""
    return error_class if error_class in CAUSES else OTHER


@_maps(queue.JobsAccepted)
def _accepted(meters: Meters, event: queue.JobsAccepted) -> None:
    labels = (event.tier, class_label(event.job_class))
    meters.count("jobs_accepted_total", event.count - event.existing, *labels)
    meters.count("jobs_repeated_total", event.existing, *labels)
    meters.count_tenant("tenant_jobs_accepted_total", event.tenant, event.count - event.existing)


@_maps(queue.SubmitRefused)
def _refused(meters: Meters, event: queue.SubmitRefused) -> None:
    meters.count("jobs_refused_total", event.count, event.tier, event.rule.value)
    meters.count_tenant("tenant_jobs_refused_total", event.tenant, event.count, event.rule.value)


@_maps(queue.BulkStored)
def _stored(meters: Meters, event: queue.BulkStored) -> None:
    meters.count("jobs_stored_total", event.count, event.tier)


@_maps(queue.JobsFed)
def _fed(meters: Meters, event: queue.JobsFed) -> None:
    meters.count("jobs_fed_total", event.count)


@_maps(queue.JobsCancelled)
def _cancelled(meters: Meters, event: queue.JobsCancelled) -> None:
    meters.count("jobs_cancelled_total", event.count, event.tier)


@_maps(queue.JobsClaimed)
def _claimed(meters: Meters, event: queue.JobsClaimed) -> None:
    for start in event.starts:
        meters.observe("job_wait_seconds", start.waited_for, start.tier, class_label(start.job_class))


@_maps(queue.JobsSettled)
def _settled(meters: Meters, event: queue.JobsSettled) -> None:
    meters.observe("settle_seconds", event.took_for)
    meters.count("settles_lost_total", event.lost)
    for (tier, job_class, ending), count in Counter(map(_way_of_ending, event.ends)).items():
        meters.count("attempts_total", count, tier, class_label(job_class), ending.value)
    for end in event.ends:
        _ended(meters, end)


def _way_of_ending(end: queue.JobEnd) -> tuple[str, JobClass, Ending]:
    return end.tier, end.job_class, end.ending


def _ended(meters: Meters, end: queue.JobEnd) -> None:
    meters.observe("attempt_seconds", end.busy_for, end.tier, class_label(end.job_class))
    if end.ending in {Ending.RETRY, Ending.DEAD, Ending.PARKED}:
        meters.count("attempt_failures_total", 1, end.tier, error_label(end.error_class))
    if meters.per_tenant:
        meters.count_tenant("tenant_attempts_total", end.tenant, 1, end.ending.value)
        meters.count_tenant("tenant_busy_seconds_total", end.tenant, end.busy_for)


@_maps(queue.JobsReclaimed)
def _reclaimed(meters: Meters, event: queue.JobsReclaimed) -> None:
    meters.count("jobs_reclaimed_total", event.count)


@_maps(queue.LeasesLost)
def _leases_lost(meters: Meters, event: queue.LeasesLost) -> None:
    meters.count("leases_lost_total", event.claims)


@_maps(queue.PlannerElected)
def _elected(meters: Meters, event: queue.PlannerElected) -> None:
    meters.show("planner_leader", 1)


@_maps(queue.PlannerLeft)
@_maps(queue.PlannerLost)
def _place_lost(meters: Meters, event: queue.PlannerLeft | queue.PlannerLost) -> None:
    """The backlog is told by the planner: one who lost the place knows it no longer, and must not show it."""
    meters.show("planner_leader", 0)
    meters.forget(*_BACKLOG, *_LEVELS)


@_maps(queue.PlannerRebuilt)
def _rebuilt(meters: Meters, event: queue.PlannerRebuilt) -> None:
    meters.count("planner_rebuilds_total", 1)
    meters.observe("planner_rebuild_seconds", event.took_for)


@_maps(queue.RoundPlanned)
def _planned(meters: Meters, event: queue.RoundPlanned) -> None:
    meters.observe("planner_round_seconds", event.took_for)
    meters.count("planner_picks_total", event.picks)


@_maps(queue.StoreFailed)
def _store_failed(meters: Meters, event: queue.StoreFailed) -> None:
    meters.count("store_failures_total", 1, event.loop)


_BACKLOG = (
    "jobs_waiting",
    "jobs_delayed",
    "jobs_running",
    "in_quota_oldest_age_seconds",
    "pool_slots",
    "pool_slots_used",
    "lanes_held",
)


@_maps(queue.BacklogMeasured)
def _measured(meters: Meters, event: queue.BacklogMeasured) -> None:
    meters.forget(*_BACKLOG)
    for part in event.backlogs:
        labels = (part.pool, part.tier)
        meters.show("jobs_waiting", part.waiting, *labels)
        meters.show("jobs_delayed", part.delayed, *labels)
        meters.show("jobs_running", part.running, *labels)
        meters.show("in_quota_oldest_age_seconds", part.oldest_in_quota_for, *labels)
    for pool in event.pools:
        meters.show("pool_slots", pool.slots, pool.pool)
        meters.show("pool_slots_used", pool.used, pool.pool)
    for reason, lanes in event.held.items():
        meters.show("lanes_held", lanes, reason.value)


_LEVELS = ("pool_shedding_level", "pool_pressure_age_seconds")


@_maps(queue.LevelsMeasured)
def _levels(meters: Meters, event: queue.LevelsMeasured) -> None:
    meters.forget(*_LEVELS)
    for each in event.levels:
        meters.show("pool_shedding_level", each.level, each.pool)
        meters.show("pool_pressure_age_seconds", each.age, each.pool)


@_maps(queue.LevelChanged)
def _level_changed(meters: Meters, event: queue.LevelChanged) -> None:
    meters.count("shedding_changes_total", 1, event.level.pool, event.level.level.name.lower())


@_maps(queue.BreakerMoved)
def _moved(meters: Meters, event: queue.BreakerMoved) -> None:
    meters.count("breaker_moves_total", 1, event.state.value)


@_maps(limiter.LeasesExchanged)
def _exchanged(meters: Meters, event: limiter.LeasesExchanged) -> None:
    meters.observe("limiter_exchange_seconds", event.took_for)
    meters.count("limiter_asks_total", event.asks)
    meters.count("limiter_owing_total", event.owing)
    for kind in ("granted", "spent", "unleased", "refused"):
        meters.count("limiter_tokens_total", getattr(event, kind), kind)


@_maps(limiter.AuthorityLost)
def _authority_lost(meters: Meters, event: limiter.AuthorityLost) -> None:
    meters.count("limiter_authority_losses_total", 1)
    meters.show("limiter_cut_off", 1, event.shard)


@_maps(limiter.AuthorityFound)
def _authority_found(meters: Meters, event: limiter.AuthorityFound) -> None:
    meters.show("limiter_cut_off", 0, event.shard)


@_maps(limiter.ExactDecided)
def _exactly_decided(meters: Meters, event: limiter.ExactDecided) -> None:
    meters.count("limiter_exact_total", 1, event.basis, "allowed" if event.allowed else "refused")
    meters.observe("limiter_exact_seconds", event.took_for)


@_maps(http.RequestServed)
def _served(meters: Meters, event: http.RequestServed) -> None:
    meters.count("http_requests_total", 1, event.method, event.route, str(event.status))
    meters.observe("http_request_seconds", event.took_for, event.method, event.route)


@_maps(http.CredentialRefused)
def _credential_refused(meters: Meters, event: http.CredentialRefused) -> None:
    meters.count("http_credentials_refused_total", 1, event.reason)


@_maps(http.RequestFailed)
def _failed(meters: Meters, event: http.RequestFailed) -> None:
    meters.count("http_faults_total", 1, event.route)


for _event, _handler in (*kafka.HANDLERS.items(), *replay.HANDLERS.items()):
    _maps(_event)(_handler)

HANDLERS: Mapping[type[Event], Handler] = MappingProxyType(_HANDLERS)
"""Events that move a metric. The others are for logs alone."""
