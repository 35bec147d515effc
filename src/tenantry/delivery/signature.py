"""Signatures as Standard Webhooks 1.0.0 specifies them: ``v1,`` and the base64 of an HMAC-SHA256.

What is signed is ``{id}.{timestamp}.{body}``: the job's id, which no tenant chooses and which holds no dot,
the attempt's time in whole seconds, and the body's bytes as they are sent. Pure.
"""

import base64
import binascii
import hashlib
import hmac
from functools import lru_cache

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.randomness import Randomness

PREFIX = "whsec_"

_ACCEPTED = "whsec_ and base64, or several of these separated by spaces (the new one first) while rotating"


def new_secret(randomness: Randomness) -> str:
    """A fresh signing secret of 32 bytes (the specification asks for 24 to 64)."""
    return PREFIX + base64.b64encode(randomness.token(32)).decode("ascii")


@lru_cache(maxsize=4_096)
def signing_keys(secret: str) -> tuple[bytes, ...]:
    """The keys in ``secret``, in the order given.

    Raises :class:`InvalidValue`, without the secret, for anything but ``whsec_`` and base64, one or several.
    Short keys are accepted: a receiver's existing key must go on working while its sender changes.
    """
    keys = tuple(_key(text) for text in secret.split())
    if not keys:
        raise _refusal()
    return keys


def signature_header(keys: tuple[bytes, ...], *, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of ``webhook-signature``: one signature a key, so that a receiver with either key
    verifies."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return " ".join(f"v1,{_signature(key, signed)}" for key in keys)


def _signature(key: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode("ascii")


def _key(text: str) -> bytes:
    encoded = text.removeprefix(PREFIX)
    if encoded == text:
        raise _refusal()
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _refusal() from None  # the cause would quote the secret
    if not key:
        raise _refusal()
    return key


def _refusal() -> InvalidValue:
    hint = "`tenantry.delivery.signature.new_secret` makes one."
    return InvalidValue("secret", "the signing secret (not shown)", _ACCEPTED, hint)
