"""What a new registry would change, as lines for people. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier

_LISTED = 10


@dataclass(frozen=True, slots=True)
class Change:
    """``sign``: ``+`` added, ``-`` removed, ``~`` changed. ``what``: ``tier``, ``tenant`` or ``floor``.
    ``detail`` shows no secret."""

    sign: str
    what: str
    name: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.sign} {self.what} {self.name}" + (f": {self.detail}" if self.detail else "")


def changes(old: Registry, new: Registry) -> tuple[Change, ...]:
    """Every difference, tiers before tenants. O(n)."""
    return (*_floor(old, new), *_tiers(old, new), *_tenants(old, new))


def shortened(found: tuple[Change, ...], *, listed: int = _LISTED) -> list[str]:
    """The changes as lines; of each kind the first ``listed``, the rest counted."""
    kinds: dict[tuple[str, str], list[Change]] = {}
    for change in found:
        kinds.setdefault((change.what, change.sign), []).append(change)
    lines: list[str] = []
    for (what, sign), each in kinds.items():
        lines += map(str, each[:listed])
        if len(each) > listed:
            lines.append(f"{sign} and {len(each) - listed:,} more {what}s")
    return lines


def _floor(old: Registry, new: Registry) -> Iterator[Change]:
    if old.floor != new.floor:
        yield Change("~", "floor", "of every pool", f"{old.floor:g} -> {new.floor:g}")


def _tiers(old: Registry, new: Registry) -> Iterator[Change]:
    before, after = {t.name: t for t in old.tiers}, {t.name: t for t in new.tiers}
    for name, tier in after.items():
        if name not in before:
            yield Change("+", "tier", name, f"weight {tier.weight:g}, cap {tier.cap:.0%}, bound {tier.bound}")
        elif before[name] != tier:
            yield Change("~", "tier", name, _differences(before[name], tier))
    for name in before.keys() - after.keys():
        yield Change("-", "tier", name)


def _tenants(old: Registry, new: Registry) -> Iterator[Change]:
    before, after = {d.tenant: d for d in old.tenants}, {d.tenant: d for d in new.tenants}
    for name, document in after.items():
        if name not in before:
            yield Change("+", "tenant", name, f"tier {document.tier}")
        elif before[name] != document:
            yield Change("~", "tenant", name, _document(before[name], document))
    for name in sorted(before.keys() - after.keys()):
        yield Change("-", "tenant", name, "its API keys are deleted; work it has in the queue still ends")


def _document(old: TenantDocument, new: TenantDocument) -> str:
    parts = [f"tier {old.tier} -> {new.tier}"] if old.tier != new.tier else []
    parts += ["defaults"] if old.defaults != new.defaults else []
    names = old.targets.keys() | new.targets.keys()
    moved = sorted(name for name in names if old.targets.get(name) != new.targets.get(name))
    parts += [f"targets {', '.join(moved[:5])}{' …' if len(moved) > 5 else ''}"] if moved else []
    return "; ".join(parts)


def _differences(old: Tier, new: Tier) -> str:
    parts = [
        f"{each.name} {getattr(old, each.name)} -> {getattr(new, each.name)}"
        for each in fields(Tier)
        if getattr(old, each.name) != getattr(new, each.name)
    ]
    return ", ".join(parts)
