"""The life of a replay as a table."""

from pathlib import Path

import pytest

from tenantry.kernel.errors import InvariantBroken
from tenantry.replay.lifecycle import (
    ENDED,
    LIVE,
    MOVES,
    ORDERS,
    TRANSITIONS,
    ReplayEvent,
    after,
    diagram,
    moved_from,
    ordered,
)
from tenantry.replay.model import ReplayState

S, E = ReplayState, ReplayEvent


def test_every_state_can_be_reached_from_a_plan_and_every_live_one_can_end() -> None:
    assert _reached({S.PLANNED}) == set(S)
    for state in LIVE:
        assert _reached({state}) & ENDED, state


def test_every_event_is_a_persons_or_the_coordinators_and_not_both() -> None:
    assert set(ReplayEvent) == ORDERS | MOVES
    assert not ORDERS & MOVES
    assert {event for _, event in TRANSITIONS} == set(ReplayEvent)


def test_a_person_can_pause_and_cancel_whatever_runs() -> None:
    assert ordered(E.CANCELLED) == set(S) - ENDED - {S.CANCELLING}
    assert ordered(E.PAUSED) == {S.RUNNING, S.HELD, S.DRAINING}


def test_no_move_of_a_coordinator_undoes_a_persons_order() -> None:
    for state in set(S) - {S.PLANNED, S.PAUSED, S.CANCELLING}:
        assert S.PAUSED not in moved_from(state)
    for state in set(S) - {S.PLANNED, S.CANCELLED, S.CANCELLING}:
        assert S.CANCELLING not in moved_from(state)


def test_a_coordinator_writes_its_record_where_the_state_stays_but_not_after_the_end() -> None:
    for state in LIVE:
        assert state in moved_from(state)
    for state in ENDED:
        assert not moved_from(state) & ENDED
    with pytest.raises(InvariantBroken, match="planned"):
        moved_from(S.PLANNED)


def test_a_move_that_is_not_in_the_table_is_refused() -> None:
    assert after(S.RUNNING, E.PAUSED) is S.PAUSED
    with pytest.raises(InvariantBroken, match="finished replay cannot be paused"):
        after(S.FINISHED, E.PAUSED)


def test_the_diagram_draws_every_move_of_a_replay_once() -> None:
    lines = diagram().splitlines()
    assert len(lines) == 2 + len(TRANSITIONS) + len(ENDED)
    assert "    held --> running: continued" in lines


def _reached(states: set[ReplayState]) -> set[ReplayState]:
    more = states | {to for (state, _), to in TRANSITIONS.items() if state in states}
    return more if more == states else _reached(more)


def test_the_page_shows_the_diagram_that_is_drawn_from_the_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "replay.md"
    assert f"```mermaid\n{diagram()}```" in page.read_text(encoding="utf-8")
