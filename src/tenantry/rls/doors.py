"""Which tenants' rows come through views, materialized views and functions that run as somebody else.

Source: PostgreSQL's documentation of CREATE VIEW. The relations of a view are asked for as its owner, those
of a view with ``security_invoker`` as the current user, also where such a view stands inside another. What a
materialized view holds was read as its owner. Pure.
"""

from collections.abc import Iterator

from tenantry.rls.bodies import functions_named, tables_named
from tenantry.rls.expression import Query, read_query, walk
from tenantry.rls.facts import Function, Relation
from tenantry.rls.meaning import bindings
from tenantry.rls.scene import Scene

_VIEWS = frozenset({"view", "materialized view"})


class Doors:
    """Not changed once made. What it finds is kept: a view that many others read is followed once a user."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._known: dict[tuple[int, str], dict[int, Relation]] = {}

    def leaks(self, relation: Relation, user: str) -> dict[int, Relation]:
        """The tenant tables of which ``user`` would see every tenant's rows through ``relation``, each with
        the view that opens it. What the view itself holds to the tenant is left out."""
        key = (relation.oid, user)
        if key not in self._known:
            self._known[key] = {}  # a circle of views cannot be, but facts are only data
            self._known[key] = dict(self._through(relation, user))
        return self._known[key]

    def _through(self, relation: Relation, user: str) -> Iterator[tuple[int, Relation]]:
        if relation.kind not in _VIEWS:
            return
        user = relation.owner if relation.kind == "materialized view" else user
        asking = user if relation.security_invoker else relation.owner
        for oid in relation.reads:
            read = self._scene.facts.relations.get(oid)
            if read is None or self._filters(relation, read):
                continue
            if self._scene.is_tenant_table(oid) and self._scene.sees_all(asking, read):
                yield oid, relation
            yield from (
                (table, relation if relation.kind == "materialized view" else opener)
                for table, opener in self.leaks(read, user).items()
            )

    def _filters(self, view: Relation, read: Relation) -> bool:
        """Whether every query of the view that reads it holds its tenant column to the session's setting, and
        nobody's functions run before (``security_barrier``)."""
        name = self._scene.tenant_column(read.oid)
        names = [name] if name else sorted(self._scene.scope.columns)
        column = next((found for each in names if (found := read.column(each))), None)
        if column is None or not view.tree or view.kind != "view" or not view.security_barrier:
            return False
        queries = [each for each in walk(read_query(view.tree)) if isinstance(each, Query)]
        reading = [each for each in queries if read.oid in each.relations]
        return bool(reading) and all(self._holds(each, read.oid, column.number) for each in reading)

    def _holds(self, query: Query, oid: int, column: int) -> bool:
        if query.condition is None or query.relations.count(oid) > 1:
            return False
        held = bindings(query.condition, self._scene.equalities, column, oid)
        return bool(held) and all(each.reading is not None and each.reading.default is None for each in held)

    def function_leaks(self, function: Function) -> dict[int, Relation]:
        """The tenant tables that ``function`` names, itself or through views and the functions that it calls,
        and of which whoever that runs as sees every tenant's rows, each with what it names."""
        found: dict[int, Relation] = {}
        for user, each in self._run_by(function):
            for relation in self.named(each):
                if self._scene.is_tenant_table(relation.oid) and self._scene.sees_all(user, relation):
                    found[relation.oid] = relation
                for oid in self.leaks(relation, user):
                    found.setdefault(oid, relation)
        return found

    def _run_by(self, function: Function) -> Iterator[tuple[str, Function]]:
        """The SECURITY DEFINER ``function`` and those that it calls, each with whom it runs as."""
        waiting, seen = [(function.owner, function)], {function.oid}
        while waiting:
            user, each = waiting.pop()
            yield user, each
            for schema, name in sorted(functions_named(each.source)):
                for called in self._scene.functions_by_name.get(name, ()):
                    if called.oid not in seen and schema in {"", called.schema}:
                        seen.add(called.oid)
                        waiting.append((called.owner if called.security_definer else user, called))

    def named(self, function: Function) -> Iterator[Relation]:
        """The relations that its body names: by OID where the server has parsed it, by text otherwise."""
        relations = self._scene.facts.relations
        if function.reads:
            yield from (relations[oid] for oid in function.reads if oid in relations)
            return
        for schema, name in tables_named(function.source):
            for relation in self._scene.by_name.get(name, ()):
                if schema in {"", relation.schema}:
                    yield relation
