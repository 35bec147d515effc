"""Which views show application roles the rows of tenant tables, and would show them everybody's. Pure.

A view is read with its owner's rights, and so under the policies that hold its owner, unless it is a
``security_invoker``. That goes for the views inside it too: each link of the chain must be one.
"""

from collections.abc import Iterator

from tenantry.rls.facts import Relation
from tenantry.rls.ground import Ground


def views_to_change(ground: Ground) -> tuple[Relation, ...]:
    """The views through which application roles reach rows of tenant tables and that are not read as who
    asks, by name."""
    reached = [each for each in _reached(ground) if each.kind == "view" and not each.security_invoker]
    return tuple(sorted(reached, key=lambda each: each.title))


def stored_views(ground: Ground) -> tuple[Relation, ...]:
    """Materialized views with tenants' rows that application roles may read: no policy holds on them."""
    return tuple(each for each in _reached(ground) if each.kind == "materialized view")


def read_besides(ground: Ground, view: Relation) -> Iterator[Relation]:
    """What ``view`` reads directly that no plan lets application roles read."""
    for oid in view.reads:
        relation, table = ground.facts.relations.get(oid), ground.tenant_tables.get(oid)
        if relation is not None and (table is None or "select" not in table.grants):
            yield relation


def _reached(ground: Ground) -> list[Relation]:
    """Views and materialized views between an application role and a tenant table."""
    touching = _upwards(ground)
    waiting = [each for each in touching.values() if ground.readers(each)]
    found: dict[int, Relation] = {}
    while waiting:
        each = waiting.pop()
        if each.oid in found or each.extension:
            continue
        found[each.oid] = each
        if (
            each.kind == "view"
        ):  # a materialized one holds a copy: what it was made from is not read through it
            waiting += [touching[oid] for oid in each.reads if oid in touching]
    return list(found.values())


def _upwards(ground: Ground) -> dict[int, Relation]:
    """All that reads a tenant table, through however many views."""
    found: dict[int, Relation] = {}
    waiting = list(ground.tenant_tables)
    while waiting:
        for each in ground.scene.readers_of.get(waiting.pop(), ()):
            if each.oid not in found:
                found[each.oid] = each
                waiting.append(each.oid)
    return found
