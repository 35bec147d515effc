"""What can be ordered of lanes, and which orders hold where."""

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Lane, Target
from tenantry.lanes.orders import (
    Action,
    Order,
    OrderRecord,
    Scope,
    lowest_ceiling,
    narrowest_first,
    pauses,
    scopes_over,
)

ACME, GLOBEX = TenantId("acme"), TenantId("globex")
HOOK, OTHER = Target("https://hooks.example.com/a"), Target("handler:b")
LANE = Lane(ACME, HOOK)


def record(number: int, action: Action, scope: Scope, ceiling: int | None = None) -> OrderRecord:
    return OrderRecord(number, Order(action, scope, "why", "ada", ceiling), Timestamp(0.0))


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        (Scope(ACME, HOOK), {(ACME, HOOK)}),
        (Scope(target=HOOK), {(ACME, HOOK), (GLOBEX, HOOK)}),
        (Scope(ACME), {(ACME, HOOK), (ACME, OTHER)}),
    ],
    ids=["one lane", "a target", "a tenant"],
)
def test_a_scope_covers_its_lanes_and_no_others(scope: Scope, covered: set[tuple[TenantId, Target]]) -> None:
    lanes = [Lane(tenant, target) for tenant in (ACME, GLOBEX) for target in (HOOK, OTHER)]
    assert {(lane.tenant, lane.target) for lane in lanes if scope.covers(lane)} == covered
    assert all((scope in scopes_over(lane)) is scope.covers(lane) for lane in lanes)


@pytest.mark.parametrize(
    ("tenant", "target", "path"),
    [
        (None, None, "scope"),
        ("no tenant", None, "tenant"),
        ("", HOOK, "tenant"),
        (ACME, "", "target"),
        (ACME, "a\x00b", "target"),
        (ACME, "\udc80", "target"),
        (ACME, "x" * 2_049, "target"),
    ],
)
def test_a_scope_that_cannot_be_names_its_fault(tenant: str | None, target: str | None, path: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        Scope(None if tenant is None else TenantId(tenant), None if target is None else Target(target))
    assert refused.value.path == path


@pytest.mark.parametrize(
    ("said", "action", "ceiling", "path"),
    [
        (("", "ada"), Action.PAUSE, None, "reason"),
        ((" \t", "ada"), Action.PAUSE, None, "reason"),
        (("x" * 501, "ada"), Action.PAUSE, None, "reason"),
        (("two\nlines", "ada"), Action.PAUSE, None, "reason"),
        (("\x1b[31mred", "ada"), Action.PAUSE, None, "reason"),
        (("why", ""), Action.PAUSE, None, "by"),
        (("why", "x" * 256), Action.PAUSE, None, "by"),
        (("why", "ada"), Action.PAUSE, 3, "ceiling"),
        (("why", "ada"), Action.LIFT, 3, "ceiling"),
        (("why", "ada"), Action.CEILING, None, "ceiling"),
        (("why", "ada"), Action.CEILING, 0, "ceiling"),
        (("why", "ada"), Action.CEILING, True, "ceiling"),
        (("why", "ada"), Action.CEILING, 1_000_001, "ceiling"),
    ],
)
def test_an_order_that_cannot_be_names_its_fault(
    said: tuple[str, str], action: Action, ceiling: int | None, path: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        Order(action, Scope(ACME), *said, ceiling)
    assert refused.value.path == path


def test_orders_over_a_lane_are_read_pauses_first_and_the_narrowest_of_them_first() -> None:
    scopes = scopes_over(LANE)
    wanted = [record(n, Action.PAUSE, scope) for n, scope in enumerate(scopes)]
    wanted += [record(n, Action.CEILING, scope, 1) for n, scope in enumerate(scopes)]
    assert list(narrowest_first(reversed(wanted))) == wanted
    assert list(pauses(wanted)) == wanted[:3]


def test_of_several_ceilings_the_lowest_bounds_whichever_is_narrower() -> None:
    wide = record(1, Action.CEILING, Scope(target=HOOK), 2)
    narrow = record(2, Action.CEILING, Scope(ACME, HOOK), 5)
    assert lowest_ceiling([narrow, wide]) is wide
    assert lowest_ceiling([record(3, Action.PAUSE, Scope(ACME))]) is None
