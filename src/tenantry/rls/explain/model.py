"""What is known about leakproofness, and what an explanation says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tenantry.rls.declaration import TableName
from tenantry.rls.explain.clauses import Clause

TenantUse = Literal["searched", "filtered", "missing"]
"""How the tenant's condition is used: an index is searched by it; it is asked of every row; it is not there,
so that no policy holds the role."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operator of a name on a type. ``right``: the type on its other side; ``same``: the type is on both.
    ``function``: as ALTER FUNCTION takes it."""

    type: str
    operator: str
    right: str
    same: bool
    function: str
    leakproof: bool


@dataclass(frozen=True, slots=True)
class Leakproofness:
    """What the catalogue says of the operators, functions and casts that occur. ``functions``: by name,
    whether all of that name are leakproof; ``casts``: (from, to) that run no function."""

    operations: tuple[Operation, ...] = ()
    functions: Mapping[str, bool] = field(default_factory=dict)
    casts: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A condition that runs after the policy, on each row that passes it, because a function in it may reveal
    what it sees. ``indexes``: those that it could have searched. ``instead``: what to write, best first."""

    table: TableName
    clause: Clause
    function: str
    indexes: tuple[str, ...]
    instead: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a tenant table. ``leads``: whether the tenant comes first in each index used; False
    where none is. ``led``: the indexes that there are and that the tenant leads. ``say``: what else to
    know."""

    table: TableName
    alias: str
    node: str
    indexes: tuple[str, ...]
    tenant: TenantUse
    leads: bool
    led: tuple[str, ...]
    rows: float
    say: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """One query. ``plan``: as PostgreSQL gave it; None where it refused, for the reason in ``error``.

    ``generic``: planned for any values, since the query has parameters. ``if_leakproof``: the plan that the
    same query had while the functions that held conditions back were marked leakproof, in a transaction
    that was rolled back.
    """

    query: str
    generic: bool = False
    plan: Mapping[str, Any] | None = None
    readings: tuple[Reading, ...] = ()
    held_back: tuple[HeldBack, ...] = ()
    if_leakproof: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def is_well(self) -> bool:
        """The tenant leads each index used, or could where the planner rather reads the whole table; and no
        condition is held back that an index has."""
        held = any(each.indexes for each in self.held_back)
        return not self.error and not held and all(map(_is_well, self.readings))


def _is_well(reading: Reading) -> bool:
    if reading.indexes:
        return reading.tenant == "searched" and reading.leads
    return reading.tenant == "filtered" and bool(reading.led)
