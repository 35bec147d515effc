"""A declaration, found in the facts of one database: what the parts of a plan look things up in. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from tenantry.kernel.errors import nearest
from tenantry.rls.declaration import Declaration, TableName, TenantTable
from tenantry.rls.facts import Facts, Index, Policy, Relation
from tenantry.rls.model import Scope
from tenantry.rls.render import index_name
from tenantry.rls.roles import Privilege
from tenantry.rls.scene import Scene


class Ground:
    """Made once of one pair of declaration and facts; linear in their size. For one thread."""

    def __init__(self, declaration: Declaration, facts: Facts) -> None:
        self.declaration, self.facts = declaration, facts
        self._by_name = {TableName(each.schema, each.name): each for each in facts.relations.values()}
        self._bare = Scene(facts, Scope(application=declaration.roles, tenant_tables={}))

    @cached_property
    def scene(self) -> Scene:
        """The audit's view of the same: who can do what to which table."""
        tables = {oid: each.column for oid, each in self.tenant_tables.items()}
        return Scene(self.facts, Scope(application=self.declaration.roles, tenant_tables=tables))

    @cached_property
    def schemas(self) -> tuple[str, ...]:
        """Those of the declared tables."""
        tables = (*(each.name for each in self.declaration.tables), *self.declaration.shared)
        return tuple(dict.fromkeys(each.schema for each in tables))

    @cached_property
    def declared(self) -> frozenset[TableName]:
        """The tables that were declared themselves, and not by what is above them."""
        return frozenset(each.name for each in self.declaration.tables)

    @cached_property
    def tenant_tables(self) -> dict[int, TenantTable]:
        """By OID: the declared tables that are there, and all that is below them."""
        found: dict[int, TenantTable] = {}
        for each in self.declaration.tables:
            relation = self.relation(each.name)
            if relation is None:
                continue
            for child in sorted(self.below(relation), key=lambda child: child.title):
                found.setdefault(child.oid, replace(each, name=named(child), grants=()))
            found[relation.oid] = each
        return found

    def relation(self, name: TableName) -> Relation | None:
        return self._by_name.get(name)

    def nearest_to(self, name: TableName) -> str:
        """The table most like ``name``, as SQL, or ''."""
        tables = tuple(str(found) for found, each in self._by_name.items() if each.is_table)
        return nearest(str(name), tables) or ""

    def below(self, relation: Relation) -> Iterator[Relation]:
        """Its partitions and other descendants, whatever the depth."""
        waiting, seen = [relation.oid], {relation.oid}
        while waiting:
            for child in self._bare.children_of.get(waiting.pop(), ()):
                if child.oid not in seen:
                    seen.add(child.oid)
                    waiting.append(child.oid)
                    yield child

    def sequences(self, relation: Relation) -> tuple[Relation, ...]:
        """Those that its columns' defaults draw from, and so need USAGE; identity columns need none."""
        return tuple(
            each
            for each in self._sequences.get(relation.oid, ())
            if each.owned_by and (column := relation.column(each.owned_by[1])) and not column.identity
        )

    def readers(self, view: Relation) -> tuple[str, ...]:
        """The application roles that hold SELECT on it. That they may not enter its schema yet, or are not
        there yet, is no protection: the plan changes both."""
        return tuple(each for each in self.declaration.roles if self.scene.could(each, view, "SELECT"))

    def policies(self, relation: Relation) -> tuple[Policy, ...]:
        return self._bare.policies_of.get(relation.oid, ())

    def led_by(self, relation: Relation, column: str) -> Iterator[Index]:
        """The indexes that find one tenant's rows: whole, valid, and ``column`` first."""
        for each in self.indexes(relation):
            whole = each.valid and not each.predicate and each.method in {"btree", "hash"}
            if whole and _keys(each)[:1] == [column]:
                yield each

    def is_led(self, relation: Relation, column: str) -> bool:
        """Whether there is one."""
        return any(True for _ in self.led_by(relation, column))

    def has_plain(self, relation: Relation, column: str) -> bool:
        """Whether it has exactly the index that a plan would build."""
        return any(each.valid and _is_plain(each, column) for each in self.indexes(relation))

    def index_name(self, relation: Relation, column: str, planned: set[TableName]) -> TableName:
        """A name for a new index, and adds it to those ``planned``. The name that an unfinished build of the
        same index left is free."""
        left = self._left_invalid(relation, column)
        there = self._names_in.get(relation.schema, frozenset())

        def is_taken(name: str) -> bool:
            return (name in there and name not in left) or TableName(relation.schema, name) in planned

        found = index_name(named(relation), column, is_taken)
        planned.add(found)
        return found

    def _left_invalid(self, relation: Relation, column: str) -> frozenset[str]:
        if relation.kind != "table":
            return frozenset()
        return frozenset(
            each.name for each in self.indexes(relation) if not each.valid and _is_plain(each, column)
        )

    def enters(self, role: str, schema: str) -> bool:
        """Whether the role has USAGE of the schema, or will have it once the declaration is carried out."""
        return schema in self.schemas or self._bare.can(role, self.facts.schemas[schema], "USAGE")

    def lacks(self, role: str, privileges: Iterable[str], relation: Relation) -> tuple[str, ...]:
        """Which of ``privileges`` (in lower case) the role does not have, in whatever way."""
        return tuple(each for each in privileges if not self._bare.can(role, relation, _upper(each)))

    def holds(self, role: str, privileges: Iterable[str], relation: Relation) -> tuple[str, ...]:
        """Which of ``privileges`` were granted to the role itself, and not as the owner."""
        own = [each.privileges for each in relation.grants if each.grantee == role != relation.owner]
        return tuple(each for each in privileges if any(_upper(each) in found for found in own))

    def indexes(self, relation: Relation) -> tuple[Index, ...]:
        return self._bare.indexes_of.get(relation.oid, ())

    @cached_property
    def _sequences(self) -> dict[int, list[Relation]]:
        found: dict[int, list[Relation]] = {}
        for each in self.facts.relations.values():
            if each.owned_by is not None:
                found.setdefault(each.owned_by[0], []).append(each)
        return found

    @cached_property
    def _names_in(self) -> dict[str, frozenset[str]]:
        """What an index may not be called: names of relations, indexes among them."""
        found: dict[str, set[str]] = {}
        for each in self.facts.relations.values():
            found.setdefault(each.schema, set()).add(each.name)
        for index in self.facts.indexes:
            relation = self.facts.relations.get(index.relation)
            if relation is not None:
                found.setdefault(relation.schema, set()).add(index.name)
        return {schema: frozenset(names) for schema, names in found.items()}


def named(relation: Relation) -> TableName:
    """The relation's name."""
    return TableName(relation.schema, relation.name)


def _keys(index: Index) -> list[str | None]:
    return [each.column for each in index.keys]


def _is_plain(index: Index, column: str) -> bool:
    return _keys(index) == [column] and index.method == "btree" and not (index.predicate or index.included)


def _upper(privilege: str) -> Privilege:
    return privilege.upper()  # type: ignore[return-value]  # the declaration's words are PostgreSQL's
