"""As whom, and with what bound, attempts are made, and what they are after. Pure."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from tenantry.rls.facts import Column, Relation
from tenantry.rls.names import quoted
from tenantry.rls.prove.model import Bound, Row
from tenantry.rls.prove.planting import Field, Plot, Tenant, settings
from tenantry.rls.prove.values import literal
from tenantry.rls.reach import granted
from tenantry.rls.scene import Scene

MOST_ROWS = 100_000
"""Statements without a condition are made only on tables of at most so many rows, by the planner's estimate:
where they are not held they touch each row, if only until they are rolled back."""

Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Attacker:
    """One role of the application on the field, after the rows of ``victim``."""

    field: Field
    role: str

    @property
    def scene(self) -> Scene:
        return self.field.scene

    def binding(self, bound: Bound, tables: Collection[str] = ()) -> Settings:
        """The settings that stand for ``bound``, as ``tables`` read them. Those without a prefix nobody can
        set."""
        if bound is Bound.A:
            return self.binding_of(self.field.a, tables)
        if bound is Bound.EMPTY:
            return tuple((each, "") for each in self._names)
        return self.at_login if bound is Bound.LOGIN else ()

    def binding_of(self, tenant: Tenant, tables: Collection[str] = ()) -> Settings:
        """The same for any tenant."""
        return tuple((each, self.field.setting_value(each, tenant, tables)) for each in self._names)

    @property
    def _names(self) -> list[str]:
        return [each for each in settings(self.scene) if "." in each]

    @cached_property
    def at_login(self) -> Settings:
        """What ALTER ROLE and ALTER DATABASE give the role's sessions, of the settings with a prefix."""
        own = (
            each
            for each in self.scene.facts.settings
            if each.role == self.role or (each.role is None and each.here)
        )
        return tuple((each.name, each.value) for each in own if "." in each.name)

    @property
    def bounds(self) -> list[Bound]:
        return [Bound.NOBODY, Bound.A, Bound.EMPTY, *([Bound.LOGIN] if self.at_login else [])]

    @cached_property
    def planted(self) -> list[Relation]:
        """Tables in which some other tenant has a row."""
        return [
            each
            for each in Plot(self.scene).tenants
            if any(each.oid in other.rows for other in self.field.others)
        ]

    @cached_property
    def reached(self) -> list[tuple[Relation, frozenset[str]]]:
        """What rows of planted tables may come out of, each with those tables: the tables themselves,
        partitions, parents and children, and views over any of these."""
        known = self.scene.facts.relations
        found: dict[int, set[str]] = {}
        waiting = [(each.oid, each.title) for each in self.planted if self._is_told(each)]
        while waiting:
            oid, title = waiting.pop()
            if title in found.setdefault(oid, set()):
                continue
            found[oid].add(title)
            near = [*self.scene.readers_of.get(oid, ()), *self.scene.children_of.get(oid, ())]
            near += [known[parent] for parent in known[oid].parents if parent in known]
            waiting += [(each.oid, title) for each in near]
        in_scope = ((known[oid], frozenset(titles)) for oid, titles in found.items())
        return sorted(
            (each for each in in_scope if self.scene.in_scope(each[0].schema)), key=lambda each: each[0].title
        )

    def _is_told(self, table: Relation) -> bool:
        """Whether its rows are a tenant's secret: not those of a list that policies ask by way of another."""
        return self.scene.is_tenant_table(table.oid) or table.oid in (
            Plot(self.scene).children | Plot(self.scene).lookups
        )

    def selection(self, relation: Relation) -> str:
        """A query for all that the role may see of ``relation``."""
        names = ", ".join(quoted(each.name) for each in self.columns(relation))
        return f"SELECT {names} FROM {relation.title}"

    def columns(self, relation: Relation) -> list[Column]:
        """Those that it was granted, or all where it was granted none: the server then refuses."""
        held = self.scene.reach.inherits(self.role)
        if not granted(relation.grants, held, "SELECT"):
            some = [each for each in relation.columns if granted(each.grants, held, "SELECT")]
            if some:
                return some
        return list(relation.columns)

    def rows(self, oid: int) -> Iterator[Row]:
        """The others' rows in a table."""
        for other in self.field.others:
            if oid in other.rows:
                yield other.rows[oid]

    def marks(self, tables: frozenset[str], relation: Relation) -> Iterator[tuple[str, str]]:
        """Columns of ``relation``, by name, with what another tenant has there and nobody else."""
        named = {each.title: each.oid for each in self.planted}
        columns = [each.name for each in self.columns(relation)]
        for title in sorted(tables):
            for row in self.rows(named[title]):
                for name, text in row.items():
                    if (
                        name in columns
                        and text
                        and any(
                            str(other.number) in text or text == other.given for other in self.field.others
                        )
                    ):
                        yield name, text

    def is_small(self, table: Relation) -> bool:
        return table.rows <= MOST_ROWS


def equals(column: str, text: str) -> str:
    """The condition that a column is ``text``."""
    return f"{quoted(column)} = {literal(text)}"
