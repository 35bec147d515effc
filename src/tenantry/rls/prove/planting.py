"""Which tables are planted, in which order, and with what: rows of made-up tenants that may stand there.

Foreign keys are followed so that each row refers to rows of its own tenant. Checks are met by trying: the
literals in them, and the numbers beside those, a bounded number of times. Pure.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tenantry.rls.facts import Column, Constraint, Relation
from tenantry.rls.meaning import reading, readings, relations
from tenantry.rls.names import quoted
from tenantry.rls.prove.model import Row
from tenantry.rls.prove.values import Kind, likely, literal, value
from tenantry.rls.scene import Scene

MARK = "17000000"
"""What every number of a made-up tenant begins with."""

TRIES = 16
"""How many rows are offered to a table before it counts as one that cannot be planted."""

_TEXT = re.compile(r"'(?:[^']|'')*'")
_WORD = re.compile(r'"(?:[^"]|"")*"|[^\W\d][\w$]*')


@dataclass(slots=True)
class Tenant:
    """A made-up tenant. ``given``: a value that the database's own text names, or "". ``rows``: what was
    planted for it, by table."""

    label: str
    number: int
    given: str = ""
    rows: dict[int, Row] = field(default_factory=dict)

    def named(self, kind: str, style: str) -> str:
        """Its value in a tenant column of type ``kind``; in text it is spelt as in a column of ``style``."""
        return self.given or value(style if _is_text(kind) and style else kind, self.number, "tenant") or ""


@dataclass(frozen=True, slots=True)
class Field:
    """Where the attack takes place: the scene, who was planted, and what types mean there."""

    scene: Scene
    kinds: Mapping[int, Kind]
    a: Tenant
    others: tuple[Tenant, ...]
    checks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def kind(self, column: Column) -> str:
        """The type of ``column``, of a domain what is below it."""
        own = self.kinds.get(column.type_oid)
        return own.base if own and own.base else column.type

    @property
    def style(self) -> str:
        """See :func:`style`."""
        return style(self.scene)

    def tenant_value(self, table: Relation, tenant: Tenant) -> str:
        """What the tenant column of ``table`` holds for ``tenant``, "" where it has none."""
        column = table.column(self.scene.tenant_column(table.oid))
        return tenant.named(self.kind(column), style(self.scene)) if column else ""

    def setting_value(self, name: str, tenant: Tenant, tables: Collection[str] = ()) -> str:
        """What ``name`` must be for ``tenant`` to be bound, as those of ``tables``, by title, read it:
        policies may cast one setting to another type on another table."""
        held, known = settings(self.scene).get(name, {}), self.scene.facts.relations
        own = [column for oid, column in held.items() if known[oid].title in tables]
        column = next(iter(own or [*held.values()][::-1]), None)
        return tenant.named(self.kind(column) if column else "text", style(self.scene))


def style(scene: Scene) -> str:
    """The type whose spelling tenants have in text columns: that of the others, where there is one."""
    return scene.once("prove style", lambda: _style(scene))


def _style(scene: Scene) -> str:
    found = [each.column(scene.tenant_column(each.oid)) for each in scene.tenant_tables]
    return next((each.type for each in found if each and not _is_text(each.type)), "")


def settings(scene: Scene) -> dict[str, dict[int, Column]]:
    """The settings by which policies hold rows to a tenant, each with the column that is held, by table."""
    return scene.once("prove settings", lambda: _settings(scene))


def _settings(scene: Scene) -> dict[str, dict[int, Column]]:
    found: dict[str, dict[int, Column]] = {scene.scope.setting: {}} if scene.scope.setting else {}
    for name, table, column in _holding(scene):
        found.setdefault(name, {}).setdefault(table, column)
    return found


def _holding(scene: Scene) -> Iterator[tuple[str, int, Column]]:
    for policy in scene.facts.policies:
        table = scene.facts.relations.get(policy.relation)
        for expression in (scene.using(policy), scene.check(policy)):
            for binding in scene.bindings(policy, expression):
                found = reading(binding.value)
                column = table.numbered(binding.column) if table is not None else None
                if column is not None and found is not None and found.name:
                    yield found.name, policy.relation, column


def other_settings(scene: Scene) -> list[str]:
    """The other settings that policies read: flags, perhaps."""
    return sorted(_read(scene) - settings(scene).keys())


def _read(scene: Scene) -> set[str]:
    found = set()
    for policy in scene.facts.policies:
        for expression in (scene.using(policy), scene.check(policy)):
            found |= {each.name for each in readings(expression) if each.name} if expression else set()
    return found


@dataclass(frozen=True)
class Plot:
    """Which tables are planted. ``tenants``: with a row for each tenant; ``common``: with one for all."""

    scene: Scene

    @cached_property
    def tenants(self) -> list[Relation]:
        """In an order in which foreign keys find what they refer to."""
        wanted = {each.oid for each in self.scene.tenant_tables if not each.is_partition}
        wanted |= self.lookups | self.children | self._named_by_tenant
        return self._sorted(wanted - self.scene.scope.shared.keys())

    @cached_property
    def common(self) -> list[Relation]:
        """What those refer to and no tenant owns."""
        found: set[int] = set()
        waiting = [each.oid for each in self.tenants]
        while waiting:
            for key in self._keys(waiting.pop()):
                if key.references not in found:
                    found.add(key.references)
                    waiting.append(key.references)
        return self._sorted(found - {each.oid for each in self.tenants})

    @cached_property
    def lookups(self) -> set[int]:
        """Tables that policies ask, themselves or by the text of a helper."""
        found: set[int] = set()
        for policy in self.scene.facts.policies:
            for expression in (self.scene.using(policy), self.scene.check(policy)):
                found |= relations(expression) if expression else set()
        known = self.scene.facts.relations
        return {oid for oid in found if oid in known and known[oid].is_table}

    @cached_property
    def children(self) -> set[int]:
        """Tables without a tenant column whose rows belong to a tenant's."""
        mine = self.scene.scope.tenant_tables
        keys = (each for each in self.scene.facts.constraints if each.kind == "foreign key")
        return {each.relation for each in keys if each.references in mine and each.relation not in mine}

    @property
    def _named_by_tenant(self) -> set[int]:
        """The list of tenants that tenant columns refer to."""
        return {
            key.references
            for table in self.scene.tenant_tables
            for key in self._keys(table.oid)
            if key.columns == (self.scene.tenant_column(table.oid),)
        }

    def _keys(self, oid: int) -> list[Constraint]:
        return [each for each in self.scene.constraints_of.get(oid, ()) if each.kind == "foreign key"]

    def _sorted(self, wanted: set[int]) -> list[Relation]:
        relations = self.scene.facts.relations
        found: dict[int, Relation] = {}

        def visit(oid: int, above: frozenset[int]) -> None:
            for key in self._keys(oid):
                if key.references in wanted and key.references not in above | found.keys():
                    visit(key.references, above | {oid})
            found.setdefault(oid, relations[oid])

        for oid in sorted(wanted, key=lambda each: relations[each].title):
            visit(oid, frozenset())
        return [each for each in found.values() if each.is_table and self.scene.in_scope(each.schema)]


def drafted(ground: Field, table: Relation, tenant: Tenant, attempt: int = 0, *, fresh: int = 0) -> Row:
    """A row of ``tenant``. ``attempt`` counts those that the table did not take; ``fresh`` gives other keys
    than the planted row's."""
    number = tenant.number + attempt * 131 + fresh
    row = dict(_generated(ground, table, (tenant.label, number), attempt))
    if fresh:
        row.update(_taken(ground, table, tenant, row))
    for key in ground.scene.constraints_of.get(table.oid, ()):
        if key.kind == "foreign key" and key.references != table.oid:
            row.update(_referring(ground, key, tenant))
    name = ground.scene.tenant_column(table.oid)
    if name:
        row[name] = ground.tenant_value(table, tenant)
    return row


def _taken(ground: Field, table: Relation, tenant: Tenant, row: Row) -> Row:
    """What the table took in the planted row, for checks to be met again: but for keys, which must differ,
    and for arrays and the like, which were read back as JSON."""
    planted, unlike = tenant.rows.get(table.oid, {}), _unlike(ground.scene, table)
    plain = {each.name for each in table.columns if value(each.type, 1, "") not in (None, "{}")}
    enums = {each.name for each in table.columns if each.type_oid in ground.kinds}
    return {name: planted[name] for name in row if name in planted and name in (plain | enums) - unlike}


def _unlike(scene: Scene, table: Relation) -> set[str]:
    """Columns by which rows of the table must differ."""
    found = _keyed(scene, table)
    for index in scene.indexes_of.get(table.oid, ()):
        if index.unique or index.exclusion:
            found |= {each.column for each in index.keys if each.column}
    return found


def _referring(ground: Field, key: Constraint, tenant: Tenant) -> Row:
    parent = tenant.rows.get(key.references) or ground.a.rows.get(key.references)
    if parent is None or any(each not in parent for each in key.referenced_columns):
        return {}
    return {own: parent[theirs] for own, theirs in zip(key.columns, key.referenced_columns, strict=True)}


def _generated(
    ground: Field, table: Relation, named: tuple[str, int], attempt: int
) -> Iterator[tuple[str, str | None]]:
    word, number = named
    keyed, wanted = _keyed(ground.scene, table), _wanted(ground, table)
    for place, column in enumerate(table.columns):
        if column.generated or (column.default is not None and column.name not in keyed):
            continue
        own = ground.kinds.get(column.type_oid)
        made = own.labels[0] if own and own.labels else value(ground.kind(column), number, word)
        offers = [made, *wanted.get(column.name, ())] if attempt else [made]
        offer = offers[(attempt + place * (attempt // 4)) % len(offers)]
        may_be_null = not (column.not_null or column.name in keyed)
        yield column.name, None if may_be_null and attempt % 3 == 2 else offer


def _keyed(scene: Scene, table: Relation) -> set[str]:
    """Columns of unique keys: their defaults may draw from a sequence, and must differ."""
    found = {each.name for each in table.columns if each.identity}
    for each in scene.constraints_of.get(table.oid, ()):
        if each.kind in {"primary key", "unique"}:
            found |= set(each.columns)
    drawn = {each.name for each in table.columns if each.default and "nextval" in each.default}
    return found | drawn


def _wanted(ground: Field, table: Relation) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for check in ground.checks.get(table.oid, ()):
        names = set(_WORD.findall(_TEXT.sub("", check)))  # not in a literal: 'paid' is of no column id
        for column in table.columns:
            if quoted(column.name) in names:
                found.setdefault(column.name, []).extend(likely(check))
    return found


def insertion(title: str, row: Row, *, overriding: bool = True) -> str:
    """The statement that puts ``row`` in."""
    columns = ", ".join(map(quoted, row))
    values = ", ".join(map(literal, row.values()))
    system = " OVERRIDING SYSTEM VALUE" if overriding else ""
    return f"INSERT INTO {title} ({columns}){system} VALUES ({values})"


def _is_text(kind: str) -> bool:
    return kind.startswith(("text", "character", "citext", "name"))
