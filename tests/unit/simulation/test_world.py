"""Worlds: what is read from a file, what four policies make of it, and that nothing is lost or invented."""

from math import isclose
from statistics import median

import pytest

from tenantry.config.validation import RegistryErrors
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.randomness import SeededRandomness
from tenantry.simulation.shaping import Spell, TargetModel
from tenantry.simulation.world import (
    Burst,
    World,
    WorldReport,
    WorldRun,
    WorldTenant,
    an_hour,
    parse_world,
    picture,
    plain,
    policies,
    rows,
)

FAST = TargetModel("fast", servers=((0.0, 5.0),), service=0.2)
HOLE = TargetModel("hole", servers=((0.0, 5.0),), service=0.2, spells=((0.0, 1e9, Spell.HOLE),))

TOML = """
lasts = 120
slots = 12
[targets.fast]
servers = [[0, 5], [60, 2]]
service = 0.2
[targets.gone]
spells = [{ from = 10, to = 20, is = "hole" }]
[[tenants]]
name = "acme"
count = 3
rate = 0.5
target = "fast"
weight = 4
[[tenants]]
name = "burst"
rate = 0.1
target = "gone"
bound = 50
cap = 0.5
bursts = [{ at = 30, jobs = 200 }]
"""


def under(world: World, policy: str, seed: int = 1) -> WorldReport:
    return WorldRun(world, policies(SeededRandomness(seed))[policy](), seed).run()


def crowd(*others: WorldTenant) -> World:
    """Twenty steady tenants beside others, on ten slots."""
    steady = [WorldTenant(f"steady-{place}", 0.5, FAST) for place in range(20)]
    return World("crowd", [*steady, *others], lasts=600.0, slots=10)


BURST = crowd(WorldTenant("burst", 0.1, FAST, bursts=(Burst(60.0, 3_000),)))
HOLES = crowd(*(WorldTenant(f"hole-{place}", 1.0, HOLE, cap=0.2) for place in range(10)))


@pytest.mark.parametrize("policy", ["FIFO", "equal share", "weighted share", "ours"])
@pytest.mark.parametrize("world", [BURST, HOLES], ids=["burst", "holes"])
def test_what_was_submitted_was_refused_or_ended_or_is_still_open(policy: str, world: World) -> None:
    report = under(world, policy)
    for result in report.tenants.values():
        assert result.submitted == result.refused + result.succeeded + result.dead + result.open
    assert report.total("slot_seconds") <= 10 * 600.0 * (1 + 1e-9)
    assert isclose(sum(report.used) * 60.0, report.total("slot_seconds"), rel_tol=1e-6)


def test_a_burst_delays_everybody_under_fifo_and_nobody_under_ours() -> None:
    assert under(BURST, "FIFO").wait(0.99, steady=True) > 30.0
    assert under(BURST, "ours").wait(0.99, steady=True) < 1.0


def test_ten_black_holes_cost_others_little_with_breakers_and_much_without() -> None:
    """All ten are dead from the start; after the first minute their breakers know it."""
    ours, weighted = (under(HOLES, policy).waits_by_minute(0.99)[1:] for policy in ("ours", "weighted share"))
    assert median(weighted) > 4.0
    assert median(ours) < 0.3


def test_the_same_seed_gives_the_same_answer_and_another_another() -> None:
    one, two, three = under(BURST, "ours", 3), under(BURST, "ours", 3), under(BURST, "ours", 4)
    assert rows([one]) == rows([two]) != rows([three])


def test_the_hour_has_300_tenants_and_50_jobs_a_second_and_buffers_a_part_of_its_peaks() -> None:
    world = an_hour()
    assert len(world.tenants) == 300
    assert isclose(sum(tenant.rate for tenant in world.tenants), 50.0)
    assert world.floors < world.provisioned < world.peaks / 4


def test_an_hour_in_small_under_all_policies() -> None:
    world = an_hour(tenants=30, rate=5.0, lasts=300.0)
    reports = [under(world, name) for name in policies(SeededRandomness(1))]
    assert [row[0] for row in rows(reports)] == ["FIFO", "equal share", "weighted share", "ours"]
    document = plain(world, reports, seed=1)
    assert [each["policy"] for each in document["policies"]] == [report.policy for report in reports]
    drawn = picture(world, reports)
    assert drawn.startswith("<svg")
    assert drawn.count("<svg") == drawn.count("</svg>") == 1


def test_a_world_is_read_from_toml_and_from_json() -> None:
    world = parse_world(TOML, format="toml", name="two")
    assert [tenant.id for tenant in world.tenants] == ["acme-1", "acme-2", "acme-3", "burst"]
    assert world.tenants[0].target.servers == ((0.0, 5.0), (60.0, 2.0))
    assert world.tenants[3].target.spells == ((10.0, 20.0, Spell.HOLE),)
    assert (world.lasts, world.provisioned, world.tenants[3].bound) == (120.0, 12, 50)
    small = '{"targets": {"t": {}}, "tenants": [{"name": "a", "rate": 1, "target": "t"}]}'
    assert parse_world(small, format="json").tenants[0].target == TargetModel("t")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("lasts = 120", "last = 120", "unknown key 'last'.*Did you mean 'lasts'"),
        ("lasts = 120", "lasts = 0", "lasts: 0"),
        ("slots = 12", "slots = 1.5", "slots: 1.5"),
        ("service = 0.2", "service = 0", "targets.fast.service"),
        ("service = 0.2", "speed = 0.2", "targets.fast: unknown key 'speed'"),
        ("[[0, 5], [60, 2]]", "[[5, 5], [60, 2]]", "targets.fast.servers.*the first 0"),
        ("[[0, 5], [60, 2]]", "[[0, 5, 6]]", r"targets.fast.servers\[0\]"),
        ("[[0, 5], [60, 2]]", "'many'", "targets.fast.servers"),
        ("to = 20", "to = 5", r"targets.gone.spells\[0\].to"),
        ('is = "hole"', 'is = "hol"', r"Did you mean 'hole'"),
        ('target = "fast"', 'target = "fats"', r"tenants\[0\].target.*Did you mean 'fast'"),
        ("rate = 0.5", "rate = -1", r"tenants\[0\].rate"),
        ("rate = 0.5", "", r"tenants\[0\].rate"),
        ("count = 3", "count = 0", r"tenants\[0\].count"),
        ('name = "acme"', 'name = "a b"', r"tenants\[0\].name"),
        ("cap = 0.5", "cap = 2", r"tenants\[1\].cap"),
        ("jobs = 200", "jobs = 0", r"tenants\[1\].bursts\[0\].jobs"),
        ("bursts = [", "bursts = [3, ", r"tenants\[1\].bursts\[0\]"),
    ],
)
def test_a_fault_in_a_world_is_told_with_its_place(old: str, new: str, said: str) -> None:
    assert old in TOML
    with pytest.raises(RegistryErrors, match=said):
        parse_world(TOML.replace(old, new, 1), format="toml")


@pytest.mark.parametrize("text", ["tenants = []", "[targets.t]", "tenants = 3"])
def test_a_world_without_tenants_is_none(text: str) -> None:
    with pytest.raises(RegistryErrors, match="tenants"):
        parse_world(text, format="toml")


def test_text_that_is_not_in_its_format_is_refused_with_line_and_column() -> None:
    with pytest.raises(InvalidValue, match="line 1, column"):
        parse_world("lasts = = 3", format="toml")
