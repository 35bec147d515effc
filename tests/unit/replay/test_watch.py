"""What a coordinator remembers between looks: rates of running time, and when there is news."""

from dataclasses import replace

import pytest
from replay_world import ACME

from tenantry.kernel.instant import Instant, Timestamp
from tenantry.replay.model import (
    Counts,
    Membership,
    Position,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
    SourceAddress,
)
from tenantry.replay.progress import DryRun, encoded
from tenantry.replay.watch import Watch

S = ReplayState
VIEW = ReplayView(
    id=ReplayId("r"),
    spec=ReplaySpec(tenant=ACME, source=SourceAddress("jsonl")),
    state=S.RUNNING,
    membership=Membership("x", 100_000),
    counts=Counts(),
    position=Position(""),
    created_at=Timestamp(0.0),
    running_for=100.0,
)
AT = Timestamp(1_800_000_000.0)


def ran(watch: Watch, seconds: int, rate: int, start: float) -> float:
    """So many seconds in which ``rate`` messages a second are delivered, looked at twice a second."""
    for _ in range(2 * seconds):
        start += 0.5
        counts = replace(watch.counts, delivered=watch.counts.delivered + rate // 2)
        watch.look(counts, S.RUNNING, Instant(start))
    return start


def test_the_rate_that_windows_go_by_follows_within_some_seconds() -> None:
    watch = Watch(VIEW, Instant(0.0))
    now = ran(watch, 10, 100, 0.0)
    assert watch.rate == pytest.approx(100.0, rel=0.05)
    ran(watch, 10, 400, now)
    assert watch.rate == pytest.approx(400.0, rel=0.05)


def test_duplicates_and_what_is_parked_unsent_raise_no_window() -> None:
    watch = Watch(VIEW, Instant(0.0))
    watch.look(Counts(duplicate=5_000, parked=5_000, left=5_000), S.RUNNING, Instant(1.0))
    assert watch.rate == 0.0


def test_held_time_is_neither_running_time_nor_slowness() -> None:
    watch = Watch(VIEW, Instant(0.0))
    now = ran(watch, 60, 50, 0.0)
    before = watch.record(VIEW, AT)
    watch.look(watch.counts, S.HELD, Instant(now + 3_600.0))
    after = watch.record(VIEW, AT)
    assert watch.running_for == pytest.approx(160.0)
    assert after.rate == pytest.approx(before.rate)
    assert watch.rate == pytest.approx(50.0, rel=0.05)


def test_what_changes_or_runs_is_news_once_a_second_and_the_rest_seldom() -> None:
    watch, counts = Watch(VIEW, Instant(0.0)), Counts(delivered=5)

    def is_news(view: ReplayView, now: float) -> bool:
        return watch.is_news(view, Instant(now), every=1.0, at_least_every=15.0)

    assert is_news(VIEW, 0.0)
    watch.told(VIEW, Instant(0.0))
    assert not is_news(VIEW, 0.9)
    assert is_news(VIEW, 1.0)
    paused = replace(VIEW, state=S.PAUSED)
    watch.told(paused, Instant(1.0))
    assert not is_news(paused, 15.9)
    assert is_news(paused, 16.0)
    assert is_news(replace(paused, counts=counts), 2.0)


def test_a_dry_run_that_has_read_everything_is_remembered_and_any_other_begins_anew() -> None:
    dry = replace(VIEW, spec=replace(VIEW.spec, dry_run=True))
    watch = Watch(dry, Instant(0.0))
    assert watch.dry == DryRun()
    watch.dry = DryRun(matched=7, left=2)
    told = encoded(watch.record(dry, AT))
    assert Watch(replace(dry, progress=told), Instant(0.0)).dry == DryRun()
    assert Watch(replace(dry, progress=told, exhausted=True), Instant(0.0)).dry == DryRun(7, 2)
    assert Watch(replace(dry, progress="{}", exhausted=True), Instant(0.0)).dry == DryRun()
