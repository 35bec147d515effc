"""Attempts to write another tenant's rows, and to learn of them by what a write runs into. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tenantry.rls.facts import Column, Constraint, Relation
from tenantry.rls.names import quoted
from tenantry.rls.prove.model import Attempt, Bound, Row
from tenantry.rls.prove.outside import set_off
from tenantry.rls.prove.planting import Tenant, drafted, insertion
from tenantry.rls.prove.stances import Attacker, equals
from tenantry.rls.roles import Privilege

_BOUNDS = (Bound.NOBODY, Bound.A, Bound.EMPTY)
_WRITES: tuple[Privilege, ...] = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")
_ACTING = {"cascade", "set null", "set default"}


def writing(attacker: Attacker) -> Iterator[Attempt]:
    scene, silent = attacker.scene, set_off(attacker.scene)
    for table in attacker.planted:
        if table.oid in silent:
            continue
        if attacker.field.tenant_value(table, attacker.field.a):
            yield from _writes(attacker, table)
            yield from _collisions(attacker, table)
            yield from _references(attacker, table)
        yield from _fires(attacker, table)
    for relation, tables in attacker.reached:
        if relation.kind == "view":
            yield from _view_writes(attacker, relation, tables)
    told = {relation.oid for relation, _ in attacker.reached}
    for relation in scene.relations("table", "partitioned table", "view"):
        if relation.oid not in told | silent.keys() and relation.oid in scene.rewrite_rules_of:
            yield from _fires(attacker, relation)


def _attempt(
    attacker: Attacker, door: str, table: Relation, asked: str, *, bound: Bound = Bound.A
) -> Attempt:
    return Attempt(
        door=door,
        role=attacker.role,
        bound=bound,
        settings=attacker.binding(bound, (table.title,)),
        asked=asked,
        tables=frozenset({table.title}),
    )


def _writes(attacker: Attacker, table: Relation) -> Iterator[Attempt]:
    scene, field, title = attacker.scene, attacker.field, table.title
    able = {each for each in _WRITES if scene.can(attacker.role, table, each)}
    column = scene.tenant_column(table.oid)
    for other in (each for each in field.others[:1] if table.oid in each.rows):
        theirs, ours = field.tenant_value(table, other), field.tenant_value(table, field.a)
        moved = _moved(attacker, table, other)
        for bound in _BOUNDS:
            if "INSERT" in able:
                row = _allowed(attacker, table, drafted(field, table, other, fresh=7))
                yield _attempt(attacker, "insert", table, insertion(title, row), bound=bound)
            if "UPDATE" in able:
                same = f"UPDATE {title} SET {equals(column, theirs)} WHERE {equals(column, theirs)}"
                yield _attempt(attacker, "update", table, same, bound=bound)
            if "DELETE" in able:
                gone = f"DELETE FROM {title} WHERE {equals(column, theirs)}"
                yield _attempt(attacker, "delete", table, gone, bound=bound)
        if "UPDATE" in able:
            into = f"UPDATE {title} SET {moved} WHERE {equals(column, ours)}"
            yield _attempt(attacker, "move", table, into)
            if attacker.is_small(table):
                yield _attempt(attacker, "move", table, f"UPDATE {title} SET {moved}")
        if "DELETE" in able and attacker.is_small(table):
            yield _attempt(attacker, "delete", table, f"DELETE FROM {title}")
    if "TRUNCATE" in able:
        yield _attempt(attacker, "truncate", table, f"TRUNCATE {title}")
        yield _attempt(attacker, "truncate", table, f"TRUNCATE {title} CASCADE")
    if scene.granted(attacker.role, table, "TRIGGER"):
        yield _watch(attacker, table)


def _moved(attacker: Attacker, table: Relation, other: Tenant) -> str:
    """What makes a row the other's: the tenant column, and what it refers to by it."""
    row = drafted(attacker.field, table, other)
    column = attacker.scene.tenant_column(table.oid)
    names = {column}
    for key in attacker.scene.constraints_of.get(table.oid, ()):
        if key.kind == "foreign key" and column in key.columns and key.references != table.oid:
            names |= set(key.columns) & row.keys()
    return ", ".join(equals(name, row[name] or "") for name in sorted(names))


def _watch(attacker: Attacker, table: Relation) -> Attempt:
    return Attempt(
        door="trigger",
        role=attacker.role,
        settings=attacker.binding(Bound.A, (table.title,)),
        statements=(
            "CREATE FUNCTION pg_temp.watch() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE NOTICE '%', NEW; RETURN NEW; END $$",
        ),
        asked=f"CREATE TRIGGER watch BEFORE INSERT OR UPDATE ON {table.title} "
        "FOR EACH ROW EXECUTE FUNCTION pg_temp.watch()",
        tables=frozenset({table.title}),
        by_success=True,
    )


def _keys(attacker: Attacker, table: Relation) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Names of keys, with the columns of which rows may not be alike; None where an expression is."""
    scene = attacker.scene
    for index in scene.indexes_of.get(table.oid, ()):
        if index.unique and index.valid and not index.exclusion:
            names = [each.column for each in index.keys]
            yield index.name, None if None in names else tuple(each for each in names if each)
    for each in scene.constraints_of.get(table.oid, ()):
        if each.kind == "exclusion":
            yield each.name, each.columns or None


def _chosen(attacker: Attacker, table: Relation, names: Iterable[str]) -> bool:
    """Whether an attacker could give another's values: not where they cannot be guessed, or are computed, or
    drawn by the server with no privilege to give them."""
    return all(
        each is not None
        and each.type != "uuid"
        and not each.generated
        and not (each.is_drawn and not _gives(attacker, table, each))
        for each in map(table.column, names)
    )


def _gives(attacker: Attacker, table: Relation, column: Column) -> bool:
    return attacker.scene.can_set(attacker.role, table, column, "INSERT")


def _allowed(attacker: Attacker, table: Relation, row: Row) -> dict[str, str | None]:
    """What of ``row`` the attacker may say in an INSERT: the server draws the rest, and refuses more."""
    found = [each.name for each in table.columns if _gives(attacker, table, each)]
    return {name: text for name, text in row.items() if name in found}


def _collisions(attacker: Attacker, table: Relation) -> Iterator[Attempt]:
    scene, field = attacker.scene, attacker.field
    if not scene.can(attacker.role, table, "INSERT"):
        return
    column = scene.tenant_column(table.oid)
    for number, (key, names) in enumerate(_keys(attacker, table)):
        for theirs in list(attacker.rows(table.oid))[:1]:
            copied = [each for each in names or _plain(table, column) if each != column]
            if not copied or not _chosen(attacker, table, copied):
                continue
            ours = drafted(field, table, field.a, fresh=11 + number)
            row = {**ours, **{name: theirs[name] for name in copied if name in theirs}}
            row = _allowed(attacker, table, row)
            made = _attempt(attacker, "collide", table, insertion(table.title, row))
            yield replace(made, aim=_aim(key, table))
            if names and scene.can(attacker.role, table, "UPDATE"):
                yield replace(
                    made, door="upsert", asked=_upsert(table, row, theirs, names), aim=_aim(key, table)
                )


def _aim(key: str, table: Relation) -> str:
    return f"{quoted(key)} on {table.title}"


def _plain(table: Relation, column: str) -> list[str]:
    return [each.name for each in table.columns if each.type != "uuid" and each.name != column]


def _upsert(table: Relation, row: Row, theirs: Row, names: tuple[str, ...]) -> str:
    """An upsert whose condition fails with the value of the row that is in its way."""
    texts = [each.name for each in table.columns
             if each.type.startswith(("text", "character")) and theirs.get(each.name)]  # fmt: skip
    told = f" WHERE d.{quoted(texts[-1])}::int > 0" if texts else ""
    keys = ", ".join(map(quoted, names))
    kept = quoted(names[0])
    put = insertion(f"{table.title} AS d", row)
    return f"{put} ON CONFLICT ({keys}) DO UPDATE SET {kept} = EXCLUDED.{kept}{told}"


def _references(attacker: Attacker, table: Relation) -> Iterator[Attempt]:
    scene = attacker.scene
    for key in scene.constraints_of.get(table.oid, ()):
        parent = scene.facts.relations.get(key.references)
        if key.kind != "foreign key" or parent is None or not scene.is_tenant_table(parent.oid):
            continue
        for other in attacker.field.others[:1]:
            if parent.oid in other.rows and parent.oid in attacker.field.a.rows:
                yield from _oracle(attacker, table, key, other)
                yield from _cascade(attacker, (table, parent), key, other)


def _free(attacker: Attacker, table: Relation, key: Constraint, row: Row) -> dict[str, str | None]:
    """The key's columns but for the tenant's, with the values that ``row`` has where they lead."""
    tenant = attacker.scene.tenant_column(table.oid)
    pairs = zip(key.columns, key.referenced_columns, strict=True)
    return {own: row[theirs] for own, theirs in pairs if own != tenant and theirs in row}


def _oracle(attacker: Attacker, table: Relation, key: Constraint, other: Tenant) -> Iterator[Attempt]:
    leading = _free(attacker, table, key, other.rows[key.references])
    if leading and attacker.scene.can(attacker.role, table, "INSERT"):
        row = {**drafted(attacker.field, table, attacker.field.a, fresh=13), **leading}
        row = _allowed(attacker, table, row)
        parent = attacker.scene.facts.relations[key.references]
        made = _attempt(attacker, "refer", table, insertion(table.title, row))
        yield replace(made, tables=frozenset({table.title, parent.title}), aim=_aim(key.name, table))


def _cascade(
    attacker: Attacker, tables: tuple[Relation, Relation], key: Constraint, other: Tenant
) -> Iterator[Attempt]:
    table, parent = tables
    ours = attacker.field.a.rows[parent.oid]
    leading = _free(attacker, table, key, ours)
    if key.on_delete not in _ACTING or not leading or table.oid not in other.rows:
        return
    if not attacker.scene.can(attacker.role, parent, "DELETE"):
        return
    theirs = equals(attacker.scene.tenant_column(table.oid), attacker.field.tenant_value(table, other))
    leads = ", ".join(equals(name, text or "") for name, text in leading.items())
    own = attacker.field.tenant_value(parent, attacker.field.a)
    yield Attempt(
        door="cascade",
        role=attacker.role,
        settings=attacker.binding(Bound.A, (table.title,)),
        prepare=(f"UPDATE {table.title} SET {leads} WHERE {theirs}",),
        asked=f"DELETE FROM {parent.title} WHERE {equals(attacker.scene.tenant_column(parent.oid), own)}",
        tables=frozenset({table.title, parent.title}),
        aim=_aim(key.name, table),
    )


def _view_writes(attacker: Attacker, view: Relation, tables: frozenset[str]) -> Iterator[Attempt]:
    scene = attacker.scene
    based = [each for each in attacker.planted if each.title in tables]
    for table in based[:2]:
        column = scene.tenant_column(table.oid)
        for other in (each for each in attacker.field.others[:1] if table.oid in each.rows):
            theirs = equals(column, attacker.field.tenant_value(table, other))
            asked = []
            if scene.can(attacker.role, view, "INSERT"):
                asked += [_into(view, each) for each in _offers(attacker, table, other)]
            if column and view.column(column) and scene.can(attacker.role, view, "UPDATE"):
                asked.append(f"UPDATE {view.title} SET {theirs} WHERE {theirs}")
            if column and view.column(column) and scene.can(attacker.role, view, "DELETE"):
                asked.append(f"DELETE FROM {view.title} WHERE {theirs}")
            for each in filter(None, asked):
                yield Attempt(
                    door="view write",
                    role=attacker.role,
                    settings=attacker.binding(Bound.A, (table.title,)),
                    asked=each,
                    tables=frozenset({table.title}),
                    through=view.title,
                )


def _into(view: Relation, row: Row) -> str:
    shown = {name: text for name, text in row.items() if view.column(name)}
    return insertion(view.title, shown, overriding=False) if shown else ""


def _offers(attacker: Attacker, table: Relation, other: Tenant) -> Iterator[Row]:
    """A new row of the other's, and one with the keys of the row that it has."""
    yield drafted(attacker.field, table, other, fresh=19)
    own = other.rows[table.oid]
    yield {name: f"{text}." if _is_text(table, name) else text for name, text in own.items()}


def _is_text(table: Relation, name: str) -> bool:
    column = table.column(name)
    return column is not None and column.type == "text" and name != "tenant_id"


def _fires(attacker: Attacker, relation: Relation) -> Iterator[Attempt]:
    """An insert that sets off rules and triggers, with the keys of another tenant's rows where they fit."""
    scene, field = attacker.scene, attacker.field
    rules = scene.rewrite_rules_of.get(relation.oid, ())
    triggers = [each for each in scene.triggers_of.get(relation.oid, ()) if "INSERT" in each.events]
    if not (rules or triggers) or not scene.can(attacker.role, relation, "INSERT"):
        return
    through = ", ".join([*(each.name for each in rules), *(each.name for each in triggers)])
    mine = drafted(field, relation, field.a, fresh=17)
    for other in field.others[:1]:
        for table in [each for each in attacker.planted if each.oid in other.rows][:6]:
            row = mine if scene.is_tenant_table(relation.oid) else _fitted(mine, other.rows[table.oid])
            yield Attempt(
                door="fire",
                role=attacker.role,
                settings=attacker.binding(Bound.A, (table.title,)),
                asked=insertion(relation.title, row, overriding=relation.kind != "view"),
                tables=frozenset({table.title}),
                through=f"{relation.title} ({through})",
            )


def _fitted(row: Row, theirs: Mapping[str, str | None]) -> Row:
    return {name: theirs.get(name, text) for name, text in row.items()}
