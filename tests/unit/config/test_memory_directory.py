"""The directory in memory: whole views, replaced as wholes."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tenantry.config.model import TenantDocument
from tenantry.config.ports import TenantDirectory
from tenantry.config.registry import Registry
from tenantry.config.tiers import DEFAULT_TIERS, Tier
from tenantry.kernel.tenant import TenantId, TierName, Weight
from tenantry.memory.directory import MemoryDirectory

ACME = TenantId("acme")


def registry(tier: str, *more: str) -> Registry:
    names = (ACME, *map(TenantId, more))
    return Registry(
        (Tier(TierName(tier), Weight(3.0)),), tuple(TenantDocument(name, TierName(tier)) for name in names)
    )


def test_it_answers_as_the_port_asks() -> None:
    directory: TenantDirectory = MemoryDirectory(Registry(tenants=registry("free", "zoe", "Bob").tenants))
    assert directory.tenant(ACME) == TenantDocument(ACME, TierName("free"))
    assert directory.tier_of(ACME) == DEFAULT_TIERS[0]
    assert directory.tenant(TenantId("nobody")) is None
    assert directory.tier_of(TenantId("nobody")) is None
    assert [document.tenant for document in directory.tenants()] == ["Bob", "acme", "zoe"]
    assert directory.tiers() == DEFAULT_TIERS
    assert (directory.floor, directory.version) == (0.25, 1)


def test_a_replaced_registry_is_gone_as_a_whole_and_the_version_rises() -> None:
    directory = MemoryDirectory(registry("old", "zoe"))
    assert directory.version == 1
    assert directory.replace(registry("new")) == directory.version == 2
    assert directory.tier_of(ACME) == Tier(TierName("new"), Weight(3.0))
    assert directory.tenant(TenantId("zoe")) is None
    assert directory.registry == registry("new")


def test_no_version_is_given_twice() -> None:
    directory = MemoryDirectory(registry("old"))
    with ThreadPoolExecutor(8) as threads:
        versions = list(threads.map(directory.replace, [registry("new")] * 400))
    assert sorted(versions) == list(range(2, 402))


def test_a_reader_never_sees_half_of_two_registries() -> None:
    views = [registry("odd"), registry("even")]
    directory = MemoryDirectory(views[0])
    started, enough = threading.Event(), threading.Event()

    def write() -> None:
        turn = 0
        while not enough.is_set():
            turn += 1
            directory.replace(views[turn % 2])
            started.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert started.wait(10)
        # Each registry has one tier only: a tenant of one looked up in the tiers of the other would fail.
        assert {directory.tier_of(ACME) for _ in range(20_000)} <= {view.tiers[0] for view in views}
    finally:
        enough.set()
        writer.join()
