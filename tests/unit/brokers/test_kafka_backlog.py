"""What a consumer holds: its lines, its bounds, its positions; and who waits at which gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.brokers.kafka.backlog import Backlog, Item, Limits
from tenantry.brokers.kafka.identity import entity_key, from_key
from tenantry.brokers.kafka.lag import lag_of
from tenantry.brokers.kafka.model import Identity, Record, Spot
from tenantry.brokers.kafka.reorder import Gate, ReorderWindow, gates_of
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Instant, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.partition import Layout, Placement

SPOT, OTHER = Spot("t", 0), Spot("t", 1)
A, B = Identity(TenantId("a"), "x"), Identity(TenantId("b"), "x")


def record(offset: int, spot: Spot = SPOT, at: float = 100.0, value: bytes = b"") -> Record:
    return Record(spot, offset, None, value, Timestamp(at))


def held(limits: Limits | None = None) -> Backlog:
    backlog = Backlog(limits or Limits())
    backlog.assign((SPOT, OTHER))
    return backlog


def test_of_one_entity_one_record_runs_at_a_time_in_offset_order() -> None:
    backlog = held()
    first = backlog.accept(record(0), A)
    assert backlog.accept(record(1), A) is None
    assert backlog.accept(record(2), B) is not None
    assert first is not None
    second = backlog.finished(first)
    assert second is not None and second.record.offset == 1
    assert backlog.finished(second) is None


def test_records_without_an_entity_wait_for_nobody() -> None:
    backlog = held()
    loose = Identity(TenantId("a"), None)
    assert all(backlog.accept(record(offset), loose) is not None for offset in range(3))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=40), st.data())
def test_however_work_ends_lines_keep_their_order_and_positions_their_promise(
    whose: list[tuple[str, str]], data: st.DataObject
) -> None:
    backlog, running, done = held(), list[Item](), list[Item]()
    for offset, (tenant, entity) in enumerate(whose):
        item = backlog.accept(record(offset), Identity(TenantId(tenant), entity))
        if item is not None:
            running.append(item)
    while running:
        item = running.pop(data.draw(st.integers(0, len(running) - 1)))
        following = backlog.finished(item)
        done.append(item)
        if following is not None:
            running.append(following)
        unfinished = set(range(len(whose))) - {each.record.offset for each in done}
        assert backlog.positions()[SPOT] == min(unfinished, default=len(whose))
    assert backlog.records == backlog.bytes == 0
    for line in set(whose):
        assert [i.record.offset for i in done if i.line == line] == [
            o for o, w in enumerate(whose) if w == line
        ]


def test_a_full_partition_is_paused_once_and_resumed_when_half_is_done() -> None:
    backlog = held(Limits(records_per_partition=4))
    items = [backlog.accept(record(offset), Identity(TenantId("a"), None)) for offset in range(4)]
    assert backlog.steer() == ([SPOT], [])
    assert backlog.steer() == ([], [])
    for item in items[:2]:
        assert item is not None
        assert backlog.steer() == ([], [])
        backlog.finished(item)
    assert backlog.steer() == ([], [SPOT])


def test_the_bound_over_all_pauses_every_partition() -> None:
    backlog = held(Limits(records=2))
    backlog.accept(record(0), A)
    backlog.accept(record(0, OTHER), A)
    pause, _ = backlog.steer()
    assert sorted(pause) == [SPOT, OTHER]


def test_the_bound_over_all_pauses_no_partition_that_a_gate_waits_for_but_its_own_bound_does() -> None:
    backlog = held(Limits(records=2, records_per_partition=3))
    for offset in range(2):
        backlog.accept(record(offset), A)
    assert backlog.steer({OTHER}) == ([SPOT], [])
    for offset in range(3):
        assert backlog.room().records == 1
        backlog.accept(record(offset, OTHER), B)
    assert backlog.steer({OTHER}) == ([OTHER], [])
    assert backlog.steer() == ([], [])


def test_bytes_are_bounded_too_and_a_fetch_never_has_room_for_more_than_is_left() -> None:
    backlog = held(Limits(bytes_per_partition=1_000, records_per_partition=10))
    assert backlog.room() == (10, 1_000)
    backlog.accept(record(0, value=b"." * 300), A)
    assert backlog.room() == (9, 500)
    backlog.accept(record(1, value=b"." * 900), A)
    assert backlog.steer() == ([SPOT], [])


def test_a_revoked_partition_gives_its_position_and_late_work_changes_nothing() -> None:
    backlog = held()
    first, second = backlog.accept(record(7), A), backlog.accept(record(8), B)
    assert first is not None and second is not None
    backlog.finished(first)
    assert backlog.stop((SPOT,)) == [second]
    assert backlog.revoke((SPOT,)) == {SPOT: 8}
    assert backlog.finished(second) is None
    assert backlog.accept(record(9), A) is None
    assert backlog.records == 0


def test_what_is_committed_is_not_committed_again() -> None:
    backlog = held()
    item = backlog.accept(record(0), A)
    assert item is not None
    backlog.finished(item)
    backlog.committed(backlog.positions())
    assert backlog.positions() == {}
    assert backlog.revoke((SPOT,)) == {}


def test_lag_is_counted_and_aged_by_tenant() -> None:
    backlog = held()
    backlog.accept(record(0, at=90.0), A)
    backlog.accept(record(1, at=95.0), A)
    backlog.accept(record(2, at=99.0), B)
    share = next(iter(backlog.shares()))
    found = lag_of(share, 10, Timestamp(100.0))
    assert [(each.tenant, each.unfinished, each.oldest_for) for each in found.tenants] == [
        ("a", 2, 10.0),
        ("b", 1, 1.0),
    ]
    assert (found.unfinished, found.unfetched) == (3, 7)


@pytest.mark.parametrize("limits", [{"records": 0}, {"bytes": True}, {"resume_at": 1.0}])
def test_a_limit_that_cannot_be_is_refused(limits: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=r"limits\."):
        Limits(**limits)  # type: ignore[arg-type]


@given(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True),
    st.text(alphabet=st.characters(codec="utf-8")),
)
def test_a_key_says_whose_it_is_exactly(tenant: str, entity: str) -> None:
    assert from_key(Record(SPOT, 0, entity_key(tenant, entity), b"", None)) == (tenant, entity)


def test_a_gate_holds_until_it_was_passed_or_its_window_is_over() -> None:
    window = ReorderWindow[str](10.0)
    old, older = Gate(SPOT, Timestamp(50.0)), Gate(OTHER, Timestamp(40.0))
    assert window.holds("one", (old, older), Instant(0.0))
    assert window.holds("two", (old,), Instant(3.0))
    assert window.shut() == [old]
    assert window.opened(old) == ["one", "two"]
    assert window.holds("one", (old, older), Instant(4.0))
    assert not window.holds("two", (old,), Instant(4.0))
    assert window.over(Instant(13.9)) == {}
    assert window.over(Instant(14.0)) == {older: ["one"]}
    assert not window.holds("one", (old, older), Instant(14.0))
    window.forget()
    assert window.holds("one", (old,), Instant(15.0))
    window.discard(lambda item: item == "one")
    assert window.shut() == []


def test_gates_stand_before_what_moved_only_and_name_where_it_was_last() -> None:
    placement = Placement([Layout(8), Layout(8, spreads={"a": 8}, effective_from=50.0)])
    gates = gates_of(placement)
    for number in range(50):
        whose = Identity(TenantId("a"), f"e{number}")
        before = placement.partition_for("a", f"e{number}", 49.0)
        after = placement.partition_for("a", f"e{number}", 50.0)
        expected = () if before == after else (Gate(Spot("t", before), Timestamp(50.0)),)
        assert gates(record(0, Spot("t", after), at=60.0), whose) == expected
        assert gates(record(0, Spot("t", before), at=49.0), whose) == ()


def test_before_a_record_was_taken_nobody_knows_how_many_are_left() -> None:
    share = next(iter(held().shares()))  # the group may stand at the log's end
    assert lag_of(share, 1_000_000, Timestamp(100.0)).unfetched is None
