"""Events move metrics; labels stay bounded; nothing secret and no tenant becomes one."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.algorithms.shedding import Level
from tenantry.brokers.kafka import PartitionLag, Spot, TenantLag
from tenantry.brokers.kafka import events as kafka
from tenantry.kernel.events import Event
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.kernel.verdict import Rule
from tenantry.lanes.outcome import CAUSES
from tenantry.lanes.shaper import Held
from tenantry.limiter import events as limiter
from tenantry.queue import events as queue
from tenantry.queue.model import Ending, JobClass, JobId, NodeId, PoolLevel
from tenantry.replay import events as replay
from tenantry.replay.model import Fate, HoldRule, ReplayId, ReplayState
from tenantry.telemetry import http_events as http
from tenantry.telemetry.catalogue import events, page
from tenantry.telemetry.logs import LEVELS
from tenantry.telemetry.mapping import HANDLERS
from tenantry.telemetry.meters import METRICS, PREFIX, TENANT_METRICS
from tenantry.telemetry.prometheus import Metrics

ACME, GOLD, NODE = TenantId("acme"), TierName("gold"), NodeId("n1")
LIVE = JobClass.LIVE
REPLAY = ReplayId("0190c0de-0000-7000-8000-000000000001")
SHED = PoolLevel("shared", Level.BACKGROUND, 9.0, 1.0, 15.0)
SPOT = Spot("orders", 3)
EXCHANGED = limiter.LeasesExchanged(
    "a:1", 3, granted=40.0, spent=30.0, unleased=2.0, refused=5.0, owing=1, took_for=0.01
)


def end(ending: Ending, error_class: str = "", tenant: TenantId = ACME) -> queue.JobEnd:
    return queue.JobEnd(tenant, GOLD, LIVE, ending, 0.5, error_class)


def one_of_each() -> list[Event]:
    return [
        queue.JobsAccepted(ACME, GOLD, LIVE, 5, 2),
        queue.SubmitRefused(ACME, GOLD, Rule.BOUND, 7, 1.0),
        queue.BulkStored(ACME, GOLD, 11),
        queue.JobsFed(3),
        queue.JobsCancelled(ACME, GOLD, 1),
        queue.JobsClaimed(NODE, (queue.Start(ACME, GOLD, LIVE, 0.02), queue.Start(ACME, GOLD, LIVE, 2.0))),
        queue.JobsSettled(NODE, (end(Ending.DELIVERED), end(Ending.DEAD, "http_403")), 0.004, lost=1),
        queue.FeedFailed(ACME, "InvariantBroken", 30.0),
        queue.JobsDied(NODE, (queue.JobDied(JobId("j"), ACME, "http_403 after 3 attempts"),)),
        queue.JobsReclaimed(4),
        queue.HandlerOverran("work", JobId("j"), ACME, 30.0),
        queue.LeasesLost(NODE, 2, 9),
        queue.NodeJoined(NODE, 1, "shared", 50),
        queue.NodeDraining(NODE, 3, 30.0),
        queue.NodeNameHeld(NODE, 3, 2.0),
        queue.NodeLeft(NODE, 0),
        queue.PlannerElected("n1", 3),
        queue.PlannerRebuilt(3, 0.13, 20_000, 5),
        queue.RoundPlanned(100, 250, 7, 0.003),
        queue.BacklogMeasured(
            (queue.Backlog("shared", GOLD, 10, 2, 4, 1.5),),
            (queue.PoolSlots("shared", 50, 4),),
            {Held.BREAKER: 2},
        ),
        queue.BreakerMoved(ACME, BreakerState.OPEN),
        queue.LevelsMeasured((SHED,)),
        queue.LevelChanged(SHED, Level.NONE),
        queue.StoreFailed("worker", "StoreUnavailable", 0.5),
        http.RequestServed("GET", "/v1/jobs", 200, 0.001),
        http.CredentialRefused("unknown"),
        http.RequestFailed("urn:uuid:1", "/v1/jobs", "ValueError", "trace"),
        queue.PlannerLeft("n1", 3),
        queue.PlannerLost("n1", 3, "the term ended"),
        kafka.PartitionsAssigned((SPOT,)),
        kafka.PartitionsPaused((SPOT,)),
        kafka.PartitionsResumed((SPOT,)),
        kafka.OffsetsCommitted(((SPOT, 7),)),
        kafka.BrokerComplained("_TRANSPORT", "fetch"),
        kafka.RecordFailed(SPOT, 5, ACME, "ValueError"),
        kafka.GatePassed(SPOT, Timestamp(1.0), 2),
        kafka.ReorderWindowOver(SPOT, Timestamp(1.0), 4),
        lag((ACME, 6, 12.0)),
        kafka.PartitionsRevoked((SPOT,), 3, lost=True),
        EXCHANGED,
        limiter.AuthorityLost("a:1", "TimeoutError", nodes=3),
        limiter.AuthorityFound("a:1", 1.5),
        limiter.ExactDecided(allowed=True, basis="store_down", took_for=0.5),
        *of_a_replay(),
    ]


def of_a_replay() -> list[Event]:
    fates = {Fate.STAGED: 40, Fate.AGAIN: 3, Fate.DUPLICATE: 5, Fate.PARKED: 2}
    return [
        replay.ReplayOrdered(ACME, REPLAY, "start"),
        replay.ReplayTaken(ACME, REPLAY, "n1", 1, ReplayState.RUNNING),
        replay.WindowFed(ACME, REPLAY, fates, 7, 0.01),
        replay.MessagesParked(ACME, REPLAY, "broken", 2),
        replay.ClassHeld(ACME, REPLAY, "f00d", "20 attempts failed alike"),
        replay.ReplayHeld(ACME, REPLAY, HoldRule.POISON, "59 of the last 60 were parked", None),
        replay.ReplayFreed(ACME, REPLAY, HoldRule.QUOTA),
        replay.ReplayInCircles(ACME, REPLAY, 0.6),
        replay.SourceFailed(ACME, REPLAY, "rabbitmq", "SourceUnavailable", 2.0),
        replay.ReplayFaulted(ACME, REPLAY, "ValueError (run.py:1)", 2.0),
        replay.CoordinatorFaulted("n1", "ValueError (replay_rows.py:1)", 0.5),
        replay.ReplayLost(ACME, REPLAY, "n1", 1),
        replay.ReplayEnded(ACME, REPLAY, ReplayState.FINISHED, 50, 40, 2, 0, 60.0),
        replay.ReplaysMeasured({"steady": 2, "held": 1}),
    ]


def lag(*tenants: tuple[str, int, float], spot: Spot = SPOT) -> kafka.LagMeasured:
    """One measurement of one paused partition, 9 records unfetched."""
    each = tuple(TenantLag(spot, TenantId(name), count, age) for name, count, age in tenants)
    return kafka.LagMeasured((PartitionLag(spot, sum(t.unfinished for t in each), 9, True, each),))


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    body, media_type = metrics.exposition()
    assert media_type.startswith("text/plain")
    families = text_string_to_metric_families(body.decode())
    return {
        (sample.name.removeprefix(PREFIX), tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def told(*happened: Event, per_tenant: bool = False, most_tenants: int = 100) -> dict[object, float]:
    metrics = Metrics(per_tenant=per_tenant, most_tenants=most_tenants)
    for event in happened:
        metrics(event)
    return {
        (name, *(value for _, value in labels)): value for (name, labels), value in samples(metrics).items()
    }


def test_every_published_event_has_a_level_and_the_sample_of_each_is_here() -> None:
    published = set(events())
    assert published == set(LEVELS) == {type(event) for event in one_of_each()}
    assert set(HANDLERS) <= published


def test_every_metric_is_moved_by_some_event() -> None:
    metrics = Metrics(per_tenant=True)
    moved = set()
    for event in one_of_each():
        metrics(event)
        moved |= {name for (name, _), value in samples(metrics).items() if value}
    for metric in METRICS + TENANT_METRICS:
        name = f"{metric.name}_count" if metric.kind == "histogram" else metric.name
        assert name in moved, name


def test_counts_come_from_whole_batches() -> None:
    found = told(*one_of_each())
    assert found["jobs_accepted_total", "live", "gold"] == 3
    assert found["jobs_repeated_total", "live", "gold"] == 2
    assert found["jobs_refused_total", "bound", "gold"] == 7
    assert found["job_wait_seconds_count", "live", "gold"] == 2
    assert found["attempts_total", "live", "delivered", "gold"] == 1
    assert found["attempt_failures_total", "http_403", "gold"] == 1
    assert found["settles_lost_total",] == 1
    assert found["planner_picks_total",] == 100


def test_the_age_to_scale_on_is_shown_by_pool_and_tier_and_goes_when_it_is_measured_no_more() -> None:
    measured = queue.BacklogMeasured((queue.Backlog("shared", GOLD, 10, 2, 4, 1.5),))
    assert told(measured)["in_quota_oldest_age_seconds", "shared", "gold"] == 1.5
    assert ("jobs_waiting", "shared", "gold") not in told(measured, queue.BacklogMeasured(()))
    lost = told(queue.PlannerElected("n1", 1), measured, queue.PlannerLost("n1", 1, "stopped"))
    assert lost["planner_leader",] == 0
    assert not any("in_quota" in str(key) for key in lost)


def test_a_released_job_is_an_attempt_that_did_not_fail() -> None:
    found = told(queue.JobsSettled(NODE, (end(Ending.RELEASED),), 0.0))
    assert found["attempts_total", "live", "released", "gold"] == 1
    assert not any("attempt_failures_total" in str(key) for key in found)


def test_an_error_class_outside_the_closed_set_is_counted_as_other() -> None:
    ends = [end(Ending.RETRY, name) for name in ("tk_secret", "timeout", "x" * 1_000, *CAUSES)]
    found = told(queue.JobsSettled(NODE, tuple(ends), 0.0))
    assert found["attempt_failures_total", "other", "gold"] == 2
    assert "tk_secret" not in repr(found)


def test_tenants_are_no_labels_unless_asked_for() -> None:
    assert "acme" not in repr(told(*one_of_each()))


def test_tenants_as_labels_are_bounded_and_the_rest_is_other() -> None:
    happened = [queue.JobsAccepted(TenantId(f"t{n}"), GOLD, LIVE, 1) for n in (*range(10), 0, 9)]
    found = told(*happened, per_tenant=True, most_tenants=3)
    by_tenant = {key[1]: value for key, value in found.items() if key[0] == "tenant_jobs_accepted_total"}
    assert by_tenant == {"t0": 2, "t1": 1, "t2": 1, "other": 8}


def test_lag_is_shown_by_partition_and_goes_with_the_partition() -> None:
    measured = lag(("acme", 6, 12.0), ("small", 1, 30.0))
    found = told(measured)
    assert found["kafka_records_unfinished", "3", "orders"] == 7
    assert found["kafka_records_unfetched", "3", "orders"] == 9
    assert found["kafka_records_unfinished_of_one", "3", "orders"] == 6
    assert found["kafka_oldest_age_seconds", "3", "orders"] == 30
    assert found["kafka_partition_paused", "3", "orders"] == 1
    for later in (kafka.LagMeasured(()), kafka.PartitionsRevoked((SPOT,), 0, lost=False)):
        assert not any("orders" in key for key in told(measured, later))  # type: ignore[operator]


def test_lag_by_tenant_is_summed_over_partitions_and_bounded_with_the_largest_named() -> None:
    tenants = [(f"t{n:03}", n, float(n)) for n in range(1, 200)]
    one, other = lag(*tenants), lag(("t199", 1, 500.0), spot=Spot("orders", 4))
    both = kafka.LagMeasured(one.partitions + other.partitions)
    found = told(both, per_tenant=True, most_tenants=2)
    shown = {key[1]: value for key, value in found.items() if key[0] == "tenant_kafka_records_unfinished"}  # type: ignore[index]
    assert shown == {"t199": 200, "t198": 198, "other": sum(range(1, 198))}
    assert found["tenant_kafka_oldest_age_seconds", "t199", "orders"] == 500
    assert "acme" not in repr(told(lag(("acme", 6, 12.0))))


def test_an_event_nobody_knows_is_let_pass() -> None:
    class Unheard(Event):
        pass

    Metrics()(Unheard())


@pytest.mark.parametrize("metric", METRICS + TENANT_METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: object) -> None:
    name = metric.name  # type: ignore[attr-defined]
    assert re.fullmatch(r"[a-z][a-z_]*", name)
    assert metric.kind == "counter" or not name.endswith("_total")  # type: ignore[attr-defined]
    assert metric.kind != "histogram" or name.endswith("_seconds")  # type: ignore[attr-defined]
    assert metric.meaning  # type: ignore[attr-defined]


def test_two_sets_of_metrics_live_side_by_side() -> None:
    one, other = Metrics(), Metrics()
    one(queue.JobsFed(3))
    assert samples(one)["jobs_fed_total", ()] == 3
    assert samples(other)["jobs_fed_total", ()] == 0


def test_the_published_page_is_what_the_code_says() -> None:
    path = Path(__file__).parents[3] / "docs" / "telemetry.md"
    text = path.read_text(encoding="utf-8")
    assert text == page(text), "run: python -m tenantry.telemetry.catalogue docs/telemetry.md"


def test_the_limiter_s_exchanges_count_tokens_by_what_became_of_them() -> None:
    found = told(EXCHANGED)
    kinds = {"granted": 40, "spent": 30, "unleased": 2, "refused": 5}
    for kind, amount in kinds.items():
        assert found["limiter_tokens_total", kind] == amount
    assert found["limiter_asks_total",] == 3
    assert found["limiter_owing_total",] == 1


def test_a_shard_that_is_lost_is_shown_until_it_is_found() -> None:
    lost = limiter.AuthorityLost("a:1", "TimeoutError", nodes=3)
    assert told(lost)["limiter_cut_off", "a:1"] == 1
    found = told(lost, limiter.AuthorityFound("a:1", 1.5))
    assert found["limiter_cut_off", "a:1"] == 0
    assert found["limiter_authority_losses_total",] == 1


def test_messages_of_replays_are_counted_by_fate_and_by_tenant_only_where_they_were_taken() -> None:
    found = told(*of_a_replay(), per_tenant=True)
    assert found["replay_messages_total", "staged"] == 40
    assert found["replay_messages_total", "again"] == 3
    assert found["replay_messages_left_total",] == 7
    assert found["tenant_replay_messages_total", "duplicate", "acme"] == 5
    assert ("tenant_replay_messages_total", "again", "acme") not in found
    assert found["tenant_replays_in_circles_total", "acme"] == 1


def test_phases_of_replays_are_those_of_the_last_measurement() -> None:
    found = told(*of_a_replay(), replay.ReplaysMeasured({"draining": 1}))
    assert {key: value for key, value in found.items() if key[0] == "replays"} == {("replays", "draining"): 1}  # type: ignore[index]
