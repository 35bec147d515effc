"""The SQL that leads unique keys, and the foreign keys that refer to them, with the tenant.

It runs as it is given, statement by statement, and findings of one audit can be mended in any order: a unique
index that two of them need has one name, and is made where it is not there yet.
"""

from collections.abc import Sequence
from itertools import count

from tenantry.rls.facts import Constraint, Index, Relation
from tenantry.rls.names import quoted
from tenantry.rls.scene import Scene

_LONGEST = 63
"""Bytes of a name."""


def concurrently(table: Relation) -> str:
    """The word for an index of ``table`` that is made or dropped while others write; "" where none may be."""
    return "" if table.kind == "partitioned table" else " CONCURRENTLY"


def wider_key(scene: Scene, table: Relation, index: Index) -> str:
    """A key that begins with the tenant in place of ``index``, and what refers to it made to refer to that.

    Where a table refers to it that has no tenant, the last step is left to people, in a comment.
    """
    if parents_index(scene, table, index) is not None:
        return "-- it is the partition's part of its parent's: mend that one"
    found = _same(scene, table, index)
    name = found.name if found is not None else _new_name(scene, table, index)
    steps = [] if found is not None else [_create(scene, table, index, name)]
    waits = []
    for key in _referring(scene, table, index):
        child = scene.facts.relations[key.relation]
        if scene.tenant_column(child.oid):
            steps.append(_refer(scene, child, table, key))
        else:
            waits.append(f"{quoted(key.name)} of {child.title}")
    if waits:
        said = f"-- {', '.join(waits)} has no tenant to refer by: give it one, refer by both, then drop"
        return "\n".join([*steps, f"{said} {quoted(index.name)}"])
    return "\n".join([*steps, _replace(scene, table, index, name)])


def parents_index(scene: Scene, table: Relation, index: Index) -> Index | None:
    """The index of a partition's parent over the same keys: then this one cannot be dropped by itself."""
    if not table.is_partition:
        return None
    looks = (index.keys, index.unique, index.predicate, index.included)
    others = (each for oid in table.parents for each in scene.indexes_of.get(oid, ()))
    return next((e for e in others if (e.keys, e.unique, e.predicate, e.included) == looks), None)


def wider_reference(scene: Scene, table: Relation, parent: Relation, key: Constraint) -> str:
    """``key`` of ``table`` with the tenant in it, after the unique key of ``parent`` that it needs."""
    if scene.tenant_column(table.oid) in key.columns:
        return ""  # it ties the tenant to something else: what was meant is not known
    referred = (scene.tenant_column(parent.oid), *key.referenced_columns)
    steps = []
    if _unique(scene, parent, referred) is None:
        name, columns = _name(scene, parent, _plain(parent, referred)), ", ".join(map(quoted, referred))
        steps.append(_create_on(parent, name, f"({columns})"))
    return "\n".join([*steps, _refer(scene, table, parent, key)])


def _refer(scene: Scene, table: Relation, parent: Relation, key: Constraint) -> str:
    own, others = scene.tenant_column(table.oid), scene.tenant_column(parent.oid)
    columns = ", ".join(map(quoted, (own, *key.columns)))
    referred = ", ".join(map(quoted, (others, *key.referenced_columns)))
    deletes, updates = _on_delete(key), ""
    if key.on_update not in {"no action", "set null", "set default"}:
        updates = f" ON UPDATE {key.on_update.upper()}"
    return (
        f"ALTER TABLE {table.title} DROP CONSTRAINT IF EXISTS {quoted(key.name)},\n"
        f"    ADD CONSTRAINT {quoted(key.name)} FOREIGN KEY ({columns})\n"
        f"    REFERENCES {parent.title} ({referred}){deletes}{updates};"
    ) + _left_out(key)


def _on_delete(key: Constraint) -> str:
    """As it was; but what takes a value away takes not the tenant."""
    if key.on_delete == "no action":
        return ""
    only = f" ({', '.join(map(quoted, key.columns))})" if key.on_delete.startswith("set ") else ""
    return f" ON DELETE {key.on_delete.upper()}{only}"


def _left_out(key: Constraint) -> str:
    if key.on_update not in {"set null", "set default"}:
        return ""
    return f"\n-- ON UPDATE {key.on_update.upper()} is left out: it would take the tenant as well"


def _constraint(scene: Scene, table: Relation, index: Index) -> Constraint | None:
    """The constraint whose index it is."""
    kept = (each for each in scene.constraints_of.get(table.oid, ()) if each.kind != "foreign key")
    return next((each for each in kept if each.index == index.oid), None)


def _referring(scene: Scene, table: Relation, index: Index) -> list[Constraint]:
    return [
        each
        for each in scene.facts.constraints
        if each.kind == "foreign key"
        and each.references == table.oid
        and each.index == index.oid
        and not each.inherited
    ]


def _unique(scene: Scene, table: Relation, columns: Sequence[str]) -> Index | None:
    """A unique key of ``table`` over just these columns that a foreign key may refer to."""
    for each in scene.indexes_of.get(table.oid, ()):
        usable = each.unique and each.valid and each.immediate and not each.predicate
        if usable and sorted(key.column or "" for key in each.keys) == sorted(columns):
            return each
    return None


def _same(scene: Scene, table: Relation, index: Index) -> Index | None:
    """The key that is wanted, where it is there already."""
    columns = [key.column for key in index.keys if key.column]
    if index.predicate or not index.immediate or len(columns) < len(index.keys):
        return None
    return _unique(scene, table, (scene.tenant_column(table.oid), *columns))


def _replace(scene: Scene, table: Relation, index: Index, name: str) -> str:
    """``index`` goes; where it was a constraint, the index ``name`` takes its place, unless it is one."""
    own = _constraint(scene, table, index)
    if own is None:
        return f"DROP INDEX{concurrently(table)} {quoted(table.schema)}.{quoted(index.name)};"
    drop = f"ALTER TABLE {table.title} DROP CONSTRAINT {quoted(own.name)}"
    new = next((each for each in scene.indexes_of.get(table.oid, ()) if each.name == name), None)
    is_kept = new is not None and _constraint(scene, table, new) is not None
    if is_kept or table.kind == "partitioned table":  # which takes no index as a constraint
        return f"{drop};"
    later = "" if index.immediate else " DEFERRABLE"
    return f"{drop},\n    ADD {own.kind.upper()} USING INDEX {quoted(name)}{later};"


def _create(scene: Scene, table: Relation, index: Index, name: str) -> str:
    keys = [quoted(scene.tenant_column(table.oid))]
    keys += [quoted(key.column) if key.column else f"({key.expression})" for key in index.keys]
    included = f" INCLUDE ({', '.join(map(quoted, index.included))})" if index.included else ""
    where = f" WHERE {index.predicate}" if index.predicate else ""
    return _create_on(table, name, f"({', '.join(keys)}){included}{where}")


def _create_on(table: Relation, name: str, keys: str) -> str:
    making = f"CREATE UNIQUE INDEX{concurrently(table)} IF NOT EXISTS {quoted(name)}"
    return f"{making} ON {table.title} {keys};"


def _new_name(scene: Scene, table: Relation, index: Index) -> str:
    """By its columns, so that a foreign key to them finds it; else by the index that it replaces."""
    columns = [key.column for key in index.keys if key.column]
    if index.predicate or not index.immediate or len(columns) < len(index.keys):
        return _name(scene, table, f"{index.name}_by_tenant")
    return _name(scene, table, _plain(table, (scene.tenant_column(table.oid), *columns)))


def _plain(table: Relation, columns: Sequence[str]) -> str:
    """As the server would name it."""
    return "_".join((table.name, *columns))


def _name(scene: Scene, table: Relation, stem: str) -> str:
    """``stem_key``, as long as names may be, numbered where that is taken."""
    here = {each.oid: each.name for each in scene.facts.relations.values() if each.schema == table.schema}
    taken = {*here.values(), *(each.name for each in scene.facts.indexes if each.relation in here)}
    for number in count():
        ending = f"_key{number or ''}"
        name = stem.encode()[: _LONGEST - len(ending)].decode(errors="ignore") + ending
        if name not in taken:
            return name
    raise AssertionError("numbers do not end")
