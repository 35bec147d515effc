"""What makes two messages one, and what is done with one that was seen before."""

from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.replay.dedup import KEY_BYTES, Record, fate_of, key_of
from tenantry.replay.model import Fate, HoldRule, Known, OnUnknown, ReplayId, ReplaySpec, SourceAddress
from tenantry.replay.quotas import day_of, over_a_day, over_keys, over_running, start_of

ACME, HOOK = TenantId("acme"), Target("https://hooks.example.com/a")
SPEC = ReplaySpec(tenant=ACME, source=SourceAddress("jsonl", "a.jsonl"))
MINE, THEIRS = ReplayId("mine"), ReplayId("theirs")
PARTS = st.tuples(st.text(max_size=4), st.text(max_size=4), st.text(max_size=4), st.binary(max_size=4))


def test_r5_the_same_id_with_another_body_has_another_key() -> None:
    assert key_of(ACME, HOOK, "1", b"a") != key_of(ACME, HOOK, "1", b"b")
    assert key_of(ACME, HOOK, "1", b"a") == key_of(ACME, HOOK, "1", b"a")
    assert len(key_of(ACME, HOOK, "1", b"a")) == KEY_BYTES


@given(one=PARTS, other=PARTS)
def test_keys_are_equal_only_where_every_part_is(
    one: tuple[str, str, str, bytes], other: tuple[str, str, str, bytes]
) -> None:
    keys = [key_of(TenantId(t), Target(to), id_, body) for t, to, id_, body in (one, other)]
    assert (keys[0] == keys[1]) is (one == other)


def test_an_id_that_is_no_proper_text_has_a_key_too() -> None:
    assert key_of(ACME, HOOK, "\udc80", b"") != key_of(ACME, HOOK, "\udc81", b"")


def test_a_message_that_is_not_known_is_sent_or_put_aside() -> None:
    assert fate_of(None, MINE, SPEC, unsendable=False) is Fate.STAGED
    assert fate_of(None, MINE, SPEC, unsendable=True) is Fate.PARKED


def test_what_this_replay_had_before_comes_again_whatever_it_came_to() -> None:
    for state, unsendable in product(Known, (True, False)):
        assert fate_of(Record(state, MINE), MINE, SPEC, unsendable=unsendable) is Fate.AGAIN


def test_what_another_replay_has_or_has_delivered_is_a_duplicate() -> None:
    again = replace(SPEC, again=True)
    for spec, unsendable in product((SPEC, again), (True, False)):
        assert fate_of(Record(Known.STAGED, THEIRS), MINE, spec, unsendable=unsendable) is Fate.DUPLICATE
    assert fate_of(Record(Known.DELIVERED, THEIRS), MINE, SPEC, unsendable=False) is Fate.DUPLICATE
    assert fate_of(Record(Known.DELIVERED, THEIRS), MINE, again, unsendable=False) is Fate.STAGED


def test_what_may_have_been_delivered_is_held_or_sent_as_the_replay_says() -> None:
    unknown, holding = Record(Known.UNKNOWN, THEIRS), replace(SPEC, on_unknown=OnUnknown.HOLD)
    assert fate_of(unknown, MINE, SPEC, unsendable=False) is Fate.STAGED
    assert fate_of(unknown, MINE, holding, unsendable=False) is Fate.PARKED
    assert fate_of(Record(Known.FAILED, THEIRS), MINE, holding, unsendable=False) is Fate.STAGED


def test_what_failed_before_is_sent_again_or_put_aside_where_it_cannot_be() -> None:
    failed = Record(Known.FAILED, THEIRS, failings=2)
    assert fate_of(failed, MINE, SPEC, unsendable=False) is Fate.STAGED
    assert fate_of(failed, MINE, SPEC, unsendable=True) is Fate.PARKED


def test_a_day_begins_at_midnight_utc() -> None:
    at = Timestamp(86_400.0 * 20_000 + 5.0)
    assert (day_of(at), start_of(day_of(at))) == (20_000, 86_400.0 * 20_000)


def test_a_quota_that_is_reached_says_which_and_when_it_frees() -> None:
    frees_at = Timestamp(5.0)
    assert over_a_day(3, frees_at).reason == "the tenant's 3 replayed messages a day are used up"
    assert over_keys(3, frees_at).frees_at == frees_at
    assert over_running(3).rule is HoldRule.CONCURRENCY
    assert over_running(3).frees_at is None
