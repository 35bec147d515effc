"""The life of a job is a table: every move is in it or is an error."""

from itertools import product

import pytest

from tenantry.kernel.errors import InvariantBroken
from tenantry.queue.lifecycle import BIRTHS, TRANSITIONS, JobEvent, after, allows, diagram
from tenantry.queue.model import ENDS, JobState


def test_nothing_leads_out_of_an_end() -> None:
    assert not [state for state, _ in TRANSITIONS if state in ENDS]


def test_every_state_can_be_reached_and_every_state_can_reach_an_end() -> None:
    reached = set(BIRTHS.values())
    while more := {to for (state, _), to in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(JobState)
    ending = set(ENDS)
    while more := {state for (state, _), to in TRANSITIONS.items() if to in ending} - ending:
        ending |= more
    assert ending == set(JobState)


def test_only_a_running_job_is_delivered_or_dies_but_for_what_a_cancelled_replay_returns() -> None:
    ends = {JobState.DELIVERED, JobState.DEAD}
    moves = {(state, event) for (state, event), to in TRANSITIONS.items() if to in ends}
    returned = {(state, event) for state, event in moves if event is JobEvent.RETURNED}
    assert {state for state, _ in moves - returned} == {JobState.RUNNING}
    assert {state for state, _ in returned} == {JobState.WAITING, JobState.DELAYED}


def test_only_a_running_job_is_parked_and_a_parked_one_is_sent_back_or_dropped() -> None:
    assert {state for (state, _), to in TRANSITIONS.items() if to is JobState.PARKED} == {JobState.RUNNING}
    ways_out = {to for (state, _), to in TRANSITIONS.items() if state is JobState.PARKED}
    assert ways_out == {JobState.WAITING, JobState.CANCELLED}


def test_a_running_job_is_not_cancelled() -> None:
    assert not allows(JobState.RUNNING, JobEvent.CANCELLED)
    assert allows(JobState.WAITING, JobEvent.CANCELLED)
    assert allows(JobState.DELAYED, JobEvent.CANCELLED)


@pytest.mark.parametrize(("state", "event"), list(product(JobState, JobEvent)))
def test_a_move_is_in_the_table_or_an_error_that_names_it(state: JobState, event: JobEvent) -> None:
    if allows(state, event):
        assert after(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(InvariantBroken, match=f"a {state} job cannot be {event}"):
            after(state, event)


def test_the_diagram_draws_every_move_once() -> None:
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert len(lines) == len(set(lines)) == 1 + len(BIRTHS) + len(TRANSITIONS) + len(ENDS)
    assert "    running --> delivered: succeeded" in lines
    assert "    [*] --> waiting: submitted" in lines
    assert "    dead --> [*]" in lines
