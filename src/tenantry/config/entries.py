"""From the tenants that a registry lists, in whichever format, to tenant documents: one way for all formats.

An :class:`Entry` carries beside each value where it stood, since a CSV file's owner looks for a line and a
TOML file's for a path.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tenantry.config import rules
from tenantry.config.documents import DOCUMENT_KEYS, read_document
from tenantry.config.model import TenantDocument
from tenantry.config.tiers import Tier
from tenantry.config.validation import Problems, Rule, Table, refused
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId, TierName, folded

Aliases = Mapping[str, str]
"""What another registry calls a tier, in any case, to the tier's name: ``{"tier-1": "critical"}``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tenant as it was listed: unchecked values, and where each stood."""

    tenant: object
    tenant_at: str
    tier: object
    tier_at: str
    body: Mapping[str, object] = field(default_factory=dict)


def documents_of(
    entries: Iterable[Entry], tiers: Iterable[Tier], problems: Problems
) -> tuple[TenantDocument, ...]:
    """The entries' documents in the order of their ids. Faults go to ``problems``. O(n log n)."""
    tier_rule = rules.one_of(tuple(tier.name for tier in tiers))
    found = [
        document
        for entry in distinct(entries, problems)
        if (document := _document(entry, tier_rule, problems)) is not None
    ]
    return tuple(sorted(found, key=lambda document: document.tenant))


def distinct(entries: Iterable[Entry], problems: Problems) -> Iterator[Entry]:
    """The entries less those whose id was there before, in any case; each of those is a fault naming both."""
    first: dict[str, Entry] = {}
    for entry in entries:
        if not isinstance(entry.tenant, str):
            yield entry
            continue
        earlier = first.setdefault(folded(TenantId(entry.tenant)), entry)
        if earlier is entry:
            yield entry
        else:
            problems.note(_taken(entry, earlier))


def resolved(text: object, aliases: Aliases) -> object:
    """The tier that another registry's word stands for; the word itself where no alias is for it."""
    return aliases.get(text.strip().casefold(), text.strip()) if isinstance(text, str) else text


def checked_aliases(aliases: Aliases, tiers: Iterable[Tier], problems: Problems) -> Aliases:
    """The aliases with their words case-folded. An alias for no tier is a fault."""
    known = rules.one_of(tuple(tier.name for tier in tiers))
    return {
        word.strip().casefold(): problems.attempt(known, f"aliases[{word!r}]", name, name)
        for word, name in aliases.items()
    }


def _document(entry: Entry, tier_rule: Rule[str], problems: Problems) -> TenantDocument | None:
    tenant = problems.attempt(rules.tenant, entry.tenant_at, entry.tenant, None)
    tier = problems.attempt(tier_rule, entry.tier_at, entry.tier, "")
    body = Table(entry.tenant_at, dict(entry.body), DOCUMENT_KEYS, problems)
    document = read_document(tenant or TenantId(""), TierName(tier), body)
    return document if tenant else None


def _taken(entry: Entry, earlier: Entry) -> InvalidValue:
    hint = f"{earlier.tenant!r} is at {earlier.tenant_at} already."
    return refused(entry.tenant_at, entry.tenant, "each tenant once, ids differing by more than case", hint)
