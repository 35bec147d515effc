"""Valid tiers, documents and registries, drawn over the whole of what the rules accept."""

import base64
from types import MappingProxyType

from hypothesis import strategies as st

from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import LONGEST_DEDUP, Shedding, Tier
from tenantry.kernel.tenant import TenantId, TierName, Weight

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True)
secrets = st.binary(min_size=24, max_size=64).map(lambda drawn: "whsec_" + base64.b64encode(drawn).decode())
urls = st.from_regex(r"https?://[a-z][a-z0-9]{0,19}(:[1-9][0-9]{0,3})?(/[a-z0-9?=]{0,9})?", fullmatch=True)
optional_urls = st.none() | urls
other_targets = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60
)
targets = urls | other_targets.filter(lambda text: not text.lower().startswith(("http:", "https:")))
rates = st.none() | st.floats(0.000_01, 1_000_000)

tiers = st.builds(
    Tier,
    name=names.map(TierName),
    weight=st.floats(0.000_001, 1_000_000).map(Weight),
    cap=st.floats(0, 1, exclude_min=True),
    bound=st.none() | st.integers(1, 1_000_000_000),
    submit_rate=rates,
    dispatch_rate=rates,
    shedding=st.sampled_from(Shedding),
    pool=names,
    replays=st.none() | st.integers(1, 1_000),
    replayed_a_day=st.none() | st.integers(1, 1_000_000_000_000),
    dedup_keys=st.none() | st.integers(1, 1_000_000_000_000),
    dedup_for=st.floats(0, LONGEST_DEDUP, exclude_min=True),
)


@st.composite
def settings(draw: st.DrawFn, url: st.SearchStrategy[str | None] = optional_urls) -> TargetSettings:
    base = draw(st.floats(0.001, 604_800))
    return TargetSettings(
        url=draw(url),
        timeout_for=draw(st.floats(0.001, 900)),
        max_attempts=draw(st.integers(1, 100)),
        backoff_base=base,
        backoff_cap=draw(st.floats(base, 604_800)),
        limit=draw(st.none() | st.integers(1, 1_000_000)),
        secret=draw(st.none() | secrets),
    )


def documents(
    tenant: st.SearchStrategy[str] = names, tier: st.SearchStrategy[str] = names
) -> st.SearchStrategy[TenantDocument]:
    return st.builds(
        TenantDocument,
        tenant=tenant.map(TenantId),
        tier=tier.map(TierName),
        defaults=settings(url=st.none()),
        targets=st.dictionaries(targets, settings(), max_size=3).map(MappingProxyType),
    )


@st.composite
def registries(draw: st.DrawFn) -> Registry:
    some_tiers = draw(st.lists(tiers, min_size=1, max_size=4, unique_by=lambda tier: tier.name.casefold()))
    tier_names = st.sampled_from([tier.name for tier in some_tiers])
    some = draw(st.lists(documents(tier=tier_names), max_size=4, unique_by=lambda one: one.tenant.casefold()))
    return Registry(tuple(some_tiers), tuple(some), draw(st.floats(0, 1)))
