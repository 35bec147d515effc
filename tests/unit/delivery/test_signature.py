"""Signatures verify with the public client library, and secrets show nowhere."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from tenantry.delivery.signature import new_secret, signature_header, signing_keys
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.randomness import SeededRandomness

OLD, NEW = (new_secret(SeededRandomness(seed)) for seed in (1, 2))


def headers(secret: str, body: bytes, *, message_id: str = "0198", at: int | None = None) -> dict[str, str]:
    timestamp = int(SystemClock().now()) if at is None else at
    signature = signature_header(signing_keys(secret), message_id=message_id, timestamp=timestamp, body=body)
    return {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": signature}


def test_a_published_vector_gives_its_signature() -> None:
    # the vector that the public client libraries of Standard Webhooks test themselves with
    signed = headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        b'{"test": 2432232314}',
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        at=1_614_265_330,
    )
    assert signed["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.text(max_size=200), st.binary(min_size=1, max_size=64))
def test_whatever_is_signed_verifies(text: str, key: bytes) -> None:
    body = text.encode("utf-8", "ignore")
    secret = "whsec_" + base64.b64encode(key).decode()
    Webhook(secret).verify(body, headers(secret, body), json_parse=False)


def test_a_changed_body_does_not_verify() -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(b'{"a":2}', headers(NEW, b'{"a":1}'))


def test_while_rotating_receivers_of_both_secrets_verify() -> None:
    both = headers(f"{NEW} {OLD}", b"{}")
    assert len(both["webhook-signature"].split(" ")) == 2
    Webhook(NEW).verify(b"{}", both)
    Webhook(OLD).verify(b"{}", both)


def test_bodies_that_are_no_text_are_signed_as_they_are() -> None:
    assert signature_header((b"k",), message_id="1", timestamp=2, body=b"\xff\x00").startswith("v1,")


@pytest.mark.parametrize(
    "secret", ["", " ", "whsec_", "hunter2", "whsec_hunter2!", f"{OLD} hunter2", "whpk_aHVudGVyMg=="]
)
def test_a_secret_that_is_none_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        signing_keys(secret)
    told = f"{refusal.value} {refusal.value!r} {refusal.value.__cause__!r}"
    assert "hunter2" not in told
    assert "whsec_ and base64" in told


def test_a_new_secret_has_the_specified_length() -> None:
    assert len(signing_keys(NEW)[0]) == 32
    assert NEW != OLD
