"""A world from a TOML or JSON document. Every fault is told with its place; an unknown key is refused.

::

    lasts = 3600          # virtual seconds
    buffer = 0.5          # slots on top of the floors, as a part of them; or slots = 40
    timeout = 5
    attempts = 3

    [targets.slow]
    servers = 20          # calls served at once; or [[0, 20], [600, 2]]: by time
    service = 0.1         # seconds a call, the median
    spread = 0.1          # sigma of its logarithm
    network = 0.02
    spells = [{ from = 600, to = 900, is = "hole" }]   # or "down"

    [[tenants]]
    name = "acme"
    count = 10            # acme-1 to acme-10
    rate = 0.2            # jobs a second each
    target = "slow"
    weight = 4
    bursts = [{ at = 300, jobs = 1000 }]
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeVar

from tenantry.config import rules, syntax
from tenantry.config.validation import Problems, Table, at, refused
from tenantry.config.validation import table as mapping
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.simulation.shaping.targets import Spell, Steps, TargetModel
from tenantry.simulation.world.model import Burst, World, WorldTenant

T = TypeVar("T")

MOST_TENANTS = 100_000
MOST_JOBS = 100_000_000

_TARGET_KEYS = (
    "servers", "service", "spread", "network", "line", "rate", "burst", "retry_after", "hang_beyond",
    "spells", "foreign",
)  # fmt: skip
_TENANT_KEYS = ("name", "count", "rate", "target", "weight", "cap", "bound", "bursts")
_WORLD_KEYS = ("lasts", "slots", "buffer", "within", "timeout", "attempts", "targets", "tenants")

_SECONDS = rules.number(0.0, 1e7)
_SOME = rules.number(0.0, 1e6, above=True)


def parse_world(text: str | bytes, *, format: Literal["toml", "json"], name: str = "world") -> World:
    """The world that a document describes. Pure.

    Raises :class:`~tenantry.config.validation.RegistryErrors` with every fault and its place, or
    :class:`~tenantry.kernel.errors.InvalidValue` for text that is not in its format.
    """
    found = syntax.decoded(text, may_have_bom=True, wanted="a world of tenants and targets")
    document = syntax.parse_toml(found) if format == "toml" else syntax.parse_json(found)
    problems = Problems()
    world = _world(Table("", document, _WORLD_KEYS, problems), name)
    problems.raise_any()
    return world


def _world(table: Table, name: str) -> World:
    models = {
        key: _target(Table(at("targets", key), value, _TARGET_KEYS, table.problems), key)
        for key, value in mapping("targets", table.raw("targets", {}), table.problems).items()
    }
    lasts = table.take("lasts", rules.number(1.0, 1e6), 3_600.0)
    found: list[WorldTenant] = []
    nobody: list[object] = []
    for place, value in enumerate(table.need("tenants", _some, nobody)):
        found += _tenants(Table(f"tenants[{place}]", value, _TENANT_KEYS, table.problems), models)
    world = World(
        name,
        found,
        lasts=lasts,
        slots=table.take("slots", rules.optional(rules.whole(1, 1_000_000)), None),
        buffer=table.take("buffer", rules.number(0.0, 1_000.0), 0.5),
        within=table.take("within", rules.number(1.0, 1e6), 60.0),
        timeout=table.take("timeout", rules.number(0.0, 900.0, above=True), 5.0),
        attempts=table.take("attempts", rules.whole(1, 100), 3),
    )
    jobs = sum(tenant.jobs(lasts) for tenant in found)
    if jobs > MOST_JOBS:
        table.problems.note(refused("tenants", f"{jobs:.0f} jobs", f"at most {MOST_JOBS:,} jobs in all"))
    return world


def _tenants(table: Table, models: dict[str, TargetModel]) -> list[WorldTenant]:
    name = table.need("name", rules.tenant, TenantId(""))
    count = table.take("count", rules.whole(1, MOST_TENANTS), 1)
    target = table.need("target", rules.one_of(tuple(models)), "")
    one = WorldTenant(
        name,
        table.need("rate", rules.number(0.0, 1e6), 0.0),
        models.get(target, TargetModel("none")),
        weight=table.take("weight", _SOME, 1.0),
        cap=table.take("cap", rules.number(0.0, 1.0, above=True), 1.0),
        bound=table.take("bound", rules.optional(rules.whole(1, 1 << 40)), None),
        bursts=table.take("bursts", _each(_burst(table.problems)), ()),
    )
    if count == 1:
        return [one]
    table.problems.attempt(rules.tenant, at(table.path, "name"), f"{name}-{count}", name)
    return [replace(one, id=f"{name}-{place + 1}") for place in range(count)]


def _target(table: Table, name: str) -> TargetModel:
    asks: float | None = 1.0
    retry_after = table.take("retry_after", rules.optional(_SECONDS), asks)
    return TargetModel(
        name,
        servers=table.take("servers", _steps(rules.number(0.0, 1e6)), ((0.0, 20.0),)),
        service=table.take("service", rules.number(0.0, 900.0, above=True), 0.1),
        spread=table.take("spread", rules.number(0.0, 3.0), 0.1),
        network=table.take("network", rules.number(0.0, 900.0), 0.0),
        line=table.take("line", rules.optional(rules.whole(0, 1 << 40)), None),
        rate=table.take("rate", rules.optional(_SOME), None),
        burst=table.take("burst", rules.number(1.0, 1e6), 20.0),
        retry_after=retry_after,
        hang_beyond=table.take("hang_beyond", rules.optional(rules.whole(0, 1 << 40)), None),
        spells=table.take("spells", _each(_spell(table.problems)), ()),
        foreign=table.take("foreign", _steps(rules.number(0.0, 1e6)), ((0.0, 0.0),)),
    )


def _burst(problems: Problems) -> Callable[[str, object], Burst]:
    def rule(path: str, value: object) -> Burst:
        table = Table(path, value, ("at", "jobs"), problems)
        return Burst(table.need("at", _SECONDS, 0.0), table.need("jobs", rules.whole(1, MOST_JOBS), 1))

    return rule


def _spell(problems: Problems) -> Callable[[str, object], tuple[float, float, Spell]]:
    def rule(path: str, value: object) -> tuple[float, float, Spell]:
        table = Table(path, value, ("from", "to", "is"), problems)
        start, end = table.need("from", _SECONDS, 0.0), table.need("to", _SECONDS, 1.0)
        if end <= start:
            problems.note(refused(at(path, "to"), end, f"a number above {start:g}, which is from"))
        return start, end, table.need("is", rules.choice(Spell), Spell.DOWN)

    return rule


def _some(path: str, value: object) -> list[object]:
    if isinstance(value, list) and value:
        return value
    raise refused(path, value, "a list of at least one tenant")


def _each(rule: Callable[[str, object], T]) -> Callable[[str, object], tuple[T, ...]]:
    """A list, each entry by ``rule``."""

    def all_of(path: str, value: object) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise refused(path, value, "a list")
        return tuple(rule(f"{path}[{place}]", entry) for place, entry in enumerate(value))

    return all_of


def _steps(rule: Callable[[str, object], float]) -> Callable[[str, object], Steps]:
    """One number, or ``[[from, number], …]`` in rising order, the first from 0."""

    def either(path: str, value: object) -> Steps:
        if not isinstance(value, list):
            return ((0.0, rule(path, value)),)
        found = []
        for place, pair in enumerate(value):
            if not isinstance(pair, list) or len(pair) != 2:
                raise refused(f"{path}[{place}]", pair, "[from, number]")
            found.append((_SECONDS(f"{path}[{place}][0]", pair[0]), rule(f"{path}[{place}][1]", pair[1])))
        moments = [start for start, _ in found]
        if not found or moments[0] != 0.0 or moments != sorted(set(moments)):
            raise InvalidValue(path, moments, "times in rising order, the first 0")
        return tuple(found)

    return either
