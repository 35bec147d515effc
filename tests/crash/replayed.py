"""What replays under ``kill -9`` are made of: where messages lie, a door that writes down who came, nodes."""

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from tenantry.kernel.clock import SystemClock
from tenantry.lanes.model import Target
from tenantry.replay.model import SourceAddress
from tenantry.testing.exchange import Connection, Manner, Received, answer

_OK = Manner(answer())
TENANT = "acme"
_LETTERS = """
    INSERT INTO tenantry.dead_letters
           (job_id, tenant_id, target, job_class, payload, content_type, submitted_at, attempts, reason)
    SELECT gen_random_uuid(), $1, $2, 0, convert_to('{"n":' || n || '}', 'UTF8'), 'application/json', now(),
           8, ''
      FROM generate_series(1, $3) n
"""
_TABLE = """
    CREATE TABLE failed (id int PRIMARY KEY, tenant_id text NOT NULL, payload json NOT NULL);
    INSERT INTO failed SELECT n, 'acme', json_build_object('n', n) FROM generate_series(1, {count}) n;
"""


class Door:
    """A target. ``came``: of each message, when and as which job it came."""

    def __init__(self) -> None:
        self.came: dict[int, list[tuple[float, str]]] = defaultdict(list)
        self.clock = SystemClock()
        self._open: set[Connection] = set()
        self._wanted, self._reached = 0, asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Target]:
        serving = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._meets, self._open), "127.0.0.1", 0
        )
        async with serving:
            yield Target(f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}/in")
            for connection in list(self._open):
                connection.drop()

    async def until(self, count: int) -> None:
        """Wait until so many messages have come."""
        if len(self.came) < count:
            self._wanted = count
            self._reached.clear()
            await self._reached.wait()

    @property
    def twice(self) -> int:
        """How often a message came that had come before."""
        return sum(len(times) - 1 for times in self.came.values())

    def of_jobs(self, jobs: set[str]) -> set[int]:
        """The messages that came as one of these."""
        return {number for number, came in self.came.items() if any(job in jobs for _, job in came)}

    def _meets(self, request: Received) -> Manner:
        number = json.loads(request.body)["n"]
        self.came[number].append((self.clock.monotonic(), request.headers["webhook-id"]))
        if len(self.came) >= self._wanted:
            self._reached.set()
        return _OK.after(0.004)


class Lying(Protocol):
    """Where messages lie. ``address``: for a replay's spec."""

    @property
    def address(self) -> SourceAddress: ...

    async def put(self, target: Target, count: int) -> None: ...

    async def left(self) -> int:
        """How many lie there still."""
        ...


class OwnLetters:
    address = SourceAddress(kind="dead_letters")

    def __init__(self, url: str) -> None:
        self._url = url

    async def put(self, target: Target, count: int) -> None:
        await _asked(self._url, _LETTERS, TENANT, target, count)

    async def left(self) -> int:
        return int(await _asked(self._url, "SELECT count(*) FROM tenantry.dead_letters"))


class InTable:
    address = SourceAddress(
        kind="table",
        place="public.failed",
        connection="shop",
        options={"key_columns": "id", "payload_column": "payload", "done": "delete"},
    )

    def __init__(self, url: str) -> None:
        self._url = url

    async def put(self, target: Target, count: int) -> None:
        connection = await asyncpg.connect(self._url)
        try:
            await connection.execute(_TABLE.format(count=count))
        finally:
            await connection.close()

    async def left(self) -> int:
        return int(await _asked(self._url, "SELECT count(*) FROM failed"))


class InQueue:
    address = SourceAddress(kind="rabbitmq", place="orders.dead", connection="mq", options={})

    def __init__(self, url: str) -> None:
        self._url = url

    async def put(self, target: Target, count: int) -> None:
        import aiormq
        from aiormq.abc import Basic

        queue = self.address.place
        connection = await aiormq.connect(self._url)
        channel = await connection.channel()
        await channel.queue_declare(queue, durable=True)
        await channel.queue_purge(queue)
        for start in range(0, count, 500):
            await asyncio.gather(
                *(
                    channel.basic_publish(
                        b'{"n":%d}' % n,
                        routing_key=queue,
                        properties=Basic.Properties(message_id=f"m{n}", delivery_mode=2),
                    )
                    for n in range(start + 1, min(start + 500, count) + 1)
                )
            )
        await connection.close()

    async def left(self) -> int:
        import aiormq

        connection = await aiormq.connect(self._url)
        channel = await connection.channel()
        found = await channel.queue_declare(self.address.place, durable=True, passive=True)
        await connection.close()
        return int(found.message_count or 0)


def connections(path: Path, *, database: str, rabbitmq: str | None) -> Path:
    """The operator's document, written to ``path``."""
    text = f"""
        [connections.shop]
        kind = "table"
        url = {json.dumps(database)}
        options = {{ tenant_column = "tenant_id" }}
        [connections.shop.tenants."*"]
        sources = ["public.failed"]
    """
    if rabbitmq:
        text += f"""
        [connections.mq]
        kind = "rabbitmq"
        url = {json.dumps(rabbitmq)}
        [connections.mq.tenants."*"]
        sources = ["orders.dead"]
        """
    path.write_text(text)
    return path


async def _asked(url: str, sql: str, *given: Any) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql, *given)
    finally:
        await connection.close()


async def held_by(url: str, node: str) -> int:
    """How many jobs the claims of a node hold: what was in flight there when it was killed."""
    held = "SELECT coalesce(sum(cardinality(seqs)), 0) FROM tenantry.claims WHERE node_id = $1"
    return int(await _asked(url, held, node))


async def delivered(url: str) -> set[str]:
    """The jobs that are marked as delivered."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("SELECT job_id FROM tenantry.outcomes WHERE state = 1")
        return {str(row["job_id"]) for row in rows}
    finally:
        await connection.close()


@contextmanager
def brokers_of_tests() -> Iterator[None]:
    """Lets the helpers of the tests of brokers be imported."""
    home = str(Path(__file__).parents[1] / "integration" / "brokers")
    sys.path.append(home)
    try:
        yield
    finally:
        sys.path.remove(home)
