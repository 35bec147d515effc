"""What the planner asks for: what commits late waits for no sweep, what never comes is given up."""

from hypothesis import given
from hypothesis import strategies as st

from tenantry.postgres.change_ids import SWEEP_EVERY, WAITED_FOR, ChangeIds


def rounds(late: dict[int, int], *, ids: int, each: int) -> dict[int, int]:
    """``ids`` changes, ``each`` new a round, of which some commit so many rounds ``late``: by id, how many
    rounds after its commit each was heard."""
    asked, heard, waited = ChangeIds(), set[int](), dict[int, int]()
    commits = {id_: (id_ - 1) // each + late.get(id_, 0) for id_ in range(1, ids + 1)}
    now = 0
    while len(heard) < ids:
        above = asked.above()
        came = [id_ for id_ in commits if id_ > above and id_ not in heard and commits[id_] <= now]
        asked.heard(came)
        waited |= {id_: now - commits[id_] for id_ in came}
        heard.update(came)
        now += 1
    return waited


@given(st.dictionaries(st.integers(2, 300), st.integers(0, WAITED_FOR - 20), max_size=40), st.integers(1, 20))
def test_what_commits_behind_others_is_heard_in_the_next_round(late: dict[int, int], each: int) -> None:
    """But for a term's first round, before which nothing was heard."""
    late = {id_: by for id_, by in late.items() if id_ > each}
    assert set(rounds(late, ids=300, each=each).values()) == {0}


@given(st.dictionaries(st.integers(2, 300), st.integers(0, 3 * WAITED_FOR), max_size=20), st.integers(1, 20))
def test_however_late_the_sweep_finds_it(late: dict[int, int], each: int) -> None:
    assert max(rounds(late, ids=300, each=each).values()) < SWEEP_EVERY


def test_an_id_that_never_comes_is_not_asked_for_for_ever() -> None:
    asked = ChangeIds()
    asked.heard([1, 2])
    asked.heard([4])
    aboves = {asked.above() for _ in range(WAITED_FOR - 1)}
    assert aboves == {2, 0}
    assert {asked.above() for _ in range(2 * SWEEP_EVERY)} == {4, 0}


def test_a_jump_of_the_sequence_is_no_thousand_missing_changes() -> None:
    asked = ChangeIds()
    asked.heard([10])
    asked.heard([1_000_000])
    assert asked.above() == 1_000_000


def test_a_term_begins_with_everything() -> None:
    assert ChangeIds().above() == 0
