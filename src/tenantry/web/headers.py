"""The ``Idempotency-Key`` header (IETF draft, draft-ietf-httpapi-idempotency-key-header-07)."""

import re

from tenantry.web.calls import Call
from tenantry.web.problems import refused

_QUOTED = re.compile(rb'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_BARE = re.compile(rb"[!#-+\--:<-\[\]-~]+")  # visible, without quotes, commas, semicolons and backslashes
_LONGEST = 255


def idempotency_key(call: Call) -> str | None:
    """The key: a structured field's string, as the draft says (``"a1b2"``), or the bare text that most
    clients send; both name the same key. Raises :class:`~tenantry.web.problems.Refused` (400)."""
    values = call.header(b"idempotency-key")
    if not values:
        return None
    if len(values) > 1:
        raise refused("invalid-parameter", "There is more than one Idempotency-Key header.")
    text = _text(values[0].strip())
    if text is None or not 0 < len(text) <= _LONGEST:
        accepted = f"1 to {_LONGEST} printable ASCII characters, quoted or without quotes and spaces"
        raise refused("invalid-parameter", f"The Idempotency-Key header must be {accepted}.")
    return text


def no_idempotency_key(call: Call) -> None:
    """For calls of many jobs. Raises :class:`~tenantry.web.problems.Refused` (400) when there is one."""
    if call.header(b"idempotency-key"):
        detail = "One key cannot name many jobs: give each row of a batch its own idempotency_key."
        raise refused("invalid-parameter", detail)


def _text(value: bytes) -> str | None:
    if quoted := _QUOTED.fullmatch(value):
        return re.sub(rb"\\(.)", rb"\1", quoted[1]).decode("ascii")
    return value.decode("ascii") if _BARE.fullmatch(value) else None
