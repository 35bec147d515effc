"""What it costs to know whether a message was seen: windows of a feed that find every message known.

A tenant has its keys in fourteen daily generations, all of them living, and a replay offers a thousand
messages at a time that another one has delivered: each window asks for its keys under the tenant's lock, in
the transaction that would stage them, and writes the counts. The floor is the same look-up in one plain table
with the same primary key.

Then one tenant hammers a narrow range of its keys from a process of its own, as fast as it can, while another
asks for a hundred messages twenty times a second: its p99 beside its p99 alone, in turns.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import md5
from itertools import count
from typing import Any

from benchmarks.context import Context
from benchmarks.figures import FLOOR, OURS, Goal, Measured, percentile
from tenantry.kernel.randomness import SeededRandomness, SystemRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.postgres.database import Database, connect_once
from tenantry.postgres.hints import Hints
from tenantry.postgres.migrate import migrate
from tenantry.postgres.replay_desk import PostgresReplayDesk
from tenantry.postgres.replay_store import PostgresReplayStore
from tenantry.postgres.urls import DatabaseUrls, with_database
from tenantry.queue.model import JobId
from tenantry.replay.dedup import LIFETIME
from tenantry.replay.model import (
    Fate,
    Lease,
    Membership,
    Message,
    MessageKey,
    Quotas,
    ReplaySpec,
    SourceAddress,
    Staged,
    Window,
)

QUICK = True
CALM, HOT = TenantId("calm"), TenantId("hot")
ALONE = "alone"
WINDOW, SMALL, RATE = 1_000, 100, 40.0
LEAST = 8  # turns: a p99 of a few seconds is noisy
_NAMES = count(1)
_LOAD = """
    SELECT tenantry.roll_keys((now() AT TIME ZONE 'UTC')::date - 13, (now() AT TIME ZONE 'UTC')::date + 1);
    INSERT INTO tenantry.replay_keys (tenant_id, key, seen_at, state, failings, replay_id)
    SELECT tenant, decode(md5(n::text), 'hex'), now() - n % 13 * interval '1 day', 2, 0, 'before'
      FROM unnest(ARRAY['calm', 'hot']) tenant, generate_series(1, {keys}) n;
    CREATE TABLE floor_keys (tenant_id text, key bytea, seen_at timestamptz, state smallint, PRIMARY KEY (tenant_id, key));
    INSERT INTO floor_keys SELECT tenant_id, key, seen_at, state FROM tenantry.replay_keys;
    VACUUM (ANALYZE);
"""  # noqa: E501 - SQL
_FLOOR = """
    SELECT key, seen_at, state FROM floor_keys
     WHERE tenant_id = $1 AND key = ANY ($2) AND seen_at > now() - interval '14 days'
"""


async def run(context: Context) -> None:
    """Both claims, in one database."""
    keys = 50_000 if context.quick else 500_000
    async with loaded(context, keys) as url, await Database.open(DatabaseUrls.derived(url)) as database:
        await judged(context, database, keys)
        await beside(context, database, url, keys)


async def judged(context: Context, database: Database, keys: int) -> None:
    """Microseconds a message; 50 are 20,000 messages a second."""
    measured = Measured(
        f"judging a message known among {keys:,} in 14 generations", "µs", "lower", Goal(at_most=50.0)
    )
    offer, chance = await Offer.begun(database, CALM), SeededRandomness(1)
    connection = await connect_once(database.urls.admin)
    await offer.windows(chance, keys, WINDOW, 3)  # plans are made
    for _ in range(context.runs):
        rounds = 10 if context.quick else 30
        measured.add(OURS, await offer.windows(chance, keys, WINDOW, rounds))
        measured.add(FLOOR, await floor(connection, chance, keys, rounds))
    await connection.close()
    context.judge(measured)


async def floor(connection: Any, chance: SeededRandomness, keys: int, rounds: int) -> float:
    """Microseconds a key of the plain look-up."""
    windows = [[key_of(number) for number in drawn(chance, keys, WINDOW)] for _ in range(rounds)]
    asked = await connection.prepare(_FLOOR)
    began = time.perf_counter()
    for window in windows:
        assert len(await asked.fetch(CALM, window)) == len(set(window))
    return 1e6 * (time.perf_counter() - began) / rounds / WINDOW


async def beside(context: Context, database: Database, url: str, keys: int) -> None:
    """The p99 of the calm tenant's windows, alone and beside the hot one, in turns."""
    claim = Measured(
        "p99 of a tenant's check beside another that hammers a key range", "ms", "lower", Goal(1 / 1.5, ALONE)
    )
    offer, chance = await Offer.begun(database, CALM), SeededRandomness(2)
    async with hammering(url) as hammer:
        for _ in range(max(context.runs, LEAST)):
            for system in (ALONE, OURS):
                hammer.send(system == OURS)
                waits = await offer.paced(chance, keys, 1.0 if context.quick else 4.0)
                claim.add(system, 1_000.0 * percentile(waits, 0.99))
    context.judge(claim)


# -- a tenant that offers -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Offer:
    """A replay of one tenant, offered what another one has delivered."""

    tenant: TenantId
    store: PostgresReplayStore
    lease: Lease

    @classmethod
    async def begun(cls, database: Database, tenant: TenantId) -> "Offer":
        hints = Hints(database)
        desk = PostgresReplayDesk(database, hints, SystemRandomness())
        spec = ReplaySpec(tenant=tenant, source=SourceAddress("jsonl", "a.jsonl"))
        plan = await desk.plan(spec, Membership(), "")
        await desk.start(tenant, plan.id, Quotas())
        store = PostgresReplayStore(database, hints)
        taken = {view.id: view for view in await store.take("benchmark", 3_600.0, limit=10)}
        return cls(tenant, store, Lease(plan.id, taken[plan.id].token))

    async def windows(self, chance: SeededRandomness, keys: int, size: int, rounds: int) -> float:
        """Microseconds a message, of so many windows one after the other."""
        windows = [self.window(drawn(chance, keys, size)) for _ in range(rounds)]
        began = time.perf_counter()
        for window in windows:
            await self.one(window)
        return 1e6 * (time.perf_counter() - began) / rounds / size

    async def paced(self, chance: SeededRandomness, keys: int, seconds: float) -> list[float]:
        """How long each window took, at a fixed pace."""
        windows = [self.window(drawn(chance, keys, SMALL)) for _ in range(int(seconds * RATE))]
        began, waits = time.perf_counter(), []
        for n, window in enumerate(windows):
            await asyncio.sleep(max(0.0, began + n / RATE - time.perf_counter()))
            sent = time.perf_counter()
            await self.one(window)
            waits.append(time.perf_counter() - sent)
        return waits

    async def one(self, window: Window) -> None:
        fed = await self.store.feed(self.lease, window)
        assert fed is not None
        assert set(fed.fates) == {Fate.DUPLICATE}

    def window(self, numbers: Sequence[int]) -> Window:
        return Window(
            messages=tuple(_message(number) for number in numbers),
            position=None,
            left=0,
            exhausted=False,
            quotas=Quotas(),
            lifetime_for=LIFETIME,
        )


def key_of(number: int) -> MessageKey:
    return MessageKey(md5(str(number).encode(), usedforsecurity=False).digest())


def drawn(chance: SeededRandomness, keys: int, size: int) -> list[int]:
    """Numbers of known messages."""
    return [1 + int(chance.uniform(0, keys - 1)) for _ in range(size)]


def _message(number: int) -> Staged:
    target = Target("https://example.com/hook")
    return Staged(
        key=key_of(number),
        job=JobId(SystemRandomness().time_ordered_id()),
        message=Message(id=str(number), payload=b"{}"),
        target=target,
        payload=b"{}",
        headers={},
    )


# -- the database, and the tenant that hammers --------------------------------------------------------------


@asynccontextmanager
async def loaded(context: Context, keys: int) -> AsyncIterator[str]:
    """The URL of a database in which both tenants have delivered ``keys`` messages."""
    name = f"dedup_{next(_NAMES)}"
    await context.server.administer(f"CREATE DATABASE {name} TEMPLATE template0")
    url = with_database(context.server.url, name)
    try:
        await migrate(url)
        for statement in _LOAD.format(keys=keys).split(";\n"):
            if statement.strip():
                await context.server.administer(statement, url)
        yield url
    finally:
        await context.server.administer(f"DROP DATABASE {name} WITH (FORCE)")


class Hammer:
    """A process that hammers while it is told to."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def send(self, on: bool) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"on\n" if on else b"off\n")


@asynccontextmanager
async def hammering(url: str) -> AsyncIterator[Hammer]:
    """The hot tenant, waiting for its word."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.replay.hammer", url, stdin=asyncio.subprocess.PIPE
    )
    try:
        yield Hammer(process)
    finally:
        process.kill()
        await process.wait()
