"""What is allowed in a registry and probably not meant. Pure: values in, warnings out, nothing printed.

Source of the rule: the seed on fair shares. Capacity set aside for a few critical services takes them out of
every contention and costs idle capacity; it is worth that only while the few stay few.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tenantry.config.registry import Registry
from tenantry.config.tiers import DEDICATED_POOL_HANDFUL, SHARED_POOL

_UNKNOWN: Mapping[str, int] = MappingProxyType({})


class WarningCode(StrEnum):
    """Stable names of the warnings, for filters and metrics."""

    DEDICATED_POOL_CROWDED = "dedicated_pool_crowded"
    DEDICATED_POOL_UNUSED = "dedicated_pool_unused"


@dataclass(frozen=True, slots=True)
class RegistryWarning:
    """One doubt. ``path``: the tier's ``pool`` key, of the first tier that names the pool. ``tenants``: how
    many the pool serves. ``idle_slots``: how many slots it keeps idle while they are; None if not known.
    ``message`` is a sentence for people."""

    code: WarningCode
    path: str
    pool: str
    tenants: int
    idle_slots: int | None
    message: str


def warnings(registry: Registry, *, slots: Mapping[str, int] = _UNKNOWN) -> tuple[RegistryWarning, ...]:
    """The registry's doubts, by pool in the order of the tiers. ``slots``: live slots by pool, where known.

    A dedicated pool is warned of when it serves more tenants than
    :data:`~tenantry.config.tiers.DEDICATED_POOL_HANDFUL`, or none. A tier without tenants is no fault. O(n).
    """
    paths: dict[str, str] = {}
    served: dict[str, int] = {}
    pool_of = {tier.name: tier.pool for tier in registry.tiers}
    for tier in registry.tiers:
        paths.setdefault(tier.pool, f"tiers.{tier.name}.pool")
        served.setdefault(tier.pool, 0)
    for document in registry.tenants:
        served[pool_of[document.tier]] += 1
    dedicated = (pool for pool in paths if pool != SHARED_POOL)
    found = (_doubt(pool, paths[pool], served[pool], slots.get(pool)) for pool in dedicated)
    return tuple(doubt for doubt in found if doubt is not None)


def _doubt(pool: str, path: str, tenants: int, slots: int | None) -> RegistryWarning | None:
    if tenants == 0:
        message = f"The dedicated pool {pool!r} serves no tenant: {_all(slots)} always idle."
        return RegistryWarning(WarningCode.DEDICATED_POOL_UNUSED, path, pool, tenants, slots, message)
    if tenants > DEDICATED_POOL_HANDFUL:
        return RegistryWarning(
            WarningCode.DEDICATED_POOL_CROWDED, path, pool, tenants, slots, _crowded(pool, tenants, slots)
        )
    return None


def _crowded(pool: str, tenants: int, slots: int | None) -> str:
    each = "" if slots is None else f" ({slots / tenants:.2g} a tenant)"
    return (
        f"The dedicated pool {pool!r} serves {tenants} tenants, more than a handful "
        f"({DEDICATED_POOL_HANDFUL}): {_all(slots, each)} idle whenever these tenants are, and they contend "
        f"with each other there all the same. In the pool {SHARED_POOL!r} others would use what they leave, "
        "and their weights would still hold."
    )


def _all(slots: int | None, each: str = "") -> str:
    if slots is None:
        return "all of its slots are"
    return f"its 1 slot{each} is" if slots == 1 else f"its {slots} slots{each} are"
