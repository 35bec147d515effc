"""Attempts to become somebody whom policies do not hold, and what else privileges let through. Pure."""

from collections.abc import Iterator

from tenantry.rls.facts import Relation
from tenantry.rls.names import quoted
from tenantry.rls.prove.model import Attempt, Bound
from tenantry.rls.prove.stances import Attacker
from tenantry.rls.prove.values import literal


def becoming(attacker: Attacker) -> Iterator[Attempt]:
    scene, role = attacker.scene, attacker.role
    assumed = scene.reach.assumes(role)
    for table in attacker.planted:
        for other in sorted(assumed - {role}):
            yield _as(attacker, table, ("become", other), (f"SET ROLE {quoted(other)}",))
        for owner in sorted(each for each in assumed if scene.owns(each, table)):
            if owner == role or not scene.facts.roles[owner].superuser:
                yield _as(attacker, table, ("owner", owner), _unlocked(owner, table))
        for other in sorted(scene.reach.takes(role) - scene.reach.acts_as(role)):
            yield _as(attacker, table, ("admin", other), _taken(attacker, other, table))
    yield from _sequences(attacker)


def _unlocked(owner: str, table: Relation) -> tuple[str, ...]:
    return (f"SET ROLE {quoted(owner)}", f"ALTER TABLE {table.title} DISABLE ROW LEVEL SECURITY")


def _taken(attacker: Attacker, other: str, table: Relation) -> tuple[str, ...]:
    newer = attacker.scene.facts.server.major >= 16
    how = " WITH INHERIT TRUE, SET TRUE" if newer else ""
    take = f"GRANT {quoted(other)} TO {quoted(attacker.role)}{how}"
    if attacker.scene.owns(other, table):
        return (take, *_unlocked(other, table))
    return (take, f"SET ROLE {quoted(other)}")


def _as(attacker: Attacker, table: Relation, way: tuple[str, str], steps: tuple[str, ...]) -> Attempt:
    door, role = way
    return Attempt(
        door=door,
        role=attacker.role,
        settings=attacker.binding(Bound.A, (table.title,)),
        statements=steps,
        asked=attacker.selection(table),
        tables=frozenset({table.title}),
        through=role,
        reads=True,
    )


def _sequences(attacker: Attacker) -> Iterator[Attempt]:
    known, planted = attacker.scene.facts.relations, {each.oid for each in attacker.planted}
    for sequence in attacker.scene.relations("sequence"):
        owner = sequence.owned_by[0] if sequence.owned_by else 0
        if owner not in planted:
            continue
        tables = frozenset({known[owner].title})
        if attacker.scene.can(attacker.role, sequence, "SELECT"):
            asked = f"SELECT last_value FROM {sequence.title}"
            yield _open(attacker, sequence, asked, tables)
        if attacker.scene.can(attacker.role, sequence, "UPDATE"):
            asked = f"SELECT has_sequence_privilege({literal(sequence.title)}, 'UPDATE')"
            yield _open(attacker, sequence, asked, tables)


def _open(attacker: Attacker, sequence: Relation, asked: str, tables: frozenset[str]) -> Attempt:
    return Attempt(
        door="sequence",
        role=attacker.role,
        settings=attacker.binding(Bound.A, tables),
        asked=asked,
        tables=tables,
        through=sequence.title,
        by_success=True,
    )
