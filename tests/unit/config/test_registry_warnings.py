"""What is allowed in a registry and probably not meant."""

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import DEDICATED_POOL_HANDFUL, DEFAULT_TIERS, Tier
from tenantry.config.warnings import WarningCode, warnings
from tenantry.kernel.tenant import TenantId, TierName

VIP = Tier(TierName("vip"), pool="vip")
VIP_TOO = Tier(TierName("vip-too"), pool="vip")


def registry(*counts: tuple[Tier, int]) -> Registry:
    tenants = [
        TenantDocument(TenantId(f"{tier.name}-{n}"), tier.name)
        for tier, count in counts
        for n in range(count)
    ]
    return Registry((*DEFAULT_TIERS, *(tier for tier, _ in counts)), tuple(tenants))


def test_a_dedicated_pool_for_a_handful_is_fine() -> None:
    assert warnings(registry((VIP, DEDICATED_POOL_HANDFUL))) == ()
    assert warnings(registry((VIP, 1))) == ()


def test_a_dedicated_pool_for_more_is_warned_of_with_its_idle_cost() -> None:
    (doubt,) = warnings(registry((VIP, 6)), slots={"vip": 24, "shared": 100})
    assert (doubt.code, doubt.path, doubt.pool) == (
        WarningCode.DEDICATED_POOL_CROWDED,
        "tiers.vip.pool",
        "vip",
    )
    assert (doubt.tenants, doubt.idle_slots) == (6, 24)
    assert doubt.message == (
        "The dedicated pool 'vip' serves 6 tenants, more than a handful (5): its 24 slots (4 a tenant) are "
        "idle whenever these tenants are, and they contend with each other there all the same. In the pool "
        "'shared' others would use what they leave, and their weights would still hold."
    )


def test_the_idle_cost_is_told_in_words_where_the_slots_are_not_known() -> None:
    (doubt,) = warnings(registry((VIP, 6)))
    assert doubt.idle_slots is None
    assert "all of its slots are idle whenever these tenants are" in doubt.message


def test_a_pool_of_two_tiers_is_counted_once() -> None:
    (doubt,) = warnings(registry((VIP, 3), (VIP_TOO, 3)))
    assert (doubt.tenants, doubt.path) == (6, "tiers.vip.pool")


def test_a_dedicated_pool_without_tenants_is_warned_of() -> None:
    (doubt,) = warnings(registry((VIP, 0)), slots={"vip": 1})
    assert doubt.code is WarningCode.DEDICATED_POOL_UNUSED
    assert doubt.message == "The dedicated pool 'vip' serves no tenant: its 1 slot is always idle."


def test_a_tier_that_nobody_is_in_is_no_fault() -> None:
    assert warnings(registry()) == ()


def test_a_pool_of_its_own_that_is_shared_by_all_is_not_dedicated() -> None:
    assert warnings(registry((Tier(TierName("bulk")), 50))) == ()
