"""A simulated fleet keeps the document's figures: calls saved, nothing overspent, skew followed within a
second."""

from tenantry.limiter import Basis, Limit, LimiterSettings
from tenantry.simulation.limits import LimiterFleet, Traffic

DOCUMENT = Limit(100, 900)


def test_twenty_nodes_ask_at_most_once_for_twenty_decisions_and_nobody_overspends() -> None:
    """The load is the document's in small: the same calls a node and tenant, for a fifth of the tenants."""
    fleet = LimiterFleet(DOCUMENT, nodes=20)
    report = fleet.run(1.0, Traffic(rate=30_000, tenants=10_000))
    assert report.decisions_a_call >= 20
    assert report.other_fallbacks == 0
    assert report.bases[Basis.LEASE] > report.bases[Basis.FIRST]
    assert max(report.overspent.values(), default=0.0) <= 0.01 * DOCUMENT.base


def test_a_tenant_on_two_of_twenty_nodes_has_its_whole_limit_within_a_second() -> None:
    fleet = LimiterFleet(DOCUMENT, nodes=20, watched=["tenant-0"])
    fleet.run(12.0, Traffic(rate=1_000, tenants=1))
    report = fleet.run(4.0, Traffic(rate=1_000, tenants=1, places=(3, 11)))
    passed = report.passed_by_second["tenant-0"]
    assert sum(passed[second] for second in (13, 14, 15)) >= 0.98 * 3 * DOCUMENT.base
    assert not report.overspent


def test_a_saturated_tenant_gets_its_limit_and_its_burst_and_no_more() -> None:
    fleet = LimiterFleet(Limit(50, 200), nodes=7, seed=3, watched=["tenant-0"])
    report = fleet.run(10.0, Traffic(rate=700, tenants=1))
    total = sum(report.passed_by_second["tenant-0"].values())
    assert 0.99 * (250 + 50 * 10) <= total <= 250 + 50 * 10 + 0.01 * 50


def test_the_document_s_twenty_leases_of_ten_bound_what_dead_nodes_can_overspend() -> None:
    """Each node holds a lease of ten of a tenant of 100 a second, spends it, and dies before it tells: at the
    end of the term the authority has 200 tokens again that were spent."""
    fleet = LimiterFleet(DOCUMENT, nodes=20, settings=LimiterSettings(nodes=20))
    fleet.run(0.5, Traffic(rate=100_000, tenants=1))
    held = [limiter._tenants["tenant-0"].left for limiter in fleet.limiters]
    assert all(0 <= each <= 10 for each in held)
    assert sum(held) <= 200


def test_the_same_seed_gives_the_same_report() -> None:
    one, other = (
        LimiterFleet(DOCUMENT, nodes=3, seed=9).run(0.3, Traffic(rate=2_000, tenants=50)) for _ in range(2)
    )
    assert (one.decisions, one.bases, one.asks) == (other.decisions, other.bases, other.asks)
