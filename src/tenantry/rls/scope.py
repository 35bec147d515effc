"""From what is declared, and from the facts where nothing is, to whom and what isolation is about. Pure.

Without a declaration: a table is a tenant table if it has the one of :data:`TENANT_COLUMNS` that most tables
have, or one of them that another table's policies bind, or a policy that compares a column of its own to a
session setting; the application is every role, no superuser and none of the server's own, to which something
on a tenant table was granted, and failing that the tables' owners.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from tenantry.kernel.errors import InvalidValue, nearest
from tenantry.rls.declaration import Declaration, TableName
from tenantry.rls.expression import Column, Operation, read, walk
from tenantry.rls.facts import Facts, Relation
from tenantry.rls.meaning import reading, readings, uncast
from tenantry.rls.model import TENANT_COLUMNS, Declared, Scope
from tenantry.rls.reach import Reach
from tenantry.rls.roles import PUBLIC, Grant, Role

_DATA = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})


def found(declared: Declared, facts: Facts) -> Scope:
    """The scope of ``declared`` in the database of ``facts``.

    Raises :class:`InvalidValue`, with the nearest name that is there, for a table, column or application role
    that the database lacks. A service role that it lacks is left out: it has nothing to be excused.
    """
    return _Finder(declared, facts).scope()


def declared_by(declaration: Declaration) -> Declared:
    """What a declaration file says, as the audit takes it."""
    return Declared(
        application_roles=declaration.roles,
        tables={_spelt(each.name): each.column for each in declaration.tables},
        shared={_spelt(name): reason for name, reason in declaration.shared.items()},
        service_roles=declaration.services,
        setting=declaration.setting,
    )


def _spelt(name: TableName) -> str:
    """As :meth:`_Finder._by_name` has it without quotes."""
    return f"{name.schema}.{name.name}"


class _Finder:
    def __init__(self, declared: Declared, facts: Facts) -> None:
        self._declared, self._facts = declared, facts

    def scope(self) -> Scope:
        declared, facts = self._declared, self._facts
        return Scope(
            application=self._application(),
            tenant_tables=self._tenant_tables,
            shared=self._shared,
            service={each: why for each, why in declared.service_roles.items() if each in facts.roles},
            columns=frozenset(self._columns),
            schemas=frozenset(declared.schemas),
            setting=declared.setting,
            declared=bool(declared.tables or declared.shared),
        )

    @cached_property
    def _by_name(self) -> Mapping[str, Relation]:
        """Tables by both of their names: as SQL writes it, and without quotes."""
        tables = [each for each in self._facts.relations.values() if each.kind != "sequence"]
        plain = {f"{each.schema}.{each.name}": each for each in tables}
        return {**plain, **{each.title: each for each in tables}}

    def _named(self, path: str, name: str) -> Relation:
        if name not in self._by_name:
            same = next((title for title, each in self._by_name.items() if each.name == name), None)
            near = same or nearest(name, tuple(self._by_name))
            hint = f"Did you mean {near!r}?" if near else "Give the schema too, such as 'public.invoices'."
            raise InvalidValue(f"{path}.{name}", name, "a table that the database has", hint)
        return self._by_name[name]

    @cached_property
    def _shared(self) -> dict[int, str]:
        return {self._named("shared", name).oid: why for name, why in self._declared.shared.items()}

    @cached_property
    def _tenant_tables(self) -> dict[int, str]:
        given: dict[int, str] = {}
        for name, column in self._declared.tables.items():
            table = self._named("tables", name)
            if column and table.column(column) is None:
                has = ", ".join(each.name for each in table.columns)
                raise InvalidValue(f"tables.{name}", column, f"a column of the table: {has}")
            given[table.oid] = column
        taken = {**dict(self._inferred()), **given}
        return {oid: column for oid, column in taken.items() if oid not in self._shared or oid in given}

    def _inferred(self) -> Iterator[tuple[int, str]]:
        for each in self._facts.relations.values():
            if not each.is_table or each.extension or each.temporary or not self._looked_at(each.schema):
                continue
            named = next((name for name in self._columns if each.column(name)), None)
            if each.oid in self._bound or named is not None:
                yield each.oid, self._bound.get(each.oid) or named or ""

    def _looked_at(self, schema: str) -> bool:
        return not self._declared.schemas or schema in self._declared.schemas

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        """Declared ones; or the known one that most tables have, besides those that policies bind: known
        ones, and others in more than one table. Only one that no policy binds, so that an ``account_id``
        beside ``tenant_id`` is not taken for a tenant. First what policies bind most, then what most have."""
        if self._declared.tenant_columns:
            return self._declared.tenant_columns
        tables = [
            each for each in self._facts.relations.values() if each.is_table and self._looked_at(each.schema)
        ]
        spelt = tuple(dict.fromkeys((*TENANT_COLUMNS, *_other_spellings(tables))))
        often = Counter(name for name in self._bound.values() if name)
        having = Counter(column.name for each in tables for column in each.columns)
        bound = {name for name, times in often.items() if times > 1 or name in spelt}
        possible = [name for name in spelt if having[name] and name not in self._lesser]
        likeliest = {max(possible, key=having.__getitem__)} if possible else set()
        return tuple(sorted(bound | likeliest, key=lambda name: (-often[name], -having[name], name)))

    @cached_property
    def _lesser(self) -> set[str]:
        """Known columns in tables whose policies bind a likelier one: an ``account_id`` within a tenant."""
        found: set[str] = set()
        for oid, name in self._bound.items():
            after = TENANT_COLUMNS.index(name) + 1 if name in TENANT_COLUMNS else len(TENANT_COLUMNS)
            table = self._facts.relations[oid]
            found |= {each for each in TENANT_COLUMNS[after:] if table.column(each)}
        return found - set(self._bound.values())

    @cached_property
    def _bound(self) -> dict[int, str]:
        """The column that some policy of a table compares to a session setting; "" where policies read one
        but compare no column of the table to it."""
        bound: dict[int, str] = {}
        for policy in self._facts.policies:
            table = self._facts.relations.get(policy.relation)
            for tree in (policy.using_tree, policy.check_tree):
                if table is not None and tree is not None:
                    _note(bound, table, tree)
        return bound

    def _application(self) -> tuple[str, ...]:
        declared, roles = self._declared.application_roles, self._facts.roles
        for name in declared:
            if name not in roles:
                near = nearest(name, tuple(roles))
                hint = f"Did you mean {near!r}?" if near else ""
                raise InvalidValue("application_roles", name, "a role that the server has", hint)
        return declared or tuple(sorted(self._users() or self._owners()))

    def _users(self) -> set[str]:
        """Who was granted something on a tenant table, and the logins that use a group's grant."""
        tables = [self._facts.relations[oid] for oid in self._tenant_tables]
        granted = {grant.grantee for table in tables for grant in _all_grants(table)
                   if grant.grantee != table.owner and not _DATA.isdisjoint(grant.privileges)}  # fmt: skip
        reach = Reach(self._facts.roles, self._facts.memberships)
        candidates = [each for each in self._facts.roles.values() if self._is_candidate(each)]
        logins = {each.name for each in candidates if each.can_login}
        using = {each for each in logins if not reach.acts_as(each).isdisjoint(granted - {PUBLIC})}
        groups = {each.name for each in candidates} & granted
        served = {group for group in groups for login in using if group in reach.acts_as(login)}
        everyone = logins - _names_of_owners(tables) if PUBLIC in granted else set()
        return using | (groups - served) | everyone

    def _owners(self) -> set[str]:
        owners = _names_of_owners(self._facts.relations[oid] for oid in self._tenant_tables)
        return {
            each
            for each in owners
            if each in self._facts.roles and self._is_candidate(self._facts.roles[each])
        }

    def _is_candidate(self, role: Role) -> bool:
        return not (role.superuser or role.predefined or role.name in self._declared.service_roles)


def _all_grants(table: Relation) -> Iterator[Grant]:
    """On the table, and on single columns of it."""
    yield from table.grants
    for column in table.columns:
        yield from column.grants


def _other_spellings(tables: Iterable[Relation]) -> list[str]:
    """Columns that are called as :data:`TENANT_COLUMNS` are but for case and underscores: ``tenantId``."""
    known = {_folded(each) for each in TENANT_COLUMNS}
    names = {column.name for table in tables for column in table.columns}
    return sorted(each for each in names if _folded(each) in known)


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def _names_of_owners(tables: Iterable[Relation]) -> set[str]:
    return {each.owner for each in tables}


def _note(bound: dict[int, str], table: Relation, tree: str) -> None:
    expression = read(tree)
    if not any(True for _ in readings(expression)):
        return
    bound.setdefault(table.oid, "")
    for each in walk(expression):
        if not isinstance(each, Operation) or len(each.args) != 2:
            continue
        for side, other in (each.args, each.args[::-1]):
            inner = uncast(side)
            column = table.numbered(inner.number) if isinstance(inner, Column) else None
            own = isinstance(inner, Column) and inner.relation == -1
            if column is not None and own and reading(other) is not None and not bound[table.oid]:
                bound[table.oid] = column.name
