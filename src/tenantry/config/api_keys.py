"""API keys as pure rules: how one is made, read, stored and compared. The drawing of chance is handed in.

A key is ``tk_<id>_<secret><checksum>``: 70 letters, digits and ``_``, so that a double click selects it.


- ``id``, 17 characters: finds the stored key. Not secret: it may stand in logs, lists and metrics.
- ``secret``, 43 characters: 32 random bytes. Shown once, when the key is made.
- ``checksum``, 6 characters: CRC-32 of all before it, so that a slip of typing is refused without a query,
  and secret scanners find real keys without asking us. It protects against nothing else.

The form follows GitHub's tokens ("Behind GitHub's new authentication token formats", 2021). The tenant is not
in it: identity comes from the stored key that the credential finds (law I1), so moving or renaming what a key
belongs to never leaves a stale name in somebody's hands.

What is stored is the SHA-256 of the secret, without salt or slow hash. Those defend guessable secrets: NIST
SP 800-63B, section 5.1.2.2, asks for them only below 112 bits of entropy. This one has 256, and a slow hash
on each request would hand whoever sends wrong keys a way to exhaust our processors.
"""

import hashlib
import hmac
import re
import zlib
from dataclasses import dataclass, field

from tenantry.config.validation import Described
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.randomness import Randomness

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_BYTES, _ID_WIDTH = 12, 17  # 62**17 > 2**96
_SECRET_BYTES, _SECRET_WIDTH = 32, 43  # 62**43 > 2**256
_CHECKSUM_WIDTH = 6  # 62**6 > 2**32
_FORM = re.compile(
    rf"(tk_([0-9A-Za-z]{{{_ID_WIDTH}}})_([0-9A-Za-z]{{{_SECRET_WIDTH}}}))([0-9A-Za-z]{{{_CHECKSUM_WIDTH}}})",
    re.ASCII,
)
_NOT_SHOWN = Described("a key (not shown)")
_ACCEPTED = "an API key: tk_, 17 letters or digits, _, and 49 letters or digits"


@dataclass(frozen=True, slots=True, eq=False)
class ApiKey:
    """A key as it was presented: well formed, not yet known to be anybody's. The secret is never printed.

    Without ``==`` on purpose: the one comparison is :func:`matches`.
    """

    key_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class NewApiKey:
    """A key just made. ``text`` is for its owner, once, and is never printed; ``key_id`` and
    ``secret_hash`` (32 bytes) are for the store."""

    text: str = field(repr=False)
    key_id: str
    secret_hash: bytes = field(repr=False)


def make_api_key(randomness: Randomness) -> NewApiKey:
    """A new key, from 44 drawn bytes. Pure but for the draw. Its id has 96 bits: no two will be alike."""
    key_id = _base62(int.from_bytes(randomness.token(_ID_BYTES), "big"), _ID_WIDTH)
    secret = _base62(int.from_bytes(randomness.token(_SECRET_BYTES), "big"), _SECRET_WIDTH)
    body = f"tk_{key_id}_{secret}"
    return NewApiKey(body + _checksum(body), key_id, hash_secret(secret))


def parse_api_key(text: object, *, path: str = "api_key") -> ApiKey:
    """``text`` as a key. Pure, O(length). Raises :class:`InvalidValue`, which never shows the text."""
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidValue(path, _NOT_SHOWN, _ACCEPTED, "Paste it whole, as it was shown when it was made.")
    body, key_id, secret, checksum = found.groups()
    if _checksum(body) != checksum:  # not a comparison of secrets: anyone can compute it
        raise InvalidValue(
            path, _NOT_SHOWN, "an API key whose checksum fits", "A character was mistyped or lost."
        )
    return ApiKey(key_id, secret)


def hash_secret(secret: str) -> bytes:
    """What the store keeps of a secret: SHA-256, 32 bytes. Pure."""
    return hashlib.sha256(secret.encode()).digest()


def matches(presented: ApiKey, secret_hash: bytes) -> bool:
    """Whether the presented secret is the one whose hash is stored under its id. Pure.

    Hashes are compared in constant time, so how much of a guess was right cannot be measured. That an id
    exists may be measured, and is no secret.
    """
    return hmac.compare_digest(hash_secret(presented.secret), secret_hash)


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECKSUM_WIDTH)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
