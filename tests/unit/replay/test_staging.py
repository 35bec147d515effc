"""From fetched to staged: identity first, then edits, and a reason for what cannot be sent."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest
from replay_world import ACME, messages

from tenantry.kernel.errors import InvalidValue
from tenantry.lanes.model import Target
from tenantry.queue.model import JobId
from tenantry.replay.dedup import key_of
from tenantry.replay.model import Edit, EditKind, Fetched, Filters, Message, ReplaySpec, SourceAddress, Staged
from tenantry.replay.staging import NO_TARGET, NOWHERE, Stager

PLAIN = messages(1, error_class="http_422", failure="bad order 7")[0]


def stager(**spec: object) -> Stager:
    ids: Iterator[int] = count(1)
    made = ReplaySpec(tenant=ACME, source=SourceAddress("jsonl"), **spec)  # type: ignore[arg-type]
    return Stager(made, lambda: f"id{next(ids)}")


def one(message: Message = PLAIN, fault: str = "", **spec: object) -> Staged:
    return stager(**spec).staged(Fetched(message, None, fault=fault), {})


def test_a_message_is_known_by_what_it_was_before_the_edits_and_by_where_it_goes_now() -> None:
    elsewhere = Target("https://b.example/")
    found = one(target=elsewhere, edits=(Edit(EditKind.SET, "$.n", "8"),))
    assert found.payload == b'{"n":8}'
    assert found.target == elsewhere
    assert found.key == key_of(ACME, elsewhere, "m0", b'{"n":0}')
    assert found.key != one().key


def test_a_dead_letter_of_our_own_stays_the_job_that_it_was_and_others_get_an_id() -> None:
    assert one(replace(PLAIN, letter=JobId("mine"))).job == "mine"
    assert one().job == "id1"


def test_what_cannot_be_sent_says_why() -> None:
    assert (one(fault="no id").broken, one(fault="no id").park_rule) == ("no id", "broken")
    nowhere = one(replace(PLAIN, target=None))
    assert (nowhere.broken, nowhere.target) == (NO_TARGET, NOWHERE)
    assert one(edits=(Edit(EditKind.REMOVE, "$.absent"),)).broken == "$.absent is not there"
    assert one().broken == ""


def test_a_message_of_a_held_class_is_parked_and_its_edits_are_not_tried() -> None:
    held = {one().origin: "20 attempts failed alike"}
    found = stager(edits=(Edit(EditKind.SET, "$.n", "8"),)).staged(Fetched(PLAIN, None), held)
    assert (found.park_rule, found.broken, found.payload) == ("class", held[found.origin], PLAIN.payload)


def test_a_fetch_is_sorted_into_what_is_meant_and_what_is_left_and_faults_are_taken() -> None:
    other = replace(PLAIN, id="other", error_class="timeout")
    fetched = [Fetched(PLAIN, 1), Fetched(other, 2), Fetched(other, 3, fault="no JSON")]
    found = stager(filters=Filters(error_classes=frozenset({"http_422"}))).sorted(fetched, {})
    assert [each.receipt for each in found.taken] == [1, 3]
    assert [each.receipt for each in found.left] == [2]
    assert [bool(each.broken) for each in found.staged] == [False, True]


def test_a_spec_that_cannot_be_is_refused_before_anything_is_staged() -> None:
    with pytest.raises(InvalidValue, match=r"edits\[0\]\.at"):
        stager(edits=(Edit(EditKind.REMOVE, "$"),))
