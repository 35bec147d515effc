"""What a secret looks like, and text without it. Pure.

Three kinds are known: things that look like our own secrets wherever they stand (``tk_…``, ``whsec_…``);
values of an ``Authorization`` or ``X-API-Key`` header or of a query parameter that carries a credential;
and fields whose name says that they are secret. Percent-encoded forms count: text is also looked at
decoded, up to three times, and where only the decoded form shows a secret the whole text goes.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote

HIDDEN = "[redacted]"

_DEEPEST = 6
_TOO_DEEP = "[nested too deeply]"

_OURS = re.compile(r"\b(tk|whsec)_[A-Za-z0-9+/=_-]{4,}")
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization|x-api-key|cookie)(['\"]?\s*[:=,]\s*b?['\"]?)(?:(bearer|basic|digest|token)\s+)?[^\s'\",;&]+"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_QUERY = re.compile(
    r"(?i)([?&;](?:x[-_])?(?:api[-_]?key|access[-_]?token|token|key|secret|password|signature|authorization)=)[^&;\s'\"]+"
)
_USER = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^/?#\s'\"@]*@")
_NAMES = re.compile(
    r"(?i)(?:^|[_-])(?:authorization|api[-_]?key|secrets?|password|passwd|cookie|token|dsn|credentials?)$"
)


def redacted(text: str) -> str:
    """``text`` with every secret in it replaced. Idempotent; O(length)."""
    clean = _plainly(text)
    decoded = clean
    for _ in range(3):
        if "%" not in decoded:
            break
        decoded = unquote(decoded)
        if _plainly(decoded) != decoded:
            return HIDDEN
    return clean


def is_secret_name(name: str) -> bool:
    """Whether a field or header of this name holds a secret: ``authorization``, ``x-api-key``,
    ``db_password``."""
    return _NAMES.search(name) is not None


def cleaned(value: object, depth: int = 0) -> object:
    """``value`` with the secrets in it replaced, made of JSON's types only. Unknown objects become their
    ``repr``."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth > _DEEPEST:
        return _TOO_DEEP
    if isinstance(value, Mapping):
        return {redacted(str(key)): _field(str(key), item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [cleaned(item, depth + 1) for item in value]
    return redacted(_as_text(value))


def _field(name: str, value: object, depth: int) -> object:
    return HIDDEN if is_secret_name(name) else cleaned(value, depth)


def _plainly(text: str) -> str:
    text = _HEADER.sub(lambda found: f"{found[1]}{found[2]}{HIDDEN}", text)
    text = _SCHEME.sub(lambda found: f"{found[1]} {HIDDEN}", text)
    text = _QUERY.sub(lambda found: f"{found[1]}{HIDDEN}", text)
    text = _USER.sub(lambda found: f"{found[1]}{HIDDEN}@", text)
    return _OURS.sub(lambda found: f"{found[1]}_{HIDDEN}", text)


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else repr(value)
