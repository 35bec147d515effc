"""Tenants from a Backstage catalogue: the entities that its API returns as JSON, or its files as YAML.

Source: the descriptor format of Backstage's catalogue: kind, ``metadata.name``, ``metadata.namespace``
("default" where absent), ``metadata.labels`` and ``annotations``, ``spec``. Entity kinds compare without
regard to case, as entity references do. Pure; PyYAML is imported only where the text is YAML.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType

from tenantry.config.entries import Aliases, Entry, resolved
from tenantry.config.syntax import parse_json
from tenantry.config.validation import MISSING, Problems, at, refused
from tenantry.kernel.errors import InvalidValue, MissingExtra

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class BackstagePlaces:
    """Which entities are tenants, and where their tier stands.

    ``kinds``: entities of other kinds are skipped. ``tier_from``: places tried in order, each
    ``label:KEY``, ``annotation:KEY`` or ``spec.KEY`` (dots go deeper). ``tier_if_absent``: the tier of an
    entity that names none; None makes that an error, since a guessed tier is a guessed weight. ``aliases``
    turn the catalogue's words, in any case, into tiers' names.

    A tenant's id is the entity's name, or ``NAMESPACE.NAME`` outside the namespace "default".
    """

    kinds: tuple[str, ...] = ("Component",)
    tier_from: tuple[str, ...] = ("label:tenantry.io/tier", "annotation:tenantry.io/tier", "spec.tier")
    tier_if_absent: str | None = None
    aliases: Aliases = field(default_factory=lambda: MappingProxyType({}))


_Steps = tuple[str, ...]


def read_backstage(text: str, places: BackstagePlaces, problems: Problems) -> list[Entry]:
    """The entities as entries; the aliases' words are case-folded already. Faults go to ``problems``.

    Raises :class:`MissingExtra` for YAML without PyYAML.
    """
    try:
        ways = _ways(places.tier_from)
        entities = _entities(text)
    except InvalidValue as error:
        problems.note(error)
        return []
    kinds = frozenset(kind.casefold() for kind in places.kinds)
    return [_entry(path, entity, places, ways) for path, entity in _of_kinds(entities, kinds, problems)]


def _entities(text: str) -> list[object]:
    if text.lstrip()[:1] in {"[", "{"}:
        return _from_json(parse_json(text))
    return [entity for entity in _yaml_documents(text) if entity is not None]  # "---" twice is an empty one


def _from_json(value: object) -> list[object]:
    found = value.get("items", value) if isinstance(value, dict) else value  # as /entities/by-query answers
    return found if isinstance(found, list) else [found]


def _yaml_documents(text: str) -> list[object]:
    try:
        from tenantry.config.yaml_text import parse_yaml_documents
    except ImportError:
        raise MissingExtra("registry", "a Backstage catalogue in YAML") from None
    return parse_yaml_documents(text)


def _of_kinds(
    entities: list[object], kinds: frozenset[str], problems: Problems
) -> Iterator[tuple[str, Mapping[str, object]]]:
    for index, entity in enumerate(entities):
        path = f"entities[{index}]"
        kind = _inside(entity, ("kind",))
        if not isinstance(entity, dict) or not isinstance(kind, str):
            problems.note(refused(path, entity, "a catalogue entity: a table with kind, metadata and spec"))
        elif kind.casefold() in kinds:
            yield path, entity


def _entry(
    path: str, entity: Mapping[str, object], places: BackstagePlaces, ways: tuple[_Steps, ...]
) -> Entry:
    tenant_steps, tenant, reference = _tenant(entity)
    tier_steps, word = _tier(entity, ways, places.tier_if_absent)
    return Entry(
        tenant=tenant,
        tenant_at=_path(path, tenant_steps),
        tier=resolved(word, places.aliases),
        tier_at=_path(path + reference, tier_steps),
    )


def _tenant(entity: Mapping[str, object]) -> tuple[_Steps, object, str]:
    """Where the tenant's id stands, the id, and the entity's reference for people, in brackets."""
    name = _inside(entity, ("metadata", "name"))
    namespace = _inside(entity, ("metadata", "namespace"))
    if namespace is not None and not isinstance(namespace, str):
        return ("metadata", "namespace"), namespace, ""
    if not isinstance(name, str):
        return ("metadata", "name"), MISSING if name is None else name, ""
    reference = f" ({str(entity['kind']).lower()}:{namespace or DEFAULT_NAMESPACE}/{name})"[:160]
    tenant = name if namespace in {None, DEFAULT_NAMESPACE} else f"{namespace}.{name}"
    return ("metadata", "name"), tenant, reference if reference.isprintable() else ""


def _tier(
    entity: Mapping[str, object], ways: tuple[_Steps, ...], instead: str | None
) -> tuple[_Steps, object]:
    for steps in ways:
        found = _inside(entity, steps)
        if found is not None and found != "":
            return steps, found
    return ways[0], MISSING if instead is None else instead


def _inside(value: object, steps: _Steps) -> object:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _ways(places: tuple[str, ...]) -> tuple[_Steps, ...]:
    if not places:
        raise refused("tier_from", places, "at least one place")
    return tuple(_steps(place) for place in places)


def _steps(place: object) -> _Steps:
    kind, separator, key = place.partition(":") if isinstance(place, str) else ("", "", "")
    if separator and key and kind in {"label", "annotation"}:
        return ("metadata", f"{kind}s", key)
    if isinstance(place, str) and re.fullmatch(r"spec(\.[^.]+)+", place):
        return tuple(place.split("."))
    raise refused("tier_from", place, "label:KEY, annotation:KEY or spec.KEY")


def _path(path: str, steps: _Steps) -> str:
    return reduce(at, steps, path)
