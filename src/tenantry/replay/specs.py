"""A replay's spec from plain objects and back: what JSON, TOML and PostgreSQL's jsonb all hold. Pure.

::

    target = "https://example.com/hook"        # instead of where each message failed
    on_unknown = "send"                        # or "hold"
    sample = 0.01
    [source]
    kind = "rabbitmq"
    place = "orders.dlq"
    [filters]
    error_classes = ["timeout", "http_503"]
    failed_from = 2026-11-30T08:00:00Z         # or the text of it, or seconds since 1970
    headers = { region = "eu" }
    json = [{ path = "$.order.kind", equals = "gift" }]
    [[edits]]
    kind = "set"
    at = "$.order.version"
    value = 2
    [budget]
    messages = 10_000

Where any JSON value may stand (``equals``, and ``value`` of an edit that sets), its text may be given instead
(``equals_json``, ``value_json``): that keeps each digit of a number.

``decode_spec(tenant, encode_spec(spec)) == spec`` for every valid spec. Every fault of a document is told at
once, each with its path and, for a key that nobody reads, the nearest that is read. The tenant is never read
from a document: it is whose credential brought it (law I1).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from types import MappingProxyType
from typing import Final, TypeVar

from tenantry.config import rules, syntax
from tenantry.config.validation import MISSING, Described, Problems, Table, at, refused
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp, as_timestamp
from tenantry.kernel.tenant import TenantId, identifier
from tenantry.lanes.model import Target
from tenantry.replay import connections
from tenantry.replay.edits import HEADER, compiled
from tenantry.replay.filters import check_ranges, compiled_value
from tenantry.replay.json_path import json_path
from tenantry.replay.model import (
    Budget,
    Edit,
    EditKind,
    Filters,
    OnUnknown,
    ReplaySpec,
    SourceAddress,
)

T = TypeVar("T")

KINDS: Final = ("dead_letters", *connections.KINDS)
"""The kinds of source that the product has."""

MOST_EDITS: Final = 100
MOST_CONDITIONS: Final = 100
MOST_WIDE: Final = 10
"""Paths with a wildcard, a slice or ``..``, of filters and edits: each walks through a whole payload."""
LONGEST_NOTE: Final = 500
LONGEST_SPEC: Final = 64 * 1024
"""Bytes of a spec as it is kept: whoever leads a replay reads its spec again with each renewal of its lease,
beside those of other tenants."""

SPEC_KEYS = tuple(field.name for field in fields(ReplaySpec) if field.name != "tenant")
_SOURCE_KEYS = tuple(field.name for field in fields(SourceAddress))
_FILTER_KEYS = tuple(field.name for field in fields(Filters))
_EDIT_KEYS = ("kind", "at", "value", "value_json")
_EDIT_HINT: Final = "The new name of a rename, and the new place of a move, is given as value."
_CONDITION_KEYS = ("path", "equals", "equals_json")
_BUDGET_KEYS = tuple(field.name for field in fields(Budget))

_COUNT = rules.optional(rules.whole(1, 10**12))
_ATTEMPTS = rules.optional(rules.whole(0, 1_000_000))
_RUNNING = rules.optional(rules.number(1, 366 * 86_400, of=" of seconds"))
_SHARE = rules.optional(rules.number(0, 1, above=True))
_SURROGATE = re.compile("[\ud800-\udfff]")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,255}", re.ASCII)


def spec_from_toml(tenant: TenantId, text: str | bytes) -> ReplaySpec:
    """The spec in a TOML document. Raises as :func:`decode_spec`, and for what is no TOML with its line."""
    return decode_spec(tenant, syntax.parse_toml(syntax.decoded(text, wanted="a replay")))


def spec_from_json(tenant: TenantId, text: str | bytes) -> ReplaySpec:
    """The spec in a JSON document. Raises as :func:`decode_spec`, and for what is no JSON with its place."""
    return decode_spec(tenant, syntax.parse_json(syntax.decoded(text, wanted="a replay")))


def decode_spec(tenant: TenantId, obj: object) -> ReplaySpec:
    """The spec of ``tenant`` from what :func:`encode_spec` gave or a person wrote. Pure.

    Raises :class:`~tenantry.config.validation.RegistryErrors` with every fault of it."""
    problems = Problems()
    keys = Table("", obj, SPEC_KEYS, problems)
    spec = ReplaySpec(
        tenant=tenant,
        source=_source(Table("source", keys.raw("source", {}), _SOURCE_KEYS, problems)),
        target=keys.take("target", _optional_target, None),
        filters=_filters(Table("filters", keys.raw("filters", {}), _FILTER_KEYS, problems)),
        edits=_list(keys, "edits", _edit, most=MOST_EDITS),
        on_unknown=keys.take("on_unknown", rules.choice(OnUnknown), OnUnknown.SEND),
        again=keys.take("again", rules.boolean, False),
        park_after=keys.take("park_after", rules.whole(1, 100), 3),
        class_after=keys.take("class_after", rules.whole(1, 1_000_000), 20),
        budget=_budget(Table("budget", keys.raw("budget", {}), _BUDGET_KEYS, problems)),
        sample=keys.take("sample", _SHARE, None),
        dry_run=keys.take("dry_run", rules.boolean, False),
        note=keys.take("note", _note, ""),
    )
    problems.raise_any()
    return spec


def check_spec(spec: ReplaySpec) -> None:
    """Refuses a spec made by hand that :func:`decode_spec` would refuse, and one that is too long to be kept.
    Raises as that does."""
    plain = encode_spec(spec)
    decode_spec(spec.tenant, plain)
    _refuse_wide(spec)
    size = len(json.dumps(plain, ensure_ascii=False).encode())
    if size > LONGEST_SPEC:
        told, most = Described(f"a spec of {size:,} bytes"), f"at most {LONGEST_SPEC:,}"
        raise InvalidValue("document", told, most)


def wide_paths(spec: ReplaySpec) -> list[str]:
    """The paths of filters and edits that may mean many places: each walks through a whole payload. Pure."""
    paths = [path for path, _ in spec.filters.json]
    paths += [edit.at for edit in spec.edits if not edit.at.startswith(HEADER)]
    return [each for each in paths if json_path(each, path="document").singular is None]


def _refuse_wide(spec: ReplaySpec) -> None:
    wide = wide_paths(spec)
    if len(wide) > MOST_WIDE:
        told = Described(f"a spec with {len(wide)} paths that mean many places")
        raise InvalidValue("document", told, f"at most {MOST_WIDE} paths with *, a slice or ..")


def encode_spec(spec: ReplaySpec) -> dict[str, object]:
    """The spec as a JSON object, less its tenant; complete, so that it keeps its meaning when a default of
    the product changes. Pure."""
    plain = {key: getattr(spec, key) for key in SPEC_KEYS}
    source = {key: getattr(spec.source, key) for key in _SOURCE_KEYS}
    return plain | {
        "source": source | {"options": dict(spec.source.options)},
        "filters": _encoded_filters(spec.filters),
        "edits": [_encoded_edit(edit) for edit in spec.edits],
        "on_unknown": spec.on_unknown.value,
        "budget": {key: getattr(spec.budget, key) for key in _BUDGET_KEYS},
    }


def _encoded_filters(filters: Filters) -> dict[str, object]:
    plain = {key: getattr(filters, key) for key in _FILTER_KEYS}
    return plain | {
        "error_classes": sorted(filters.error_classes),
        "targets": sorted(filters.targets),
        "headers": dict(filters.headers),
        "json": [{"path": path, "equals_json": value} for path, value in filters.json],
    }


def _encoded_edit(edit: Edit) -> dict[str, object]:
    value = "value_json" if edit.kind is EditKind.SET else "value"
    return {"kind": edit.kind.value, "at": edit.at, value: edit.value}


# -- reading ------------------------------------------------------------------------------------------------


def _source(keys: Table) -> SourceAddress:
    none: Mapping[str, str] = MappingProxyType({})
    return SourceAddress(
        kind=keys.need("kind", rules.one_of(KINDS), KINDS[0]),
        place=keys.take("place", _place, ""),
        connection=keys.take("connection", rules.name, "default"),
        options=keys.take("options", _texts, none),
    )


def _filters(keys: Table) -> Filters:
    found = Filters(
        error_classes=frozenset(_list(keys, "error_classes", _identifier, most=MOST_CONDITIONS)),
        targets=frozenset(_list(keys, "targets", _target, most=MOST_CONDITIONS)),
        failed_from=keys.take("failed_from", _time, None),
        failed_before=keys.take("failed_before", _time, None),
        headers=keys.take("headers", _headers, MappingProxyType({})),
        json=_list(keys, "json", _json_condition, most=MOST_CONDITIONS),
        attempts_from=keys.take("attempts_from", _ATTEMPTS, None),
        attempts_to=keys.take("attempts_to", _ATTEMPTS, None),
    )
    return keys.problems.attempt(lambda path, _: _sound(found, path), keys.path, found, found)


def _sound(filters: Filters, path: str) -> Filters:
    check_ranges(filters, path=path)
    return filters


def _budget(keys: Table) -> Budget:
    return Budget(
        messages=keys.take("messages", _COUNT, None),
        failures=keys.take("failures", _COUNT, None),
        running_for=keys.take("running_for", _RUNNING, None),
        until=keys.take("until", _time, None),
    )


def _list(
    keys: Table, key: str, read: Callable[[str, object, Problems], T | None], *, most: int
) -> tuple[T, ...]:
    """A list's entries, each read for itself, so that every fault of it is told."""
    value, path = keys.raw(key, []), at(keys.path, key)
    if not isinstance(value, (list, tuple)) or len(value) > most:
        keys.problems.note(refused(path, value, f"a list of at most {most} entries"))
        return ()
    found = (read(f"{path}[{n}]", each, keys.problems) for n, each in enumerate(value))
    return tuple(each for each in found if each is not None)


def _edit(path: str, obj: object, problems: Problems) -> Edit | None:
    keys = Table(path, obj, _EDIT_KEYS, problems, hint=_EDIT_HINT)
    kind = keys.need("kind", rules.choice(EditKind), None)
    where = keys.need("at", _text, None)
    if kind is None or where is None:
        return None
    needed = kind is not EditKind.REMOVE
    value = _json_value(keys, "value") if kind is EditKind.SET else _plain_value(keys, needed=needed)
    edit = None if value is None else Edit(kind, where, value)
    return (
        None
        if edit is None
        else problems.attempt(lambda path, _: _checked_edit(path, edit), path, edit, None)
    )


def _json_condition(path: str, obj: object, problems: Problems) -> tuple[str, str] | None:
    keys = Table(path, obj, _CONDITION_KEYS, problems)
    where, value = keys.need("path", _text, None), _json_value(keys, "equals")
    if where is None or value is None:
        return None
    return problems.attempt(lambda path, _: _checked_condition(path, where, value), path, where, None)


def _json_value(keys: Table, key: str) -> str | None:
    """JSON text: given as it is, or made of the value that stands in the document."""
    given, text = keys.raw(key), f"{key}_json"
    if given is not MISSING and keys.raw(text) is not MISSING:
        keys.problems.note(refused(at(keys.path, text), keys.raw(text), f"{key} or {text}, not both"))
        return None
    if given is MISSING:
        return keys.need(key if keys.raw(text) is MISSING else text, _text, None)
    return keys.take(key, _as_json, None)


def _plain_value(keys: Table, *, needed: bool) -> str | None:
    return keys.need("value", _text, None) if needed else keys.take("value", _text, "")


# -- rules of one value -------------------------------------------------------------------------------------


def _checked_edit(path: str, edit: Edit) -> Edit:
    compiled(edit, path=path)
    return edit


def _checked_condition(path: str, where: str, value: str) -> tuple[str, str]:
    compiled_value(where, value, path=path)
    return where, value


def _as_json(path: str, value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise refused(
            path, value, "a value of JSON's: text, a finite number, true, false, null, list or table"
        ) from None


def _time(path: str, value: object) -> Timestamp | None:
    """A time with its zone, as TOML's or RFC 3339's text, or seconds since 1970; null for none."""
    if value is None:
        return None
    accepted = "a time with its zone, such as 2026-11-30T08:00:00Z, or seconds since 1970"
    try:
        found = datetime.fromisoformat(_text(path, value)) if isinstance(value, str) else value
        if isinstance(found, datetime):
            return as_timestamp(found)
    except (ValueError, OverflowError):
        raise refused(path, value, accepted) from None
    if isinstance(found, (int, float)) and not isinstance(found, bool) and 0 <= found < 253_402_300_800:
        return Timestamp(float(found))
    raise refused(path, value, accepted)


def _text(path: str, value: object) -> str:
    if isinstance(value, str) and "\x00" not in value and not _SURROGATE.search(value):
        return value
    raise refused(path, value, "text without NUL and without halves of surrogate pairs")


def _note(path: str, value: object) -> str:
    if len(text := _text(path, value)) > LONGEST_NOTE:
        raise refused(path, value, f"text of at most {LONGEST_NOTE} characters")
    return text


def _place(path: str, value: object) -> str:
    if len(text := _text(path, value)) > 1_024:
        raise refused(path, value, "text of at most 1,024 characters")
    return text


def _texts(path: str, value: object) -> Mapping[str, str]:
    """A flat table of text: an adapter's own options, which it checks itself."""
    found = {_text(path, key): _text(at(path, key), each) for key, each in _table(path, value).items()}
    return MappingProxyType(found)


def _headers(path: str, value: object) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for key, each in _table(path, value).items():
        if not _HEADER_NAME.fullmatch(key):
            raise refused(at(path, key), key, "a header's name")
        found[key.lower()] = _text(at(path, key), each)
    return MappingProxyType(found)


def _table(path: str, value: object) -> Mapping[str, object]:
    if (
        isinstance(value, dict)
        and all(isinstance(key, str) for key in value)
        and len(value) <= MOST_CONDITIONS
    ):
        return value
    raise refused(path, value, f"a table of at most {MOST_CONDITIONS} keys")


def _optional_target(path: str, value: object) -> Target | None:
    return None if value is None else Target(rules.target(path, value))


def _target(path: str, obj: object, problems: Problems) -> Target | None:
    return problems.attempt(_optional_target, path, obj, None)


def _identifier(path: str, obj: object, problems: Problems) -> str | None:
    return problems.attempt(_named, path, obj, None)


def _named(path: str, value: object) -> str:
    try:
        return identifier(value, path=path)
    except InvalidValue as error:
        raise refused(path, value, error.accepted) from None
