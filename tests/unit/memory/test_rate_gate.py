"""Submit rates in one process: exact, by tier, and kept only for those who are using them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.kernel.verdict import Rule
from tenantry.memory.directory import MemoryDirectory
from tenantry.memory.rate_gate import MemoryRateGate
from tenantry.testing.clock import ManualClock

ACME, FREE = TenantId("acme"), TenantId("free")


def gate(*, tenants: int = 0, burst: float = 0.0, **tier: Any) -> tuple[MemoryRateGate, ManualClock]:
    limited = Tier(TierName("limited"), **{"submit_rate": 2.0, **tier})
    names = [ACME, *(TenantId(f"t{number}") for number in range(tenants))]
    documents = [TenantDocument(name, limited.name) for name in names]
    documents.append(TenantDocument(FREE, TierName("unlimited")))
    clock = ManualClock()
    registry = Registry(tiers=(limited, Tier(TierName("unlimited"))), tenants=tuple(documents))
    return MemoryRateGate(MemoryDirectory(registry), clock, burst=burst), clock


def test_a_rate_is_refused_with_the_exact_time_to_come_back() -> None:
    rates, clock = gate()
    assert rates.try_acquire(ACME, 2) is None
    refusal = rates.try_acquire(ACME, 1)
    assert refusal is not None
    assert (refusal.rule, refusal.retry_after) == (Rule.RATE, 0.5)
    clock.advance(0.5)
    assert rates.try_acquire(ACME, 1) is None


def test_a_burst_is_saved_up_beyond_one_seconds_rate() -> None:
    rates, _ = gate(burst=8.0)
    assert rates.try_acquire(ACME, 10) is None
    assert rates.try_acquire(ACME, 1) is not None


def test_more_at_once_than_the_rate_ever_allows_is_told_so() -> None:
    rates, _ = gate()
    refusal = rates.try_acquire(ACME, 3)
    assert refusal is not None
    assert refusal.retry_after is None
    assert "at most 2" in refusal.detail
    assert rates.try_acquire(ACME, 2) is None


def test_what_is_given_back_can_be_used_again() -> None:
    rates, _ = gate()
    rates.try_acquire(ACME, 2)
    rates.give_back(ACME, 1)
    assert rates.try_acquire(ACME, 1) is None
    assert rates.try_acquire(ACME, 1) is not None


def test_a_tenant_without_a_rate_and_one_that_does_not_exist_are_let_pass_and_leave_no_trace() -> None:
    rates, _ = gate()
    for tenant in (FREE, TenantId("nobody")):
        assert rates.try_acquire(tenant, 10**6) is None
    assert len(rates) == 0


def test_one_tenants_rate_is_not_anothers() -> None:
    rates, _ = gate(tenants=1)
    assert rates.try_acquire(ACME, 2) is None
    assert rates.try_acquire(TenantId("t0"), 2) is None


def test_buckets_are_kept_until_they_are_full_and_no_longer() -> None:
    rates, clock = gate(tenants=500)
    for number in range(500):
        rates.try_acquire(TenantId(f"t{number}"), 2)
    assert len(rates) == 500
    clock.advance(0.9)
    rates.try_acquire(ACME, 1)
    assert len(rates) == 501  # none of them is full yet
    clock.advance(0.2)
    for _ in range(260):
        rates.try_acquire(FREE, 1)
    assert len(rates) == 1  # the one used last


@given(gaps=st.lists(st.floats(0.0, 2.0), max_size=60), others=st.integers(0, 5))
def test_dropping_idle_buckets_never_lets_more_through(gaps: list[float], others: int) -> None:
    rates, clock = gate(tenants=others)
    passed, elapsed = 0, 0.0
    for gap in gaps:
        clock.advance(gap)
        elapsed += gap
        for number in range(others):
            rates.try_acquire(TenantId(f"t{number}"), 1)
        passed += rates.try_acquire(ACME, 1) is None
        assert passed <= 2 + 2 * elapsed + 1e-4
