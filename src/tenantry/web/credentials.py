"""Which credential a request shows: exactly one, in one header. Pure.

Two credentials are refused and never resolved by order: proxies and frameworks disagree about which of two
equal headers counts, and that disagreement is how one tenant's check meets another tenant's key.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

Headers = Iterable[tuple[bytes, bytes]]
"""Names in lower case, in the order sent, repeated ones repeated: as ASGI has them."""

_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([!-~]+)")
_QUERY_NAMES = frozenset(
    ("apikey", "xapikey", "key", "token", "accesstoken", "authtoken", "authorization", "bearer", "secret")
)
_KEY_TEXT = re.compile(rb"tk_[0-9A-Za-z]{8}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Missing:
    """No credential at all."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A credential that cannot be one. ``reason``: ``malformed`` or ``ambiguous``; ``detail`` for people."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True, repr=False)
class Shown:
    """The text of the one credential. It is never printed."""

    text: str


Credential = Shown | Missing | Unusable


def credential_of(headers: Headers) -> Credential:
    """The credential in ``Authorization: Bearer KEY`` or ``X-API-Key: KEY``; exactly one may be there."""
    found = [(name, value) for name, value in headers if name in (b"authorization", b"x-api-key")]
    if not found:
        return Missing()
    if len(found) > 1:
        return Unusable("ambiguous", "Send one credential: one Authorization or one X-API-Key header.")
    name, value = found[0]
    return _from_bearer(value) if name == b"authorization" else _from_key_header(value)


def query_holds_credential(query: bytes) -> bool:
    """Whether a query string carries a credential, by a parameter's name or by a value that looks like a key.

    Names are compared decoded, without case, ``-`` and ``_``; values decoded up to three times.
    """
    return bool(query) and any(_parameter_is_credential(part) for part in re.split(rb"[&;]", query))


def tenant_hints(headers: Headers) -> list[str]:
    """What the headers claim about the tenant. Each must agree with the credential (law I1)."""
    return [value.decode("latin-1").strip() for name, value in headers if name == b"x-tenant-id"]


def _from_bearer(value: bytes) -> Credential:
    found = _BEARER.fullmatch(value.strip())
    if found is None:
        return Unusable("malformed", "The Authorization header must read: Bearer KEY.")
    return Shown(found[1].decode("ascii"))


def _from_key_header(value: bytes) -> Credential:
    text = value.strip()
    if not re.fullmatch(rb"[!-~]+", text) or b"," in text:
        return Unusable("malformed", "The X-API-Key header must hold one key and nothing else.")
    return Shown(text.decode("ascii"))


def _parameter_is_credential(part: bytes) -> bool:
    name, _, value = part.partition(b"=")
    plain = _decoded(name).decode("latin-1").casefold()
    if plain.replace("-", "").replace("_", "") in _QUERY_NAMES:
        return True
    return any(_KEY_TEXT.search(text) for text in (_decoded(name), _decoded(value)))


def _decoded(text: bytes) -> bytes:
    for _ in range(3):
        text = unquote_to_bytes(text)
    return text
