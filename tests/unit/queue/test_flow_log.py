"""A flow's line: who is next, and since when the one who has waited longest has been due."""

from tenantry.kernel.instant import Timestamp
from tenantry.queue.flow_log import FlowLog
from tenantry.queue.model import Seq


def at(seconds: float) -> Timestamp:
    return Timestamp(seconds)


def test_jobs_start_in_the_order_in_which_they_were_submitted() -> None:
    log = FlowLog()
    log.append(3, at(0))
    assert [seq for seq, _, _ in log.take(5)] == [1, 2, 3]
    assert log.waiting() == 0


def test_a_retry_goes_to_the_end_and_what_was_given_back_to_the_front() -> None:
    log = FlowLog()
    log.append(4, at(0))
    log.take(2)
    log.put_back(Seq(1), 1, first=False, at=at(5))
    log.put_back(Seq(2), 0, first=True, at=at(5))
    log.append(1, at(6))
    assert log.take(9) == [(2, 0, True), (3, 0, False), (4, 0, False), (1, 1, True), (5, 0, False)]


def test_a_place_that_was_left_is_never_where_the_head_stands() -> None:
    log = FlowLog()
    log.append(3, at(0))
    assert log.skip(Seq(1))
    assert log.head == 2
    assert not log.skip(Seq(1))
    assert log.waiting() == 2


def test_a_fresh_job_behind_a_delayed_one_has_waited_since_it_came() -> None:
    log = FlowLog()
    log.append(1, at(0))
    log.skip(Seq(1))
    assert log.waiting_since() is None
    log.append(1, at(4_900))
    assert log.waiting_since() == 4_900


def test_a_retry_that_waits_alone_has_waited_since_it_was_due() -> None:
    log = FlowLog()
    log.append(1, at(0))
    log.take(1)
    log.put_back(Seq(1), 1, first=False, at=at(30))
    assert log.waiting_since() == 30
    log.take(1)
    assert log.waiting_since() is None


def test_a_job_that_came_back_may_be_taken_out_again() -> None:
    log = FlowLog()
    log.append(1, at(0))
    log.take(1)
    log.put_back(Seq(1), 1, first=False, at=at(1))
    assert log.remove_returned(Seq(1))
    assert not log.remove_returned(Seq(1))
    assert log.take(1) == []
