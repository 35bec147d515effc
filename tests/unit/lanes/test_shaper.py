"""The shaper of a lane, told what came back by hand: what it lets start, when, and why not."""

import json
from dataclasses import replace

import pytest

from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp
from tenantry.lanes.outcome import Outcome
from tenantry.lanes.shaper import (
    Held,
    ShaperSettings,
    ShaperState,
    Standing,
    due_at,
    opened,
    permission,
    permits,
    reference_of,
    started,
    step,
)
from tenantry.lanes.shaper_state import decoded, encoded
from tenantry.lanes.summary import EMPTY, summary_of

SETTINGS = ShaperSettings()
START = Timestamp(1_764_500_000.0)


def hear(
    state: ShaperState, *outcomes: Outcome, now: float, in_flight: int = 0, draw: float = 0.5
) -> ShaperState:
    return step(state, summary_of(outcomes), Standing(in_flight, Timestamp(now)), SETTINGS, draw=draw)


def rounds(state: ShaperState, outcome: Outcome, count: int, now: float) -> tuple[ShaperState, float]:
    """So many times: use every permit, then hear this from every call."""
    for _ in range(count):
        grant = permission(state, in_flight=0, now=Timestamp(now), settings=SETTINGS)
        if not grant.starts:
            assert grant.not_before is not None
            now = grant.not_before
            state = step(state, EMPTY, Standing(0, Timestamp(now)), SETTINGS, draw=0.5)
            continue
        n = grant.starts
        state = started(state, n, in_flight=n, now=Timestamp(now), settings=SETTINGS)
        now += outcome.busy_for
        state = hear(state, *[outcome] * n, now=now)
    return state, now


OK = Outcome("ok", status=200, busy_for=0.1)
TIMEOUT = Outcome("timeout", busy_for=15.0)


def test_a_new_lane_starts_one_call() -> None:
    state = opened(START)
    assert permission(state, in_flight=0, now=START, settings=SETTINGS).starts == 1
    assert permission(state, in_flight=1, now=START, settings=SETTINGS).starts == 0


def test_the_limit_grows_while_it_is_used_and_nothing_waits() -> None:
    state, _ = rounds(opened(START), OK, 40, START)
    assert permits(state, SETTINGS) > 20


def test_the_limit_does_not_grow_while_it_is_not_used() -> None:
    state, now = rounds(opened(START), OK, 20, START)
    before = permits(state, SETTINGS)
    for _ in range(50):
        state = started(state, 1, in_flight=1, now=Timestamp(now), settings=SETTINGS)
        now += 0.1
        state = hear(state, OK, now=now)
    assert permits(state, SETTINGS) == before


def test_s1_where_every_call_takes_exactly_the_timeout_the_limit_ends_at_the_minimum() -> None:
    state, now = rounds(opened(START), OK, 40, START)
    state, now = rounds(state, TIMEOUT, 1, now)
    assert state.limit.level == SETTINGS.limit.least
    state, now = rounds(state, TIMEOUT, 20, now)
    assert state.limit.level == SETTINGS.limit.least
    assert state.breaker.state is BreakerState.OPEN


def test_below_one_the_next_start_waits_for_the_end_before_and_a_success_brings_it_back() -> None:
    state, now = rounds(opened(START), OK, 20, START)
    state = replace(state, limit=replace(state.limit, level=0.25), ended_at=Timestamp(now))
    grant = permission(state, in_flight=0, now=Timestamp(now), settings=SETTINGS)
    assert grant.held is Held.PACING
    assert grant.not_before == pytest.approx(now + 0.1 * 3, rel=0.03)
    state, _ = rounds(state, OK, 8, now)
    assert state.limit.level >= 1.0


def test_retry_after_holds_the_lane_never_less_and_spread() -> None:
    ends = []
    for draw in (0.0, 0.5, 1.0):
        state = hear(opened(START), Outcome("http_429", retry_after=30.0), now=START, draw=draw)
        grant = permission(state, in_flight=0, now=START, settings=SETTINGS)
        assert (grant.starts, grant.held) == (0, Held.RETRY_AFTER)
        ends.append(grant.not_before)
    assert ends == [START + 30.0, START + 31.5, START + 33.0]


def test_a_shorter_retry_after_does_not_end_a_longer_one() -> None:
    state = hear(opened(START), Outcome("http_503", retry_after=600.0), now=START)
    later = hear(state, Outcome("http_503", retry_after=1.0), now=START + 5.0)
    assert later.held_until == state.held_until


def test_what_the_message_or_we_did_wrong_moves_nothing() -> None:
    state, now = rounds(opened(START), OK, 20, START)
    for error_class in ("http_404", "http_422", "handler_error", "worker_lost", "unknown_target"):
        after = hear(state, *[Outcome(error_class, busy_for=9.0)] * 100, now=now)
        assert after.limit == state.limit
        assert after.breaker == state.breaker
        assert reference_of(after) == reference_of(state)


def test_a_black_hole_opens_the_breaker_within_one_timeout_and_nothing_more_starts() -> None:
    state, now = rounds(opened(START), OK, 40, START)
    n = permits(state, SETTINGS)
    state = started(state, n, in_flight=n, now=Timestamp(now), settings=SETTINGS)
    state = hear(state, *[TIMEOUT] * n, now=now + 15.0)
    assert state.breaker.state is BreakerState.OPEN
    grant = permission(state, in_flight=0, now=Timestamp(now + 15.0), settings=SETTINGS)
    assert (grant.starts, grant.held) == (0, Held.BREAKER)


def test_a_target_that_hangs_is_left_alone_before_the_first_timeout() -> None:
    state, now = rounds(opened(START), OK, 40, START)
    n = permits(state, SETTINGS)
    state = started(state, n, in_flight=n, now=Timestamp(now), settings=SETTINGS)
    asked = 0
    while now < START + 14.0 and permits(state, SETTINGS) > 1 and asked < 50:
        due = due_at(state, in_flight=n, settings=SETTINGS)
        assert due is not None
        now, asked = due, asked + 1
        state = step(state, EMPTY, Standing(n, Timestamp(now)), SETTINGS, draw=0.5)
    assert permits(state, SETTINGS) < n / 2


def test_after_the_breaker_closes_the_limit_is_small_again() -> None:
    state, now = rounds(opened(START), OK, 40, START)
    n = permits(state, SETTINGS)
    state = started(state, n, in_flight=n, now=Timestamp(now), settings=SETTINGS)
    state = hear(state, *[TIMEOUT] * n, now=now + 15.0)
    state, _ = rounds(state, OK, 2, now + 15.0)
    assert state.breaker.state is BreakerState.CLOSED
    assert permits(state, SETTINGS) == 1


def test_a_half_open_lane_starts_the_counted_probes_and_another_when_one_is_lost() -> None:
    state = hear(opened(START), *[TIMEOUT] * 20, now=START)
    grant = permission(state, in_flight=0, now=START, settings=SETTINGS)
    assert grant.not_before is not None
    now = grant.not_before
    state = step(state, EMPTY, Standing(0, now), SETTINGS, draw=0.5)
    assert permission(state, in_flight=0, now=now, settings=SETTINGS).starts == 1
    state = started(state, 1, in_flight=1, now=now, settings=SETTINGS)
    held = permission(state, in_flight=1, now=now, settings=SETTINGS)
    assert (held.starts, held.held, held.not_before) == (0, Held.BREAKER, now + 20.0)
    assert permission(state, in_flight=0, now=Timestamp(now + 20.0), settings=SETTINGS).starts == 1


def test_the_operators_ceiling_goes_before_the_limit() -> None:
    state, now = rounds(opened(START), OK, 40, START)
    capped = replace(SETTINGS, ceiling=3)
    assert permits(state, capped) == 3
    assert permission(state, in_flight=1, now=Timestamp(now), settings=capped).starts == 2


def test_refusals_by_rate_pace_the_starts_below_the_rate_that_was_refused() -> None:
    state, now = rounds(opened(START), OK, 40, START)
    n = permits(state, SETTINGS)
    state = hear(state, *[OK] * n, *[Outcome("http_429", busy_for=0.1)], now=now + 0.1)
    state = step(state, EMPTY, Standing(0, Timestamp(now + 0.2)), SETTINGS, draw=0.5)
    assert state.rate.refused is not None
    assert permission(state, in_flight=0, now=Timestamp(now + 0.2), settings=SETTINGS).starts < n


# -- kept and read back ------------------------------------------------------------------------------------


def test_a_state_survives_json_but_for_its_window() -> None:
    state, now = rounds(opened(START), OK, 40, START)
    for each in (
        state,
        hear(state, *[TIMEOUT] * 40, now=now),
        hear(state, Outcome("http_429", retry_after=60.0, busy_for=0.1), now=now),
    ):
        found = decoded(json.loads(json.dumps(encoded(each))), in_flight=4, now=Timestamp(now))
        assert replace(found, window=each.window, sent_before=each.sent_before) == each
        assert (found.window.opened_at, found.window.most) == (now, 4)
        assert len(json.dumps(encoded(each))) < 1_000


def test_probes_that_are_out_are_still_counted_after_a_restart() -> None:
    state = hear(opened(START), *[TIMEOUT] * 20, now=START)
    now = Timestamp(START + 2.0)
    state = step(state, EMPTY, Standing(0, now), SETTINGS, draw=0.5)
    state = started(state, 1, in_flight=1, now=now, settings=SETTINGS)
    found = decoded(encoded(state), in_flight=1, now=now)
    assert permission(found, in_flight=1, now=now, settings=SETTINGS).starts == 0


def test_a_lane_that_is_seeded_starts_where_the_last_run_ended() -> None:
    state, now = rounds(opened(START), OK, 40, START)
    seeded = opened(Timestamp(now + 3600.0), seed=state)
    assert permits(seeded, SETTINGS) == permits(state, SETTINGS)
    assert reference_of(seeded) == state.reference.latency


GOOD = encoded(opened(START))


@pytest.mark.parametrize(
    ("place", "value", "where"),
    [
        (0, 99, r"shaper\[0\]"),
        (1, [0.0, "seeking", None, 0, 0, 0.0, 0.0], "shaper.limit.level"),
        (1, [1.0, "sleeping", None, 0, 0, 0.0, 0.0], "shaper.limit.mode"),
        (1, [1.0, "seeking", -1.0, 0, 0, 0.0, 0.0], "shaper.limit.ceiling"),
        (1, [1.0], "shaper.limit"),
        (2, [0.0, 0, 0.0, 0.0], "shaper.reference.latency"),
        (3, ["ajar", 0.0, 0, 0.0, 0, 0.0, [0, 0], [0, 0], [], 0], "shaper.breaker.state"),
        (3, ["open", 0.0, 0, 0.0, 0, 0.0, [1, 2], [0, 0], [], 0], r"shaper.breaker.recent\[1\]"),
        (3, ["open", 0.0, 0, 0.0, 0, 0.0, [0, 0], [0, 0], [0.0] * 1_001, 0], "shaper.breaker.leases"),
        (4, [1.0, 0.0, float("inf"), 0.0, 0, 0.0, 0.0], "shaper.rate.tokens"),
        (5, 1e9, "shaper.latency"),
        (6, [1], "shaper.gathered"),
        (9, None, r"shaper\[9\]"),
    ],
)
def test_a_bad_state_is_refused_with_its_place(place: int, value: object, where: str) -> None:
    bad = [*GOOD[:place], value, *GOOD[place + 1 :]]
    with pytest.raises(InvalidValue, match=where):
        decoded(bad, in_flight=0, now=START)


# -- being told when to look again -------------------------------------------------------------------------


@pytest.mark.parametrize("endings", [[OK], [TIMEOUT], [OK, TIMEOUT], [Outcome("http_429", retry_after=3.0)]])
def test_who_looks_when_told_is_never_told_a_time_that_has_passed_for_ever(endings: list[Outcome]) -> None:
    """Whatever came back: after looking when told, the next time named is later."""
    state, now, in_flight, looks = opened(START), float(START), 0, 0
    for turn in range(400):
        grant = permission(state, in_flight=in_flight, now=Timestamp(now), settings=SETTINGS)
        if grant.starts and in_flight < 3:
            in_flight += 1
            state = started(state, 1, in_flight=in_flight, now=Timestamp(now), settings=SETTINGS)
        elif in_flight and turn % 3 == 0:
            in_flight -= 1
            outcome = endings[turn % len(endings)]
            now += outcome.busy_for
            state = hear(state, outcome, now=now, in_flight=in_flight)
        due = due_at(state, in_flight=in_flight, settings=SETTINGS)
        grant = permission(state, in_flight=in_flight, now=Timestamp(now), settings=SETTINGS)
        moments = [at for at in (due, grant.not_before) if at is not None]
        if moments and turn % 2:
            now = max(now, min(moments))
            before, looks = now, looks + 1
            state = step(state, EMPTY, Standing(in_flight, Timestamp(now)), SETTINGS, draw=0.5)
            due = due_at(state, in_flight=in_flight, settings=SETTINGS)
            grant = permission(state, in_flight=in_flight, now=Timestamp(now), settings=SETTINGS)
            later = [at for at in (due, grant.not_before) if at is not None]
            assert grant.starts or all(at > before for at in later), (turn, state)
    assert looks > 20


def test_a_few_milliseconds_of_our_own_are_not_taken_for_a_queue_at_a_quick_target() -> None:
    """On a busy node a call that is answered in 3 ms is seen to take 15."""
    state, now = rounds(opened(START), Outcome("ok", status=200, busy_for=0.003), 60, START)
    assert reference_of(state) == pytest.approx(0.003, rel=0.1)
    before = permits(state, SETTINGS)
    state, now = rounds(state, Outcome("ok", status=200, busy_for=0.015), 20, now)
    grown = permits(state, SETTINGS)
    assert grown > before
    state, _ = rounds(state, Outcome("ok", status=200, busy_for=0.06), 20, now)
    assert permits(state, SETTINGS) < grown


def test_what_a_hanging_target_lost_is_not_replaced_while_the_rest_is_still_out() -> None:
    """A replacement would hold its slot for one more timeout, and the breaker opens only after several."""
    state, now = rounds(opened(START), OK, 30, START)
    out = permits(state, SETTINGS)
    assert out > 10
    state = started(state, out, in_flight=out, now=Timestamp(now), settings=SETTINGS)
    for at in (now + 0.4, now + 0.8):
        state = step(state, EMPTY, Standing(out, Timestamp(at)), SETTINGS, draw=0.5)
    state = hear(state, Outcome("timeout", busy_for=1.0), now=now + 1.0, in_flight=out - 1)
    assert permission(state, in_flight=out - 1, now=Timestamp(now + 1.0), settings=SETTINGS).starts == 0


def test_a_lone_call_that_was_lost_is_followed_by_another() -> None:
    state = started(opened(START), 1, in_flight=1, now=START, settings=SETTINGS)
    state = hear(state, TIMEOUT, now=START + 15.0)
    grant = permission(state, in_flight=0, now=Timestamp(START + 15.0), settings=SETTINGS)
    assert grant.starts == 1 or grant.not_before is not None
