"""What a new registry would change is shown before it is applied."""

from dataclasses import replace
from types import MappingProxyType

from tenantry.cli.registry_diff import changes, shortened
from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import DEFAULT_TIERS
from tenantry.kernel.tenant import TenantId, TierName, Weight


def document(name: str, tier: str = "free", **given: object) -> TenantDocument:
    return TenantDocument(TenantId(name), TierName(tier), **given)  # type: ignore[arg-type]


def test_equal_registries_differ_in_nothing() -> None:
    registry = Registry(tenants=(document("a"),))
    assert changes(registry, registry) == ()


def test_tenants_and_tiers_are_added_removed_and_changed() -> None:
    gold = replace(DEFAULT_TIERS[0], name=TierName("gold"), weight=Weight(3.0))
    old = Registry(tenants=(document("gone"), document("moves")))
    heavier = replace(DEFAULT_TIERS[0], weight=Weight(1.5))
    new = Registry((heavier, *DEFAULT_TIERS[1:], gold), (document("moves", "gold"), document("new")), 0.5)
    assert [str(each) for each in changes(old, new)] == [
        "~ floor of every pool: 0.25 -> 0.5",
        "~ tier free: weight 1.0 -> 1.5",
        "+ tier gold: weight 3, cap 10%, bound 100",
        "~ tenant moves: tier free -> gold",
        "+ tenant new: tier free",
        "- tenant gone: its API keys are deleted; work it has in the queue still ends",
    ]


def test_a_changed_secret_names_the_target_and_shows_nothing_of_it() -> None:
    def with_secret(secret: str) -> Registry:
        targets = MappingProxyType({"orders": TargetSettings(url="https://x.test/", secret=secret)})
        return Registry(tenants=(document("a", targets=targets),))

    [change] = changes(with_secret("whsec_b2xk"), with_secret("whsec_bmV3"))
    assert str(change) == "~ tenant a: targets orders"


def test_long_lists_are_cut_and_counted() -> None:
    new = Registry(tenants=tuple(document(f"t{n:02}") for n in range(25)))
    lines = shortened(changes(Registry(), new))
    assert len(lines) == 11
    assert lines[-1] == "+ and 15 more tenants"
