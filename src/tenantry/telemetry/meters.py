"""The metrics: their table, and one registry that holds them.

Names follow Prometheus' conventions (base units, ``_total``, ``_seconds``). What each metric means is its
help text, and the table in ``docs/telemetry.md`` is drawn from it.
"""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId

OTHER = "other"
MOST_TENANTS = 100

_FINE = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_WIDE = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: what it is called, what it means, what it is split by. ``buckets`` make it a histogram."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        if self.buckets:
            return "histogram"
        return "counter" if self.name.endswith("_total") else "gauge"


METRICS: tuple[Metric, ...] = (
    Metric(
        "jobs_accepted_total",
        "Jobs durably accepted; answered again by an idempotency key not counted",
        ("tier", "class"),
    ),
    Metric(
        "jobs_repeated_total",
        "Submitted jobs that an idempotency key answered with an earlier job",
        ("tier", "class"),
    ),
    Metric("jobs_refused_total", "Jobs refused at submit, by the rule that refused", ("tier", "rule")),
    Metric("jobs_stored_total", "Jobs stored as part of a bulk set", ("tier",)),
    Metric("jobs_fed_total", "Stored jobs moved into their flows"),
    Metric("jobs_cancelled_total", "Jobs cancelled before they ran", ("tier",)),
    Metric("job_wait_seconds", "From due to claimed", ("tier", "class"), _WIDE),
    Metric(
        "attempts_total",
        "Attempts that ended, by how: delivered, retry, dead, released, parked",
        ("tier", "class", "ending"),
    ),
    Metric("attempt_failures_total", "Failed attempts by error class", ("tier", "error_class")),
    Metric("attempt_seconds", "Slot-seconds of one attempt", ("tier", "class"), _WIDE),
    Metric("settles_lost_total", "Ends that changed nothing, since the claim was no longer held"),
    Metric("settle_seconds", "Recording the ends of one batch", (), _FINE),
    Metric("jobs_reclaimed_total", "Jobs taken back from expired claims"),
    Metric("leases_lost_total", "Claims that a node found to be no longer its own"),
    Metric("planner_leader", "1 while this process holds the planner's place, else 0"),
    Metric("breaker_moves_total", "Breakers of lanes that came into a state", ("state",)),
    Metric("lanes_held", "Lanes that their shaper holds, by reason", ("reason",)),
    Metric("planner_rebuilds_total", "Times that the planner read everything afresh"),
    Metric("planner_rebuild_seconds", "One rebuild of the planner's memory", (), _WIDE),
    Metric("planner_round_seconds", "One round of the planner, the store's part included", (), _FINE),
    Metric("planner_picks_total", "Jobs that the planner has claimed for nodes"),
    Metric("store_failures_total", "Times that a loop met an unreachable store", ("loop",)),
    Metric("jobs_waiting", "Jobs due and in line", ("pool", "tier")),
    Metric("jobs_delayed", "Jobs not due yet", ("pool", "tier")),
    Metric("jobs_running", "Jobs that live claims hold", ("pool", "tier")),
    Metric(
        "in_quota_oldest_age_seconds",
        "Age of the oldest waiting job that caps, rates, lane limits and delays would let run now. "
        "Scale workers on this number: only more slots bring it down",
        ("pool", "tier"),
    ),
    Metric("pool_slots", "Slots of the pool's live nodes", ("pool",)),
    Metric("pool_slots_used", "Slots that live claims hold", ("pool",)),
    Metric(
        "pool_shedding_level",
        "What the pool sheds: 0 nothing, 1 background work of tiers that shed first, 2 retries too, 3 all "
        "new work but of protected tiers",
        ("pool",),
    ),
    Metric(
        "pool_pressure_age_seconds",
        "Seconds that more than half of the tenants, by share, have waited in their quota; 0 while at rest",
        ("pool",),
    ),
    Metric("shedding_changes_total", "Times that a pool came to a level", ("pool", "level")),
    Metric("limiter_exchange_seconds", "One call to the authority, with all asks of one tick", (), _FINE),
    Metric("limiter_asks_total", "Tenants asked about, in all calls"),
    Metric(
        "limiter_owing_total", "Asks that a bucket in debt answered: something was overspent and is settled"
    ),
    Metric(
        "limiter_tokens_total",
        "Tokens granted by the authority; spent of leases; unleased: spent at first contact or while "
        "cut off; refused by this node",
        ("kind",),
    ),
    Metric("limiter_authority_losses_total", "Times that a shard of the authority could not be reached"),
    Metric(
        "limiter_cut_off", "1 while a shard cannot be reached and the conservative share decides", ("shard",)
    ),
    Metric("limiter_exact_total", "Exact decisions, by what decided and how", ("basis", "verdict")),
    Metric("limiter_exact_seconds", "One exact decision", (), _FINE),
    Metric("http_requests_total", "Requests to the HTTP API", ("method", "route", "status")),
    Metric("http_request_seconds", "Time to answer a request", ("method", "route"), _FINE),
    Metric(
        "http_credentials_refused_total", "Requests without a credential that is good, by reason", ("reason",)
    ),
    Metric("http_faults_total", "Requests answered 500: each is a fault of ours", ("route",)),
    Metric("kafka_records_unfinished", "Records taken and not finished", ("topic", "partition")),
    Metric(
        "kafka_records_unfetched",
        "Records above the last taken, whose tenants are not yet known",
        ("topic", "partition"),
    ),
    Metric(
        "kafka_records_unfinished_of_one",
        "Unfinished records of the tenant that has most there: near the whole, the lag is one tenant's",
        ("topic", "partition"),
    ),
    Metric(
        "kafka_oldest_age_seconds",
        "Age of the oldest unfinished record, by the record's own time",
        ("topic", "partition"),
    ),
    Metric("kafka_partition_paused", "1 while a bound keeps it from being fetched", ("topic", "partition")),
    Metric("kafka_pauses_total", "Times that a bound kept a partition from being fetched", ("topic",)),
    Metric("kafka_partitions_assigned_total", "Partitions that the group gave", ("topic",)),
    Metric("kafka_partitions_lost_total", "Partitions taken away without a chance to commit", ("topic",)),
    Metric("kafka_records_dropped_total", "Unfinished records that went to a partition's next owner"),
    Metric("kafka_commits_total", "Commits that the broker has"),
    Metric("kafka_complaints_total", "Faults that the client gets over, by their Kafka name", ("code",)),
    Metric("kafka_records_failed_total", "Records whose attempts all failed, or nobody's", ("topic",)),
    Metric("kafka_gates_passed_total", "Earlier partitions that were finished in time", ("topic",)),
    Metric("kafka_reorder_windows_over_total", "Earlier partitions that were not", ("topic",)),
    Metric(
        "kafka_records_released_early_total", "Records that went on though they might overtake", ("topic",)
    ),
    Metric("replays", "Replays that this coordinator leads, by phase", ("phase",)),
    Metric(
        "replay_messages_total",
        "Messages offered to the store, by fate: staged, again, duplicate, parked, gone, quota, broken",
        ("fate",),
    ),
    Metric("replay_messages_left_total", "Messages that were seen in a source and not meant"),
    Metric("replay_messages_parked_total", "Messages put aside unsent, by why", ("rule",)),
    Metric("replay_feed_seconds", "Staging one window, the store's part", (), _FINE),
    Metric("replays_held_total", "Times that a rule held a replay", ("rule",)),
    Metric("replay_classes_held_total", "Classes of messages that were held: they failed alike"),
    Metric("replays_in_circles_total", "Replays of which half and more had failed in an earlier one"),
    Metric("replay_source_failures_total", "Times that a source could not be read", ("kind",)),
    Metric("replay_faults_total", "Faults of ours in leading replays"),
    Metric("replay_leases_lost_total", "Replays that a coordinator found to be no longer its own"),
    Metric("replays_ended_total", "Replays that ended, by how: finished, cancelled", ("state",)),
)
"""Every metric, less the prefix ``tenantry_``."""

TENANT_METRICS: tuple[Metric, ...] = (
    Metric("tenant_jobs_accepted_total", "Jobs durably accepted, by tenant", ("tenant",)),
    Metric("tenant_jobs_refused_total", "Jobs refused at submit, by tenant", ("tenant", "rule")),
    Metric("tenant_attempts_total", "Attempts that ended, by tenant", ("tenant", "ending")),
    Metric("tenant_busy_seconds_total", "Slot-seconds used, by tenant", ("tenant",)),
    Metric(
        "tenant_kafka_records_unfinished", "Records taken and not finished, by tenant", ("tenant", "topic")
    ),
    Metric(
        "tenant_kafka_oldest_age_seconds",
        "Age of a tenant's oldest unfinished record, by the record's own time",
        ("tenant", "topic"),
    ),
    Metric("tenant_kafka_records_failed_total", "Records whose attempts all failed, by tenant", ("tenant",)),
    Metric(
        "tenant_replay_messages_total",
        "Messages that replays have taken, by tenant: staged, duplicate, parked",
        ("tenant", "fate"),
    ),
    Metric("tenant_replays_in_circles_total", "Replays that went in circles, by tenant", ("tenant",)),
)
"""Only with ``per_tenant=True``."""

PREFIX = "tenantry_"


class Meters:
    """One set of the metrics above. Safe to use from any thread.

    ``per_tenant``: also count by tenant, the first ``most_tenants`` (>= 1) that appear under their own
    names and all others together as ``other``: cardinality stays bounded whatever tenants do.
    """

    def __init__(self, *, per_tenant: bool = False, most_tenants: int = MOST_TENANTS) -> None:
        self.registry = CollectorRegistry()
        self.per_tenant, self._most_tenants = per_tenant, max(1, most_tenants)
        self._tenants: set[TenantId] = set()
        wanted = METRICS + (TENANT_METRICS if per_tenant else ())
        self._counters = {m.name: _counter(m, self.registry) for m in wanted if m.kind == "counter"}
        self._gauges = {m.name: _gauge(m, self.registry) for m in wanted if m.kind == "gauge"}
        # Series once found are kept: labels are closed sets, and finding one again costs more than counting.
        self._counted: dict[tuple[str, ...], Counter] = {}
        self._observed: dict[tuple[str, ...], Histogram] = {}
        self._histograms = {m.name: _histogram(m, self.registry) for m in wanted if m.kind == "histogram"}

    def exposition(self) -> tuple[bytes, str]:
        """What a scrape gets: the body in the text format, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def count(self, name: str, amount: float, *labels: str) -> None:
        key = (name, *labels)
        series = self._counted.get(key)
        if series is None:
            metric = self._counters[name]
            series = self._counted[key] = metric.labels(*labels) if labels else metric
        series.inc(amount)

    def observe(self, name: str, value: Seconds, *labels: str) -> None:
        key = (name, *labels)
        series = self._observed.get(key)
        if series is None:
            metric = self._histograms[name]
            series = self._observed[key] = metric.labels(*labels) if labels else metric
        series.observe(value)

    def show(self, name: str, value: float, *labels: str) -> None:
        metric = self._gauges[name]
        (metric.labels(*labels) if labels else metric).set(value)

    def forget(self, *names: str) -> None:
        """Drop all series of these gauges: what the next measurement does not name is empty."""
        for name in names:
            self._gauges[name].clear()

    def count_tenant(self, name: str, tenant: TenantId, amount: float, *labels: str) -> None:
        """Count under the tenant's own name, or under ``other`` once the names are used up."""
        if self.per_tenant and amount > 0:
            self.count(name, amount, self.named(tenant), *labels)

    def named(self, tenant: TenantId) -> str:
        """The label of ``tenant``: its own name, or ``other`` once the names are used up."""
        if tenant not in self._tenants and len(self._tenants) >= self._most_tenants:
            return OTHER
        self._tenants.add(tenant)
        return tenant


def _counter(metric: Metric, registry: CollectorRegistry) -> Counter:
    return Counter(PREFIX + metric.name, metric.meaning, metric.labels, registry=registry)


def _gauge(metric: Metric, registry: CollectorRegistry) -> Gauge:
    return Gauge(PREFIX + metric.name, metric.meaning, metric.labels, registry=registry)


def _histogram(metric: Metric, registry: CollectorRegistry) -> Histogram:
    return Histogram(
        PREFIX + metric.name, metric.meaning, metric.labels, registry=registry, buckets=metric.buckets
    )
