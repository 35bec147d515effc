"""The loop: plants, makes every attempt without the other tenants and with them, and judges."""

import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence

from tenantry.kernel.errors import UsageError
from tenantry.rls.audit import Report, audit
from tenantry.rls.expression import Constant, walk
from tenantry.rls.facts import Relation
from tenantry.rls.model import Declared
from tenantry.rls.names import quoted
from tenantry.rls.prove.attack import attempts, is_first, judged, touching
from tenantry.rls.prove.limits import ALL
from tenantry.rls.prove.model import Answer, Attempt, Outcome, Proof, Row
from tenantry.rls.prove.outside import named
from tenantry.rls.prove.planting import MARK, TRIES, Field, Plot, Tenant, drafted, insertion, settings, style
from tenantry.rls.prove.ports import Range
from tenantry.rls.prove.values import likely, literal
from tenantry.rls.prove.verdicts import proved, unfound
from tenantry.rls.scene import Scene

Moved = Callable[[int, int], None]
"""Called after each attempt: how many were made, of how many."""

_MOST_OTHERS = 3
_FIRST = int(f"{MARK}01")


async def prove(
    place: Range,
    declared: Declared,
    *,
    baseline: Mapping[str, str] | None = None,
    doors: Collection[str] = ALL,
    moved: Moved = lambda done, total: None,
) -> tuple[Report, Proof]:
    """The audit of the database and what the attack says of it, by attempts of ``doors`` alone.

    Raises :class:`~tenantry.kernel.errors.UsageError` where there is nothing to attack: no tenant table, or
    nobody who may use one.
    """
    facts = await place.facts()
    report = audit(facts, declared, baseline=baseline or {})
    scene = Scene(facts, report.scope)
    if not scene.tenant_tables or not scene.application:
        raise UsageError(
            "there is nothing to attack: no tenant table, or no application role, was recognised"
        )
    run = _Run(place, await _field(place, scene), doors, moved)
    outcomes = await run.outcomes()
    found = (*report.findings, *report.accepted, *report.excused)
    return report, Proof(
        outcomes=outcomes,
        findings=tuple(proved(found, outcomes)),
        unfound=tuple(unfound(found, outcomes)),
        unplanted=run.unplanted,
        outside=named(scene),
    )


async def _field(place: Range, scene: Scene) -> Field:
    given = [each async for each in _free(place, scene, await place.bounds())]
    others = [Tenant("b", _FIRST + 1)]
    if style(scene) == "":  # tenants are texts: one that differs from A in case only
        given.insert(0, f"TENANT-{_FIRST}")
    others += [Tenant("b", _FIRST + 2 + number, text) for number, text in enumerate(given)]
    return Field(scene, await place.kinds(), Tenant("a", _FIRST), tuple(others), await place.checks())


async def _free(place: Range, scene: Scene, bounds: Mapping[int, str]) -> AsyncIterator[str]:
    """Tenants that the database's own text names and that have no rows: those can be planted too."""
    columns = [(each.title, scene.tenant_column(each.oid)) for each in scene.tenant_tables]
    taken = 0
    for text in dict.fromkeys(_named(scene, bounds)):
        free = [await place.is_free(title, column, text) for title, column in columns if column]
        if taken < _MOST_OTHERS and all(free):
            taken += 1
            yield text


def _named(scene: Scene, bounds: Mapping[int, str]) -> Iterator[str]:
    for policy in scene.facts.policies:
        if not scene.is_tenant_table(policy.relation):
            continue
        for expression in (scene.using(policy), scene.check(policy)):
            for each in walk(expression) if expression else ():
                plain = isinstance(each, Constant) and type(each.value) in {int, str}
                if isinstance(each, Constant) and plain and "." not in str(each.value):
                    yield str(each.value)
    yield from (each.value for each in scene.facts.settings if each.name in settings(scene))
    for oid, bound in bounds.items():
        if scene.is_tenant_table(oid):
            yield from (text for text in likely(bound.replace("FOR VALUES", ""))[:1])


def _row(text: str) -> Row:
    return {name: _text(each) for name, each in json.loads(text, parse_float=str).items()}


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


class _Run:
    def __init__(self, place: Range, field: Field, doors: Collection[str], moved: Moved) -> None:
        self._place, self._field, self._doors, self._moved = place, field, doors, moved
        self._plot = Plot(field.scene)
        self.unplanted: dict[str, str] = {}
        self._planted: list[str] = []

    async def outcomes(self) -> tuple[Outcome, ...]:
        """Unbound attempts first, without and with the others, then the bound ones: see :func:`attempts`."""
        await self._plant(self._plot.common, self._field.a)
        await self._plant(self._plot.tenants, self._field.a)
        await self._planted_for_once()
        made = [each for each in attempts(self._field) if each.door in self._doors]
        self._total, self._done = 2 * len(made), 0
        first = await self._compared([each for each in made if is_first(each)])
        for role in self._field.scene.application:
            # from here on every setting was once made: it must not be told from one that never was
            await self._answer(touching(self._field, role.name))
        return (*first, *await self._compared([each for each in made if not is_first(each)]))

    async def _compared(self, made: Sequence[Attempt]) -> tuple[Outcome, ...]:
        without = [await self._answer(each) for each in made]
        await self._place.keep()
        await self._plant_others()
        found = [await self._judged(each, answer) for each, answer in zip(made, without, strict=True)]
        await self._place.take_back()
        return tuple(found)

    async def _judged(self, attempt: Attempt, without: Answer) -> Outcome:
        answer = await self._answer(attempt)
        again = await self._answer(attempt) if answer.learnt != without.learnt else None
        return judged(attempt, without, answer, again)

    async def _answer(self, attempt: Attempt) -> Answer:
        self._done = min(self._done + 1, self._total)
        self._moved(self._done, self._total)
        return await self._place.attempt(attempt, self._planted, self._watched)

    async def _planted_for_once(self) -> None:
        """What attempts are made of: the others' rows, which stand there only while they are compared."""
        await self._place.keep()
        await self._plant_others()
        await self._place.take_back()

    async def _plant_others(self) -> None:
        self._planted = []
        for other in self._field.others:
            other.rows.clear()
            await self._plant(self._plot.tenants, other)

    async def _plant(self, tables: Sequence[Relation], tenant: Tenant) -> None:
        for table in tables:
            text, why = await self._planted_row(table, tenant)
            if text is None:
                if not tenant.given:
                    self.unplanted.setdefault(table.title, why)
                continue
            tenant.rows[table.oid] = _row(text)
            if tenant.label == "b":
                self.unplanted.pop(table.title, None)
                self._planted.append(text)

    async def _planted_row(self, table: Relation, tenant: Tenant) -> tuple[str | None, str]:
        why = ""
        for attempt in range(TRIES):
            draft = drafted(self._field, table, tenant, attempt)
            text, why = await self._place.plant(insertion(table.title, draft))
            if text is not None:
                return text, ""
        return None, why

    @property
    def _watched(self) -> list[str]:
        """What tells whether the others' rows are as they were."""
        found = []
        for table in self._plot.tenants:
            column = self._field.scene.tenant_column(table.oid)
            if column and any(table.oid in each.rows for each in self._field.others):
                values = [literal(self._field.tenant_value(table, each)) for each in self._field.others]
                found.append(
                    f"SELECT {literal(table.title)}, md5(string_agg(t::text, ',' ORDER BY t::text)) "
                    f"FROM {table.title} AS t WHERE t.{quoted(column)} IN ({', '.join(values)})"
                )
        return found
