"""What every rule is given: the facts, the scope, and what follows from the two, worked out once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Protocol, TypeVar, cast

from tenantry.rls.expression import Expression, read
from tenantry.rls.facts import (
    BuiltIn,
    Column,
    Constraint,
    Facts,
    Function,
    Index,
    Policy,
    Relation,
    RewriteRule,
    Trigger,
)
from tenantry.rls.meaning import Binding, bindings, functions, is_true, relations
from tenantry.rls.model import Scope
from tenantry.rls.reach import Reach, granted
from tenantry.rls.roles import PUBLIC, Grant, Privilege, Role

_WRITES: tuple[Privilege, ...] = ("INSERT", "UPDATE", "DELETE")


class Owned(Protocol):
    """Anything with an owner and an ACL."""

    @property
    def owner(self) -> str: ...
    @property
    def grants(self) -> tuple[Grant, ...]: ...


class _OnRelation(Protocol):
    @property
    def relation(self) -> int: ...


_T = TypeVar("_T", bound=_OnRelation)
_Made = TypeVar("_Made")


class Scene:
    """Not changed once made. For one thread: what follows is worked out at its first use."""

    def __init__(self, facts: Facts, scope: Scope) -> None:
        self.facts, self.scope = facts, scope
        self.reach = Reach(facts.roles, facts.memberships)
        self._once: dict[object, object] = {}

    def once(self, key: object, make: Callable[[], _Made]) -> _Made:
        """What ``make`` gave when it was first asked for under ``key``: for what several rules work out."""
        if key not in self._once:
            self._once[key] = make()
        return cast("_Made", self._once[key])

    # Who

    @cached_property
    def application(self) -> tuple[Role, ...]:
        """The roles as which tenants' requests run, those that exist, by name."""
        known = self.facts.roles
        return tuple(known[each] for each in sorted(self.scope.application) if each in known)

    def can(self, role: str, thing: Owned, privilege: Privilege) -> bool:
        """Whether ``role`` holds ``privilege`` on ``thing`` by itself: by ACL, inheritance, ownership or as a
        superuser; not what it could do after SET ROLE (see :meth:`could`)."""
        if self._is_superuser(role):
            return True
        held = self.reach.inherits(role)
        return granted(_grants(thing), held, privilege) or self._reads_all(role, privilege)

    def could(self, role: str, thing: Owned, privilege: Privilege) -> bool:
        """The same with every role that it can SET ROLE to."""
        return any(self.can(each, thing, privilege) for each in self.reach.assumes(role))

    def can_set(self, role: str, table: Relation, column: Column, privilege: Privilege) -> bool:
        """Whether :meth:`could` holds of this one column: by a grant on the table, or on the column."""
        return self.could(role, replace(table, columns=(column,)), privilege)

    def users(self, thing: Owned, privilege: Privilege) -> tuple[Role, ...]:
        """The application's roles that :meth:`could`, and may enter its schema, where it lies in one."""
        able = (each for each in self.application if self.could(each.name, thing, privilege))
        return tuple(each for each in able if self._enters(each.name, thing))

    def _enters(self, role: str, thing: Owned) -> bool:
        schema = self.facts.schemas.get(getattr(thing, "schema", ""))
        return schema is None or self.could(role, schema, "USAGE")

    def granted(self, role: str, thing: Owned, privilege: Privilege) -> bool:
        """Whether it holds or could take on a grant that somebody made: what owners and superusers may do
        anyway does not count."""
        made = [each for each in _grants(thing) if each.grantee != thing.owner]
        return granted(made, self.reach.acts_as(role), privilege) and self._enters(role, thing)

    def owns(self, role: str, thing: Owned) -> bool:
        """Whether it counts as the owner: is it, or inherits from it."""
        return self._is_superuser(role) or thing.owner in self.reach.inherits(role)

    def could_own(self, role: str, thing: Owned) -> bool:
        """The same with every role that it can SET ROLE to."""
        return any(self.owns(each, thing) for each in self.reach.assumes(role))

    def skips_policies(self, role: str, table: Relation) -> bool:
        """Whether policies of ``table`` do not hold ``role`` as it is: RLS off, superuser, BYPASSRLS (neither
        is inherited), or an owner that is not forced (that is)."""
        known = self.facts.roles.get(role)
        if not table.rls_enabled or (known is not None and (known.superuser or known.bypasses_rls)):
            return True
        return not table.rls_forced and table.owner in self.reach.inherits(role)

    def sees_all(self, role: str, table: Relation) -> bool:
        """Whether ``role`` as it is sees rows of every tenant: policies do not hold it, or one that is for it
        lets every row pass."""
        if self.skips_policies(role, table):
            return True
        shown = (each for each in self.policies_of.get(table.oid, ()) if each.permissive and each.using_tree)
        return any(
            each.command in {"ALL", "SELECT"}
            and self.applies(each, role)
            and is_true(read(each.using_tree or ""))
            for each in shown
        )

    def _is_superuser(self, role: str) -> bool:
        known = self.facts.roles.get(role)
        return known is not None and known.superuser

    def _reads_all(self, role: str, privilege: Privilege) -> bool:
        held = self.reach.inherits(role)
        return (privilege == "SELECT" and "pg_read_all_data" in held) or (
            privilege in _WRITES and "pg_write_all_data" in held
        )

    # What

    @cached_property
    def tenant_tables(self) -> tuple[Relation, ...]:
        """The tables whose rows belong to tenants, by name."""
        found = (self.facts.relations[oid] for oid in self.scope.tenant_tables)
        return tuple(sorted(found, key=lambda each: each.title))

    def is_tenant_table(self, oid: int) -> bool:
        return oid in self.scope.tenant_tables

    def tenant_column(self, oid: int) -> str:
        """The name of the table's tenant column, "" where it has none or is no tenant table."""
        return self.scope.tenant_tables.get(oid, "")

    def tenant_number(self, oid: int) -> int:
        """The attribute number of the tenant column, 0 where there is none."""
        table, name = self.facts.relations.get(oid), self.tenant_column(oid)
        column = table.column(name) if table is not None and name else None
        return column.number if column else 0

    @cached_property
    def by_name(self) -> Mapping[str, tuple[Relation, ...]]:
        """Relations by their name without schema."""
        found: dict[str, list[Relation]] = defaultdict(list)
        for each in self.facts.relations.values():
            found[each.name].append(each)
        return {name: tuple(each) for name, each in found.items()}

    @cached_property
    def functions_by_name(self) -> Mapping[str, tuple[Function, ...]]:
        """Functions of one's own, no extension's, by their name without schema."""
        found: dict[str, list[Function]] = defaultdict(list)
        for each in self.facts.functions.values():
            if not each.extension:
                found[each.name].append(each)
        return {name: tuple(each) for name, each in found.items()}

    def in_scope(self, schema: str) -> bool:
        return not self.scope.schemas or schema in self.scope.schemas

    def relations(self, *kinds: str) -> Iterator[Relation]:
        """Those of these kinds that are in scope and no extension's, by name."""
        found = (each for each in self.facts.relations.values() if each.kind in kinds and not each.extension)
        yield from sorted((each for each in found if self.in_scope(each.schema)), key=lambda each: each.title)

    def own_functions(self) -> Iterator[Function]:
        """Those in scope and no extension's, by name."""
        found = (each for each in self.facts.functions.values() if not each.extension)
        yield from sorted((each for each in found if self.in_scope(each.schema)), key=lambda each: each.title)

    @cached_property
    def policies_of(self) -> Mapping[int, tuple[Policy, ...]]:
        return _by_relation(self.facts.policies)

    @cached_property
    def constraints_of(self) -> Mapping[int, tuple[Constraint, ...]]:
        return _by_relation(self.facts.constraints)

    @cached_property
    def indexes_of(self) -> Mapping[int, tuple[Index, ...]]:
        return _by_relation(self.facts.indexes)

    @cached_property
    def triggers_of(self) -> Mapping[int, tuple[Trigger, ...]]:
        return _by_relation(self.facts.triggers)

    @cached_property
    def rewrite_rules_of(self) -> Mapping[int, tuple[RewriteRule, ...]]:
        return _by_relation(self.facts.rewrite_rules)

    @cached_property
    def readers_of(self) -> Mapping[int, tuple[Relation, ...]]:
        """The views and materialized views that read a relation directly."""
        found: dict[int, list[Relation]] = defaultdict(list)
        for each in self.facts.relations.values():
            for oid in each.reads:
                found[oid].append(each)
        return {oid: tuple(each) for oid, each in found.items()}

    @cached_property
    def children_of(self) -> Mapping[int, tuple[Relation, ...]]:
        """The partitions and inheritance children of a table."""
        found: dict[int, list[Relation]] = defaultdict(list)
        for each in self.facts.relations.values():
            for oid in each.parents:
                found[oid].append(each)
        return {oid: tuple(each) for oid, each in found.items()}

    # What policies say

    def using(self, policy: Policy) -> Expression | None:
        """Which rows it shows, or lets be changed; None for a policy of INSERT."""
        return None if policy.using_tree is None else read(policy.using_tree)

    def check(self, policy: Policy) -> Expression | None:
        """Which rows may be written: WITH CHECK, or USING where the server takes that in its place."""
        if policy.check_tree is not None:
            return read(policy.check_tree)
        return self.using(policy) if policy.command in {"ALL", "UPDATE"} else None

    def expressions(self, policy: Policy) -> tuple[Expression, ...]:
        """USING, and WITH CHECK where it says something else."""
        using, check = self.using(policy), self.check(policy)
        found = (using,) if check is using else (using, check)
        return tuple(each for each in found if each is not None)

    def asks(self, policy: Policy) -> frozenset[int]:
        """OIDs of the relations that its subselects read."""
        return self.once(
            ("asks", policy.oid), lambda: frozenset().union(*map(relations, self.expressions(policy)))
        )

    def runs(self, policy: Policy) -> frozenset[int]:
        """OIDs of the functions that it runs: calls, operators and casts."""
        return self.once(
            ("runs", policy.oid), lambda: frozenset().union(*map(functions, self.expressions(policy)))
        )

    def applies(self, policy: Policy, role: str) -> bool:
        """Whether it is for ``role``: its TO names it, or a role whose rights it inherits, or nobody."""
        return PUBLIC in policy.roles or not self.reach.inherits(role).isdisjoint(policy.roles)

    def for_application(self, policy: Policy) -> bool:
        """Whether it is for one of the application's roles, or one that they can SET ROLE to."""
        return PUBLIC in policy.roles or not self._acting.isdisjoint(policy.roles)

    @cached_property
    def _acting(self) -> frozenset[str]:
        """Every role that policies may name and mean the application."""
        return frozenset().union(*(self.reach.acts_as(role.name) for role in self.application))

    def bindings(self, policy: Policy, expression: Expression | None) -> tuple[Binding, ...]:
        """How ``expression`` of ``policy`` holds rows to a tenant by the table's tenant column: see
        :func:`tenantry.rls.meaning.bindings`."""
        number = self.tenant_number(policy.relation)
        return bindings(expression, self.equalities, number) if expression is not None and number else ()

    @cached_property
    def equalities(self) -> frozenset[int]:
        """OIDs of the operators that are called ``=``."""
        return frozenset(oid for oid, each in self.facts.operators.items() if each.name == "=")

    def function(self, oid: int) -> Function | BuiltIn | None:
        return self.facts.functions.get(oid) or self.facts.builtin.get(oid)


def _grants(thing: Owned) -> Iterable[Grant]:
    """Those on the thing, and on single columns of it: one column is enough to be inside."""
    columns = thing.columns if isinstance(thing, Relation) else ()
    some = [grant for column in columns for grant in column.grants]
    return (*thing.grants, *some) if some else thing.grants


def _by_relation(things: Iterable[_T]) -> dict[int, tuple[_T, ...]]:
    found: dict[int, list[_T]] = defaultdict(list)
    for each in things:
        found[each.relation].append(each)
    return {oid: tuple(each) for oid, each in found.items()}
