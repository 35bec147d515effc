"""What is simulated: tenants, what arrives for them, the slots. Frozen records; times in virtual seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Kinds = frozenset[str]
ANY: Kinds = frozenset({""})
"""Slots that run the one default kind of work."""


@dataclass(frozen=True, slots=True)
class SimTenant:
    """``weight`` > 0, ``cap`` in (0, 1], ``bound``: most jobs waiting, ``rate``: starts a second."""

    id: str
    weight: float = 1.0
    cap: float = 1.0
    bound: int | None = None
    rate: float | None = None


class FlowKey(NamedTuple):
    """``rank``: 0 live, 1 background, 2 replay. ``name`` tells apart the replays of one lane."""

    tenant: str
    lane: str = ""
    rank: int = 0
    kind: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """``count`` jobs arrive at ``at``; each holds a slot for ``busy_for`` seconds and is declared to cost
    ``cost`` (None: nothing declared)."""

    at: float
    flow: FlowKey
    count: int = 1
    busy_for: float = 1.0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class SimSettings:
    """``slots`` by what each group of them can run. Nothing starts at or after ``until``."""

    slots: Mapping[Kinds, int] = field(default_factory=lambda: {ANY: 10})
    until: float = 100.0

    @property
    def total(self) -> int:
        return sum(self.slots.values())
