"""One backlog against one target: drained in what the target needs for it and a tenth."""

from math import inf, isclose

import pytest

from tenantry.simulation.shaping import TARGETS, Ours, TargetModel
from tenantry.simulation.shaping.drain import FixedRate, drain

BY_NAME = {model.name: model for model in TARGETS}


@pytest.mark.parametrize("name", ["constant capacity", "queueing", "slow drift"])
def test_a_minutes_backlog_is_drained_within_a_tenth_of_backlog_over_capacity(name: str) -> None:
    found = drain(BY_NAME[name], Ours, ideal=60.0, seed=1)
    assert found.over <= 1.1
    assert 60.0 <= found.lasted <= 66.0
    assert found.failed <= 0.001


def test_a_redrive_at_a_fixed_rate_fails_more_often_than_it_delivers_where_ours_never_does() -> None:
    model = BY_NAME["constant capacity"]
    fixed = drain(model, lambda _: FixedRate(), ideal=60.0, seed=1)
    assert fixed.failed > 1.0
    assert drain(model, Ours, ideal=60.0, seed=1).failed == 0.0


def test_a_fixed_rate_below_capacity_takes_as_long_as_it_says() -> None:
    model = TargetModel("strong", servers=((0.0, 100.0),))
    found = drain(model, lambda _: FixedRate(100.0), ideal=10.0, seed=1)
    assert isclose(found.lasted, found.backlog / 100.0, rel_tol=0.02)


def test_what_is_not_drained_within_the_story_never_ends() -> None:
    found = drain(BY_NAME["constant capacity"], lambda _: FixedRate(1.0), ideal=60.0, seed=1)
    assert found.lasted == found.over == inf
