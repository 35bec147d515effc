"""Tiers and tenant documents from plain objects and back: what TOML, JSON and PostgreSQL's jsonb all hold.

``decode(encode(x)) == x`` for every valid record. What is written is complete, nulls included: a stored
document keeps its meaning when a default of the product changes, and key order is fixed, so equal documents
have equal bytes. What is read may be partial:

- a tier that exists already keeps what is not named; a new tier must name its ``weight``;
- a target keeps what its tenant's ``defaults`` say, and those what the product's do;
- where a number may be absent, null and the text ``"none"`` both mean that there is none.

Durations are plain seconds, rates are a second, parts are in (0, 1].
"""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType

from tenantry.config import rules
from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.tiers import LONGEST_DEDUP, Shedding, Tier
from tenantry.config.validation import Problems, Table, at, refused, table
from tenantry.kernel.tenant import TenantId, TierName, Weight

TIER_KEYS = tuple(field.name for field in fields(Tier) if field.name != "name")
TARGET_KEYS = tuple(field.name for field in fields(TargetSettings))
DEFAULTS_KEYS = tuple(key for key in TARGET_KEYS if key != "url")  # one URL cannot be every target's
DOCUMENT_KEYS = ("defaults", "targets")

# Bounds narrower than "> 0" keep the arithmetic behind them finite: 1 / rate is a Retry-After, and
# service / weight a virtual time.
WEIGHT = rules.number(0.000_001, 1_000_000)
_CAP = rules.number(0, 1, above=True)
_BOUND = rules.optional(rules.whole(1, 1_000_000_000))
_RATE = rules.optional(rules.number(0.000_01, 1_000_000))  # from about one a day
_SHEDDING = rules.choice(Shedding)
_REPLAYS = rules.optional(rules.whole(1, 1_000))
_MESSAGES = rules.optional(rules.whole(1, 1_000_000_000_000))
_DEDUP_FOR = rules.number(0, LONGEST_DEDUP, above=True, of=" of seconds")
_TIMEOUT = rules.number(0.001, 900, of=" of seconds")
_ATTEMPTS = rules.whole(1, 100)
_WAIT = rules.number(0.001, 604_800, of=" of seconds")
_LIMIT = rules.optional(rules.whole(1, 1_000_000))
_ADAPTIVE = rules.optional(rules.boolean)
_URL = rules.optional(rules.url)
_SECRET = rules.optional(rules.secret)


def encode_tier(tier: Tier) -> dict[str, object]:
    """The tier as a JSON object, less its name. Pure."""
    return {key: getattr(tier, key) for key in TIER_KEYS} | {"shedding": tier.shedding.value}


def decode_tier(name: str, obj: object) -> Tier:
    """The tier ``name`` from what :func:`encode_tier` gave or a person wrote. Pure.

    Raises :class:`~tenantry.config.validation.RegistryErrors`, its paths starting with ``tiers.``.
    """
    problems = Problems()
    path = at("tiers", name)
    checked = TierName(problems.attempt(rules.name, path, name, name))
    tier = read_tier(Table(path, obj, TIER_KEYS, problems), checked, None)
    problems.raise_any()
    return tier


def encode_document(document: TenantDocument) -> dict[str, object]:
    """The document as a JSON object, less tenant and tier. Pure. **Holds the signing secrets**: store it
    where they may be, and show :func:`repr` of the document instead.
    """
    targets = sorted(document.targets.items())
    return {
        "defaults": {key: getattr(document.defaults, key) for key in DEFAULTS_KEYS},
        "targets": {name: {key: getattr(settings, key) for key in TARGET_KEYS} for name, settings in targets},
    }


def decode_document(tenant: TenantId, tier: TierName, obj: object) -> TenantDocument:
    """The tenant's document from what :func:`encode_document` gave or a person wrote. Pure.

    Whether ``tier`` exists is the registry's to know. Raises
    :class:`~tenantry.config.validation.RegistryErrors`, its paths starting with ``tenants.``.
    """
    problems = Problems()
    body = Table(at("tenants", tenant), obj, DOCUMENT_KEYS, problems)
    document = read_document(tenant, tier, body)
    problems.raise_any()
    return document


def read_tier(keys: Table, name: TierName, base: Tier | None) -> Tier:
    """A tier's table, over ``base`` if a tier of that name exists already. Faults go to its problems."""
    old = base or Tier(name)
    weight = keys.take if base else keys.need
    return Tier(
        name=name,
        weight=Weight(weight("weight", WEIGHT, float(old.weight))),
        cap=keys.take("cap", _CAP, old.cap),
        bound=keys.take("bound", _BOUND, old.bound),
        submit_rate=keys.take("submit_rate", _RATE, old.submit_rate),
        dispatch_rate=keys.take("dispatch_rate", _RATE, old.dispatch_rate),
        shedding=keys.take("shedding", _SHEDDING, old.shedding),
        pool=keys.take("pool", rules.name, old.pool),
        replays=keys.take("replays", _REPLAYS, old.replays),
        replayed_a_day=keys.take("replayed_a_day", _MESSAGES, old.replayed_a_day),
        dedup_keys=keys.take("dedup_keys", _MESSAGES, old.dedup_keys),
        dedup_for=keys.take("dedup_for", _DEDUP_FOR, old.dedup_for),
    )


def read_document(tenant: TenantId, tier: TierName, body: Table) -> TenantDocument:
    """A tenant's table, whose keys may be ``defaults`` and ``targets``. Faults go to the table's problems."""
    problems = body.problems
    given = Table(at(body.path, "defaults"), body.raw("defaults", {}), DEFAULTS_KEYS, problems)
    defaults = _read_settings(given, TargetSettings())
    targets = _read_targets(at(body.path, "targets"), body.raw("targets", {}), defaults, problems)
    return TenantDocument(tenant, tier, defaults, targets)


def _read_targets(
    path: str, value: object, defaults: TargetSettings, problems: Problems
) -> Mapping[str, TargetSettings]:
    found: dict[str, TargetSettings] = {}
    for key, obj in table(path, value, problems).items():
        name = problems.attempt(rules.target, at(path, key), key, key)
        found[name] = _read_settings(Table(at(path, key), obj, TARGET_KEYS, problems), defaults)
    return MappingProxyType(found)


def _read_settings(keys: Table, old: TargetSettings) -> TargetSettings:
    settings = TargetSettings(
        url=keys.take("url", _URL, old.url),
        timeout_for=keys.take("timeout_for", _TIMEOUT, old.timeout_for),
        max_attempts=keys.take("max_attempts", _ATTEMPTS, old.max_attempts),
        backoff_base=keys.take("backoff_base", _WAIT, old.backoff_base),
        backoff_cap=keys.take("backoff_cap", _WAIT, old.backoff_cap),
        limit=keys.take("limit", _LIMIT, old.limit),
        adaptive=keys.take("adaptive", _ADAPTIVE, old.adaptive),
        secret=keys.take("secret", _SECRET, old.secret),
    )
    inherited = (settings.backoff_base, settings.backoff_cap) == (old.backoff_base, old.backoff_cap)
    if settings.backoff_cap < settings.backoff_base and not inherited:  # an inherited fault is noted already
        accepted = f"at least backoff_base, which is {settings.backoff_base:g}"
        keys.problems.note(refused(at(keys.path, "backoff_cap"), settings.backoff_cap, accepted))
    return settings
