"""A parked message goes back whole, or says what it lacks."""

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.queue.model import JobId
from tenantry.replay.model import ParkedMessage, ReplayId
from tenantry.replay.repairs import NOWHERE, UNREAD, Repair, checked_repair, fitting

THERE = Target("https://a.example/x")


def parked(target: Target = THERE, content_type: str = "application/json") -> ParkedMessage:
    return ParkedMessage(
        job=JobId("019b7c5e-7a30-7c11-8b56-3f1f0c6a2d10"),
        tenant=TenantId("acme"),
        replay=ReplayId("r"),
        target=target,
        payload=b"{}",
        content_type=content_type,
        headers={},
        rule="broken",
        reason="it is no JSON",
        fingerprint="",
        attempts=0,
        parked_at=Timestamp(0.0),
    )


def test_a_message_that_can_be_sent_goes_back_as_it_is_or_as_it_is_given() -> None:
    assert fitting(parked(), Repair()) == Repair()
    assert fitting(parked(NOWHERE), Repair(target=THERE)) == Repair(target=THERE)


def test_a_message_without_a_target_says_that_it_needs_one() -> None:
    with pytest.raises(InvalidValue, match=r"target: no target.*where the message is to go.*it is no JSON"):
        fitting(parked(NOWHERE), Repair(payload=b"{}"))


def test_an_entry_that_is_no_message_needs_a_payload_which_says_what_it_is() -> None:
    with pytest.raises(InvalidValue, match=r"payload: the entry as it lay in its source"):
        fitting(parked(content_type=UNREAD), Repair(target=THERE))
    assert fitting(parked(content_type=UNREAD), Repair(b"[1]")).content_type == "application/json"
    assert fitting(parked(content_type=UNREAD), Repair(b"\xff")).content_type == "application/octet-stream"


@pytest.mark.parametrize("target", ["", "unknown", "http://", "amqp:x", "x" * 256])
def test_what_is_no_target_is_not_given(target: str) -> None:
    with pytest.raises(InvalidValue, match="target"):
        checked_repair(Repair(target=Target(target)))


def test_targets_are_written_as_everywhere() -> None:
    assert checked_repair(Repair(target=THERE)).target == THERE
    assert checked_repair(Repair(target=Target("orders"))).target == "orders"
