"""Layouts from a file, and from tenant documents. Pure: text in, a history out.

A file is TOML or JSON::

    [[layouts]]
    effective_from = 0              # seconds since 1970, or 2026-03-01T00:00:00Z; left out: always
    partitions = 32                 # a count, or ids
    default_spread = 1
    slots = "modulo"                # or "jump"
    reserved = [30, 31]
    spreads = { acme = 4, globex = { partitions = 3, slots = "jump" } }
    pins = { initech = [7] }
    states = { 31 = "pending" }
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from tenantry.config.model import TenantDocument
from tenantry.config.syntax import decoded, parse_json, parse_toml
from tenantry.kernel.errors import InvalidValue, UnknownKey
from tenantry.kernel.instant import as_timestamp
from tenantry.partition.model import FIRST, Layout, Spread
from tenantry.partition.spread import History

_LAYOUT_KEYS = (
    "effective_from", "partitions", "default_spread", "slots", "reserved", "spreads", "pins", "states",
)  # fmt: skip
_LISTED = ("reserved",)
_TABLES = ("spreads", "pins", "states")


def parse_history(text: str | bytes, *, format: Literal["toml", "json"] = "toml") -> History:
    """The history that ``text`` holds.

    Raises :class:`InvalidValue` with the place (``layouts[1].spreads.acme``) and what is accepted; for an
    unknown key :class:`UnknownKey` with the nearest known one.
    """
    plain = decoded(text, wanted="at least one [[layouts]] with its partitions")
    whole = _table("document", parse_toml(plain) if format == "toml" else parse_json(plain))
    _known("", whole, ("layouts",))
    listed = whole.get("layouts")
    if not isinstance(listed, list) or not listed:
        raise InvalidValue("layouts", listed, "a list of at least one layout")
    return History(tuple(_layout(f"layouts[{place}]", each) for place, each in enumerate(listed)))


def encode_history(history: History) -> dict[str, object]:
    """What :func:`parse_history` reads, as a JSON object: equal histories give equal ones."""
    return {"layouts": [_encoded(each) for each in history]}


def spreads_by_tier(layout: Layout, documents: Iterable[TenantDocument], tiers: Mapping[str, int]) -> Layout:
    """``layout`` with the spread that ``tiers`` gives the tier of each tenant document. Pure.

    Tenants whose tier is not named keep the default spread; a spread or a pin of the layout itself wins.
    """
    given: dict[str, int | Spread] = {
        each.tenant: tiers[each.tier]
        for each in documents
        if each.tier in tiers and each.tenant not in layout.pins
    }
    return replace(layout, spreads={**given, **layout.spreads})


def _layout(path: str, value: object) -> Layout:
    parts = _table(path, value)
    _known(path, parts, _LAYOUT_KEYS)
    if "partitions" not in parts:
        raise InvalidValue(f"{path}.partitions", "nothing", "a count of partitions, or their ids")
    for key in (key for key in _TABLES if key in parts):
        _table(f"{path}.{key}", parts[key])
    for key in (key for key in _LISTED if key in parts):
        if not isinstance(parts[key], list):
            raise InvalidValue(f"{path}.{key}", parts[key], "a list of partitions")
    if not isinstance(parts["partitions"], (int, list)):
        raise InvalidValue(f"{path}.partitions", parts["partitions"], "a count, or a list of ids")
    try:
        return Layout(**_read(parts))
    except InvalidValue as error:
        where = "" if error.path.startswith(path) else f"{path}."
        raise InvalidValue(where + error.path, error.value, error.accepted, error.hint) from None


def _read(parts: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(parts)
    if isinstance(found.get("effective_from"), (datetime, str)):
        found["effective_from"] = _moment(found["effective_from"])
    found["spreads"] = {each: _spread(each, k) for each, k in parts.get("spreads", {}).items()}
    return found


def _moment(value: datetime | str) -> float:
    """JSON has no times: there they are text."""
    try:
        return as_timestamp(datetime.fromisoformat(value) if isinstance(value, str) else value)
    except ValueError as error:
        accepted = "seconds since 1970, or a time with its zone such as 2026-03-01T00:00:00Z"
        raise InvalidValue("effective_from", str(value), accepted, str(error)) from None


def _spread(tenant: str, value: object) -> object:
    if not isinstance(value, dict):
        return value
    path = f"spreads.{tenant}"
    _known(path, value, ("partitions", "slots"))
    if "partitions" not in value:
        raise InvalidValue(f"{path}.partitions", "nothing", "a whole number of partitions, at least 1")
    return Spread(value["partitions"], value.get("slots"))


def _encoded(layout: Layout) -> dict[str, object]:
    found: dict[str, object] = {
        "partitions": layout.partitions,
        "default_spread": layout.default_spread,
        "slots": layout.slots,
        "reserved": layout.reserved,
        "spreads": {tenant: _encoded_spread(k) for tenant, k in layout.spreads.items()},
        "pins": dict(layout.pins),
        "states": {str(each): state for each, state in layout.states.items()},
    }
    since = layout.effective_from
    return found if since == FIRST else {"effective_from": since, **found}


def _encoded_spread(k: int | Spread) -> object:
    return {"partitions": k.partitions, "slots": k.slots} if isinstance(k, Spread) else k


def _table(path: str, value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise InvalidValue(path, value, "a table")


def _known(path: str, parts: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in parts:
        if key not in known:
            raise UnknownKey(path, key, known)
