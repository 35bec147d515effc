"""The table of plans answers as a dict would, in less memory."""

import threading
import tracemalloc
from collections.abc import Callable

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.limiter import Limit, Plan, Plans

GOLD, SILVER = Plan(Limit(100, 900)), Plan(Limit(10))


def test_it_answers_as_a_dict_would_through_growth_changes_and_removals() -> None:
    plans, oracle = Plans(), {}
    for step in range(6_000):
        tenant = f"t-{step * 7919 % 4001}"
        plan = (GOLD, SILVER, None)[step % 3]
        plans.put(tenant, plan)
        oracle[tenant] = plan
    for number in range(4_500):
        tenant = f"t-{number}"
        assert plans.plan_of(TenantId(tenant)) == oracle.get(tenant)


def test_a_reader_beside_a_writer_finds_every_plan_that_was_there_before() -> None:
    plans = Plans((f"old-{n}", GOLD) for n in range(700))
    missed: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            missed.extend(f"old-{n}" for n in range(700) if plans.plan_of(TenantId(f"old-{n}")) is not GOLD)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20_000):
        plans.put(f"new-{number}", SILVER)
    done.set()
    reader.join()
    assert missed == []


def test_a_tenant_costs_less_than_the_document_s_64_bytes() -> None:
    tracemalloc.start()
    plans = Plans((f"tenant-{n}", GOLD) for n in range(100_000))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(plans) == 100_000
    assert size / 100_000 < 64


def test_a_mapping_says_the_same_as_its_pairs() -> None:
    assert Plans({"acme": GOLD}).plan_of(TenantId("acme")) is GOLD


def test_an_id_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidValue, match="tenant"):
        Plans([("no tenant", GOLD)])


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (lambda: Plan("5/s"), "plan.tenant: '5/s'"),
        (lambda: Plan(key=5), "plan.key: 5"),
        (lambda: Plan(routes={"GET /": "5/s"}), r"plan.routes\['GET /'\]: '5/s'"),
        (lambda: Plans([("acme", 5)]), "plan: 5"),
        (lambda: Limit("5/s"), "limit.base: '5/s'"),
        (lambda: Limit(True), "limit.base: True"),
        (lambda: Limit(1, None), "limit.burst: None"),
    ],
)
def test_what_is_no_limit_is_refused_where_it_is_written_and_not_at_the_first_call(
    made: Callable[[], object], where: str
) -> None:
    with pytest.raises(InvalidValue, match=where):
        made()
