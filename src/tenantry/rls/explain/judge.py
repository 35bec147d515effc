"""From plans, facts and leakproofness to an explanation. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from tenantry.rls.declaration import TableName, TenantTable
from tenantry.rls.explain.advice import instead
from tenantry.rls.explain.clauses import Clause, bare, clauses
from tenantry.rls.explain.model import HeldBack, Leakproofness, Operation, Reading, TenantUse
from tenantry.rls.explain.scans import PlanNode, Scan, joins, scans
from tenantry.rls.facts import Index, Relation
from tenantry.rls.ground import Ground
from tenantry.rls.names import quoted

_ORDERED = frozenset({"=", "<", "<=", ">", ">="})
_PREFIXES = frozenset({"~~", "^@", "~>=~", "~<~", "~>~", "~<=~"})


class Judge:
    """One plan under one declaration. Made before leakproofness is known: :attr:`operators` and the like say
    what to look up. For one thread."""

    def __init__(self, ground: Ground, plan: PlanNode) -> None:
        self._ground = ground
        self._scans = [each for each in scans(plan) if self._table(each.table) is not None]
        self._joins = [side for text in joins(plan) for clause in clauses(text) for side in clause.sides]

    @property
    def operators(self) -> list[tuple[str, str]]:
        """(type, operator) of the comparisons that occur."""
        return [(kind, each.operator) for each, _, kind in self._typed if each.operator]

    @property
    def functions(self) -> list[str]:
        return list(dict.fromkeys(name for each, _, _ in self._typed for name in each.functions))

    @property
    def casts(self) -> list[tuple[str, str]]:
        found = ((self._column_type(scan, each), each.cast) for each, scan, _ in self._typed if each.cast)
        return list(dict.fromkeys(found))

    def readings(self) -> tuple[Reading, ...]:
        """How each tenant table is read."""
        return tuple(self._reading(each) for each in self._scans)

    def held_back(self, known: Leakproofness) -> tuple[HeldBack, ...]:
        """The conditions that had to wait for the policy."""
        found = {}
        for clause, scan, kind in self._typed:
            function = self._revealing(clause, scan, kind, known)
            if function:
                held = self._held(clause, scan, function)
                found[held.table, clause.text] = held
        return tuple(found.values())

    def _held(self, clause: Clause, scan: Scan, function: str) -> HeldBack:
        relation, table = self._there(scan)
        indexes = tuple(
            each.name for each in self._ground.indexes(relation) if _serves(each, clause, table.column)
        )
        return HeldBack(scan.table, clause, function, indexes, instead(clause, function, table))

    @cached_property
    def _typed(self) -> list[tuple[Clause, Scan, str]]:
        """The query's own conditions where a policy is before them, with the type that the operator sees."""
        found = []
        held = (each for each in self._scans if self._tenant_use(each) != "missing")
        for scan in held:
            asked = [clause for text in scan.filters for clause in clauses(text)]
            for each in (*asked, *(each for each in self._joins if each.column[0] == scan.alias)):
                of_table = any(alias == scan.alias for alias, _ in each.columns)
                if of_table and not self._is_policy(each):
                    found.append((each, scan, each.cast or self._column_type(scan, each)))
        return found

    def _revealing(self, clause: Clause, scan: Scan, kind: str, known: Leakproofness) -> str:
        """The function in it that is not leakproof, '' where all are."""
        for name in clause.functions:
            if not known.functions.get(name, True):
                return name
        cast = (self._column_type(scan, clause), clause.cast)
        if clause.cast and not clause.functions and cast not in known.casts:
            return f"the cast of {cast[0]} to {cast[1]}"
        operations = _meant(clause, [each for each in known.operations if _is_of(each, clause, kind)])
        return next((each.function for each in operations if not each.leakproof), "")

    def _reading(self, scan: Scan) -> Reading:
        relation, table = self._there(scan)
        by_name = {each.name: each for each in self._ground.indexes(relation)}
        used = [by_name[name] for name in scan.indexes if name in by_name]
        led = tuple(each.name for each in self._ground.led_by(relation, table.column))
        use = self._tenant_use(scan)
        leads = bool(used) and all(_first(each) == table.column for each in used)
        bare = Reading(scan.table, scan.alias, scan.node, scan.indexes, use, leads, led, scan.rows)
        return replace(bare, say=tuple(_said(table, bare)))

    def _tenant_use(self, scan: Scan) -> TenantUse:
        if any(self._is_policy(each) for text in scan.conditions for each in clauses(text)):
            return "searched"
        asked = any(self._is_policy(each) for text in scan.filters for each in clauses(text))
        return "filtered" if asked else "missing"

    def _is_policy(self, clause: Clause) -> bool:
        return (
            f"'{self._ground.declaration.setting}'" in clause.text and "current_setting" in clause.functions
        )

    def _column_type(self, scan: Scan, clause: Clause) -> str:
        column = self._there(scan)[0].column(clause.column[1])
        return column.type if column is not None else ""

    def _there(self, scan: Scan) -> tuple[Relation, TenantTable]:
        relation = self._ground.relation(scan.table)
        assert relation is not None, "only scans of known tables are kept"
        return relation, self._ground.tenant_tables[relation.oid]

    def _table(self, name: TableName) -> TenantTable | None:
        relation = self._ground.relation(name)
        return None if relation is None else self._ground.tenant_tables.get(relation.oid)


def _said(table: TenantTable, reading: Reading) -> Iterator[str]:
    used = " and ".join(reading.indexes)
    if reading.tenant == "missing":
        yield "no policy holds this role here: it sees every tenant's rows. See `tenantry rls audit`"
    elif not reading.led:
        make = f"CREATE INDEX CONCURRENTLY ON {table.name} ({quoted(table.column)})"
        yield f"no index begins with the tenant: {make}"
    elif not reading.indexes:
        yield f"the whole table is read although {reading.led[0]} begins with the tenant: fine while small"
    elif not reading.leads:
        yield f"{used} does not begin with the tenant: entries of other tenants are read too"


def _meant(clause: Clause, found: list[Operation]) -> list[Operation]:
    """The operators that the comparison can be: by the value's type where it is known, else that on two of
    the same type, else all."""
    exact = [each for each in found if each.right == clause.value_type]
    return exact or [each for each in found if each.same] or found


def _is_of(operation: Operation, clause: Clause, kind: str) -> bool:
    return (operation.type, operation.operator) == (kind, clause.operator)


def _serves(index: Index, clause: Clause, tenant: str) -> bool:
    """Whether the index could be searched by ``clause``, were it allowed to: right behind the tenant, or
    first."""
    if not index.valid or index.predicate or not _searches(index.method, clause):
        return False
    behind = index.keys[1:] if _first(index) == tenant else index.keys
    return any(_is_key(each.column, each.expression, clause) for each in behind[:1])


def _is_key(column: str | None, expression: str, clause: Clause) -> bool:
    if column is not None:
        return column == clause.column[1] and not clause.functions
    return bare(expression) == bare(clause.operand)


def _searches(method: str, clause: Clause) -> bool:
    if method == "btree":
        return clause.operator in _ORDERED or (clause.operator in _PREFIXES and not _open(clause.value))
    return clause.operator == "=" if method == "hash" else bool(clause.operator)


def _open(pattern: str) -> bool:
    """A pattern that begins with a wildcard names no part of an order."""
    return pattern.startswith(("'%", "'_"))


def _first(index: Index) -> str | None:
    return index.keys[0].column if index.keys else None
