"""Query parameters: each known one at most once, and no others; and what several calls read from them."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar
from urllib.parse import parse_qsl

from tenantry.kernel.errors import nearest
from tenantry.web.calls import AnyCall
from tenantry.web.problems import refused

NEWEST: Final = 100
"""So many entries a list has where the call names no limit."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_Choice = TypeVar("_Choice", bound=StrEnum)


def parameters(call: AnyCall, known: tuple[str, ...]) -> dict[str, str]:
    """The query's parameters. Raises :class:`~tenantry.web.problems.Refused` (400) for unknown and repeated
    ones."""
    found: dict[str, str] = {}
    for name, value in _pairs(call.scope["query_string"]):
        if name not in known:
            raise refused("invalid-parameter", _unknown(name, known))
        if name in found:
            raise refused("invalid-parameter", f"The query parameter {name} stands twice; give it once.")
        found[name] = value
    return found


def limit_of(given: Mapping[str, str]) -> int:
    """How many entries are asked for: 1 to 1,000, or :data:`NEWEST`. Raises
    :class:`~tenantry.web.problems.Refused` (400) for anything else."""
    text = given.get("limit", str(NEWEST))
    if not re.fullmatch(r"[0-9]{1,4}", text, re.ASCII) or not 1 <= int(text) <= 1_000:
        detail = f"limit: {text[:40]!r} is not accepted; expected a whole number from 1 to 1,000."
        raise refused("invalid-parameter", detail)
    return int(text)


def state_of(given: Mapping[str, str], states: type[_Choice]) -> _Choice | None:
    """The state that is asked for, if one is. Raises :class:`~tenantry.web.problems.Refused` (400) for one
    that is none of ``states``."""
    text = given.get("state")
    if text is None:
        return None
    if text not in set(states):
        known = ", ".join(states)
        raise refused("invalid-parameter", f"state: {text[:40]!r} is not accepted; expected one of {known}.")
    return states(text)


def is_uuid(text: str) -> bool:
    """Whether it is written as the ids of jobs and replays are (RFC 9562, section 4, in lower case)."""
    return _UUID.fullmatch(text) is not None


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise refused("invalid-parameter", "The query string cannot be read as UTF-8 parameters.") from None


def _unknown(name: str, known: tuple[str, ...]) -> str:
    near = nearest(name, known)
    hint = f" Did you mean {near!r}?" if near else ""
    accepted = "one of " + ", ".join(known) if known else "none"
    return f"Unknown query parameter {name[:40]!r}; expected {accepted}.{hint}"
