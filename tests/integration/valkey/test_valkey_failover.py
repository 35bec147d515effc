"""Masters are killed, frozen and replaced under load: callers never see an error, and what passes is
bounded."""

import asyncio
from collections import Counter

from valkey.exceptions import ConnectionError
from valkey_servers import Fleet, Server, until

from tenantry.kernel.clock import SystemClock
from tenantry.kernel.events import Event
from tenantry.limiter import Limit, LimiterSettings, Plan, SharedLimiter
from tenantry.limiter.events import AuthorityFound, AuthorityLost, LeasesExchanged
from tenantry.limiter.model import Basis
from tenantry.valkey import ValkeyLeaseAuthority

TENANTS = [f"tenant-{n}" for n in range(24)]
LIMIT = Limit(50, 50)


class Crowd:
    """Nodes with callers that try every tenant far beyond its limit, and what passed."""

    def __init__(self, url: str, nodes: int = 3, *, limit: Limit = LIMIT) -> None:
        self.events: list[Event] = []
        self.limit = limit
        self.authorities = [ValkeyLeaseAuthority(url, timeout=0.3) for _ in range(nodes)]
        settings = LimiterSettings(nodes=nodes)
        self.limiters = [
            SharedLimiter(Plan(limit, ledger=True), each, settings=settings, events=self.events.append)
            for each in self.authorities
        ]
        self.passed: Counter[str] = Counter()
        self.bases: Counter[Basis] = Counter()
        self.clock = SystemClock()
        self.began = 0.0

    async def __aenter__(self) -> "Crowd":
        for limiter in self.limiters:
            await limiter.start()
        self.began = self.clock.monotonic()
        self.calling = asyncio.create_task(self._call())
        return self

    async def __aexit__(self, *error: object) -> None:
        self.calling.cancel()
        await asyncio.gather(self.calling, return_exceptions=True)
        for limiter, authority in zip(self.limiters, self.authorities, strict=True):
            await limiter.close()
            await authority.close()

    async def _call(self) -> None:
        while True:
            for limiter in self.limiters:
                for tenant in TENANTS:
                    verdict = limiter.try_acquire(tenant)
                    self.bases[verdict.basis] += 1
                    self.passed[tenant] += verdict.allowed
            await asyncio.sleep(0.004)

    def seen(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)

    def passed_for(self) -> float:
        return self.clock.monotonic() - self.began

    def most(self, *, lost_writes: bool) -> float:
        """The package's bound for one tenant: the bucket, what leases held that came back, the shares of all
        nodes while cut off, and what was granted in writes that the replica did not get."""
        nodes, limit = len(self.limiters), self.limit
        lease = max(1.0, limit.base * 0.1)
        whole = limit.capacity + limit.base * self.passed_for()
        shares = nodes * max(1.0, limit.capacity / nodes) + limit.base * self.passed_for()
        return whole + nodes * lease + shares + (limit.capacity if lost_writes else 0.0)

    async def shards_answer(self) -> None:
        """Every tenant has been answered anew."""
        mark = len(self.events)

        async def holds() -> bool:
            fresh = [e for e in self.events[mark:] if isinstance(e, LeasesExchanged)]
            return sum(event.asks for event in fresh) >= 4 * len(TENANTS) * len(self.limiters)

        await until(holds)


async def test_a_master_of_three_is_killed_under_load_and_no_caller_notices(fleet: Fleet) -> None:
    nodes = await fleet.cluster()
    async with Crowd(f"redis+cluster://{nodes[0].name},{nodes[1].name}") as crowd:
        await crowd.shards_answer()
        before = crowd.clock.monotonic()
        nodes[1].kill()
        await until(lambda: _true(crowd.seen(AuthorityLost) >= 3))
        await until(lambda: _true(crowd.seen(AuthorityFound) >= crowd.seen(AuthorityLost)))
        recovered_in = crowd.clock.monotonic() - before
        await crowd.shards_answer()
        for tenant in TENANTS:
            assert crowd.passed[tenant] <= crowd.most(lost_writes=True), tenant
            assert crowd.passed[tenant] >= 0.5 * crowd.limit.base * crowd.passed_for(), tenant
    print(f"recovered in {recovered_in:.2f} s")
    assert recovered_in < 6
    assert not crowd.calling.done() or crowd.calling.cancelled()


async def test_a_frozen_server_delays_no_decision_and_its_tenants_live_on_their_share(fleet: Fleet) -> None:
    server = await fleet.server()
    async with Crowd(f"redis://{server.name}") as crowd:
        await crowd.shards_answer()
        server.freeze()
        await until(lambda: _true(crowd.bases[Basis.DOWN] > 1_000))
        began = crowd.clock.monotonic()
        for _ in range(1_000):
            crowd.limiters[0].try_acquire(TENANTS[0])
        assert crowd.clock.monotonic() - began < 0.5
        server.thaw()
        await until(lambda: _true(crowd.seen(AuthorityFound) >= 3))
        await crowd.shards_answer()
        for tenant in TENANTS:
            assert crowd.passed[tenant] <= crowd.most(lost_writes=False), tenant


async def test_sentinel_s_new_master_is_found_and_the_old_one_s_readonly_answer_is_no_error(
    fleet: Fleet,
) -> None:
    master, replica, sentinel = await fleet.pair()
    async with Crowd(f"redis+sentinel://{sentinel.name}/limits") as crowd:
        await crowd.shards_answer()
        await sentinel.says("SENTINEL FAILOVER", "limits")
        await until(lambda: _is_master(replica))
        await until(lambda: _demoted(master))
        await crowd.shards_answer()
        assert crowd.seen(AuthorityFound) == crowd.seen(AuthorityLost)
        for tenant in TENANTS:
            assert crowd.passed[tenant] <= crowd.most(lost_writes=True), tenant


async def test_a_slot_that_moves_is_followed(fleet: Fleet) -> None:
    nodes = await fleet.cluster()
    authority = ValkeyLeaseAuthority(f"redis+cluster://{nodes[0].name}")
    async with authority, SharedLimiter(Plan(Limit(100, 100)), authority) as limiter:
        assert await limiter.acquire("acme")
        slot = str(await nodes[0].says("CLUSTER KEYSLOT", "tenantry:limits:{acme}"))
        home = next(node for node in nodes[:3] if authority.shard_of("acme") == node.name)  # type: ignore[arg-type]
        other = next(node for node in nodes[:3] if node is not home)
        ids = {node.name: (await node.says("CLUSTER MYID")).decode() for node in nodes[:3]}
        await other.says("CLUSTER SETSLOT", slot, "IMPORTING", ids[home.name])
        await home.says("CLUSTER SETSLOT", slot, "MIGRATING", ids[other.name])
        keys = await home.says("CLUSTER GETKEYSINSLOT", slot, "10")
        words = ["MIGRATE", "127.0.0.1", str(other.port), "", "0", "1000", "KEYS"]
        await home.says(*words, *keys)
        assert await limiter.acquire("acme", cost=60)  # the key is there, the slot is not yet: ASK
        for node in (other, home):
            await node.says("CLUSTER SETSLOT", slot, "NODE", ids[other.name])
        for _ in range(3):
            verdict = await limiter.acquire("acme", cost=20, timeout=5)
            assert verdict.basis is Basis.LEASE


async def test_scripts_that_a_server_has_forgotten_are_loaded_again(fleet: Fleet) -> None:
    server = await fleet.server()
    authority = ValkeyLeaseAuthority(f"redis://{server.name}")
    async with authority:
        assert await authority.present("a", 5) == 1
        await server.says("SCRIPT FLUSH")
        assert await authority.present("b", 5) == 2


async def _true(value: bool) -> bool:
    return value


async def _role(server: Server) -> bytes:
    """Empty while the server changes its role, which closes connections."""
    try:
        role: bytes = (await server.says("ROLE"))[0]
    except ConnectionError:
        return b""
    return role


async def _is_master(server: Server) -> bool:
    return await _role(server) == b"master"


async def _demoted(server: Server) -> bool:
    return await _role(server) == b"slave"
