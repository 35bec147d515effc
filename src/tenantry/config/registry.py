"""The operator's registry: tiers, tenants and the floor, read from text in one of four formats. Pure.

Authority: weights come from tiers and tiers from here, never from a request. TOML and JSON say everything;
CSV and Backstage say who is in which tier, and take the tiers that the caller passes.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from tenantry.config import rules
from tenantry.config.backstage import BackstagePlaces, read_backstage
from tenantry.config.csv_registry import CsvColumns, read_csv
from tenantry.config.documents import DOCUMENT_KEYS, TIER_KEYS, encode_document, encode_tier, read_tier
from tenantry.config.entries import Entry, checked_aliases, documents_of
from tenantry.config.model import TenantDocument
from tenantry.config.syntax import decoded, parse_json, parse_toml
from tenantry.config.tiers import DEFAULT_TIERS, Tier
from tenantry.config.validation import Described, Problems, RegistryErrors, Rule, Table, at, refused, table
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TierName

Format = Literal["toml", "json", "csv", "backstage"]
FORMATS: tuple[str, ...] = get_args(Format)

DEFAULT_FLOOR = 0.25
"""φ of law F1: nobody gets less than this part of an equal share of the pool."""

FLOOR = rules.number(0, 1)
_REGISTRY_KEYS = ("floor", "tiers", "tenants")
_TENANT_KEYS = ("tier", *DOCUMENT_KEYS)


@dataclass(frozen=True, slots=True)
class Registry:
    """Tiers in the operator's order, tenants in the order of their ids, and the pool's floor in [0, 1].

    Making one checks that its parts fit each other: raises :class:`InvalidValue` for a tenant in no tier of
    it, for two tenants or tiers alike when case is folded, and for a floor out of range. The parts
    themselves are trusted. Immutable; safe to share between threads.
    """

    tiers: tuple[Tier, ...] = DEFAULT_TIERS
    tenants: tuple[TenantDocument, ...] = ()
    floor: float = DEFAULT_FLOOR

    def __post_init__(self) -> None:
        FLOOR("floor", self.floor)
        _all_differ("tiers", _names(self.tiers))
        _all_differ("tenants", tuple(document.tenant for document in self.tenants))
        known = rules.one_of(_names(self.tiers))
        for document in self.tenants:
            known(at(at("tenants", document.tenant), "tier"), document.tier)
        object.__setattr__(self, "tenants", tuple(sorted(self.tenants, key=lambda document: document.tenant)))


def parse_registry(
    text: str | bytes,
    *,
    format: Format,
    tiers: tuple[Tier, ...] = DEFAULT_TIERS,
    floor: float = DEFAULT_FLOOR,
    csv: CsvColumns = CsvColumns(),  # noqa: B008 - frozen
    backstage: BackstagePlaces = BackstagePlaces(),  # noqa: B008 - frozen
) -> Registry:
    """The registry that ``text`` holds. Pure; O(n log n) in its tenants.

    ``tiers`` are those that exist before the text is read: the text may change their figures and add
    others. ``floor`` holds where the text names none. ``csv`` and ``backstage`` say where those formats
    keep what is read. Bytes are UTF-8.

    Raises :class:`~tenantry.config.validation.RegistryErrors` with every fault found, each naming path or
    line, value, what is accepted and the nearest key or tier; :class:`MissingExtra` for a YAML catalogue
    without the extra ``registry``.
    """
    try:
        rules.one_of(FORMATS)("format", format)
        before, plain = Registry(tiers, (), floor), decoded(text, may_have_bom=format == "csv")
        if format == "csv":
            return _from_csv(plain, before, csv)
        if format == "backstage":
            return _from_backstage(plain, before, backstage)
        return _from_whole(parse_toml(plain) if format == "toml" else parse_json(plain), before)
    except InvalidValue as error:  # what makes the rest unreadable stands alone
        raise RegistryErrors((error,)) from None


def encode_registry(registry: Registry) -> dict[str, object]:
    """The registry as a JSON object, complete and in a fixed order. Pure. **Holds the signing secrets.**"""
    return {
        "floor": registry.floor,
        "tiers": {tier.name: encode_tier(tier) for tier in registry.tiers},
        "tenants": {
            document.tenant: {"tier": document.tier, **encode_document(document)}
            for document in registry.tenants
        },
    }


def registry_to_json(registry: Registry) -> str:
    """One text a registry: equal registries have equal text. Pure. **Holds the signing secrets.**"""
    return json.dumps(encode_registry(registry), separators=(",", ":"), ensure_ascii=False)


def registry_from_json(text: str | bytes) -> Registry:
    """The registry that :func:`registry_to_json` wrote; its tiers are exactly those of the text. Pure.

    Raises as :func:`parse_registry`.
    """
    return parse_registry(text, format="json", tiers=())


def _from_whole(obj: object, before: Registry) -> Registry:
    if obj == {}:
        raise InvalidValue("document", Described("an empty document"), "a registry of tiers or tenants")
    problems = Problems()
    top = Table("", obj, _REGISTRY_KEYS, problems)
    floor = top.take("floor", FLOOR, before.floor)
    tiers = _tiers(top.raw("tiers", {}), before.tiers, problems)
    tenants = documents_of(_entries(top.raw("tenants", {}), problems), tiers, problems)
    problems.raise_any()
    return Registry(tiers, tenants, floor)


def _from_csv(text: str, before: Registry, columns: CsvColumns) -> Registry:
    problems = Problems()
    aliases = checked_aliases(columns.aliases, before.tiers, problems)
    problems.raise_any()
    return _listed(read_csv(text, replace(columns, aliases=aliases), problems), before, problems)


def _from_backstage(text: str, before: Registry, places: BackstagePlaces) -> Registry:
    problems = Problems()
    aliases = checked_aliases(places.aliases, before.tiers, problems)
    known = rules.optional(rules.one_of(_names(before.tiers)))
    problems.attempt(known, "tier_if_absent", places.tier_if_absent, None)
    problems.raise_any()
    return _listed(read_backstage(text, replace(places, aliases=aliases), problems), before, problems)


def _listed(entries: list[Entry], before: Registry, problems: Problems) -> Registry:
    tenants = documents_of(entries, before.tiers, problems)
    problems.raise_any()
    if not tenants:  # a broken export: applying it would remove everybody
        found = Described("a registry without a tenant")
        raise InvalidValue(
            "document", found, "at least one", "Look at the columns, kinds and filters of the export."
        )
    return replace(before, tenants=tenants)


def _tiers(value: object, old: tuple[Tier, ...], problems: Problems) -> tuple[Tier, ...]:
    """``old``, with the figures that ``value`` changes, and then the tiers that it adds."""
    found = {tier.name: tier for tier in old}
    spelled = {name.casefold(): name for name in found}
    for key, obj in table("tiers", value, problems).items():
        path = at("tiers", key)
        name = problems.attempt(_tier_name(spelled), path, key, None)
        tier = read_tier(Table(path, obj, TIER_KEYS, problems), TierName(key), found.get(TierName(key)))
        if name is not None:  # one that is refused is not among those that tenants are told of
            found[name] = tier
    return tuple(found.values())


def _tier_name(spelled: dict[str, TierName]) -> Rule[TierName]:
    """A tier's name that is not, in other letters, one of ``spelled``; it is added to them."""

    def rule(path: str, value: object) -> TierName:
        name = TierName(rules.name(path, value))
        other = spelled.setdefault(name.casefold(), name)
        if other == name:
            return name
        raise refused(path, name, "tiers whose names differ by more than case", f"{other!r} exists already.")

    return rule


def _entries(value: object, problems: Problems) -> Iterator[Entry]:
    for tenant, obj in table("tenants", value, problems).items():
        path = at("tenants", tenant)
        if isinstance(obj, str):
            yield Entry(tenant, path, obj, path)
        elif isinstance(obj, dict):
            keys = Table(path, obj, _TENANT_KEYS, problems)
            body = {key: obj[key] for key in DOCUMENT_KEYS if key in obj}
            yield Entry(tenant, path, keys.raw("tier"), at(path, "tier"), body)
        else:
            problems.note(refused(path, obj, "the name of a tier, or a table with the key tier"))


def _names(tiers: tuple[Tier, ...]) -> tuple[str, ...]:
    return tuple(tier.name for tier in tiers)


def _all_differ(path: str, names: tuple[str, ...]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.get(name.casefold())) is not None:
            accepted, hint = "names that differ by more than case", f"{other!r} exists already."
            raise refused(at(path, name), name, accepted, hint)
        seen[name.casefold()] = name
