"""A small working world for tests of the API: a real server on loopback over the store in memory."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenantry.config.registry import Registry, parse_registry
from tenantry.kernel.errors import InvalidValue, SourceUnavailable, StoreUnavailable
from tenantry.kernel.events import Event
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.lanes.model import Target
from tenantry.memory.api_keys import MemoryApiKeys
from tenantry.memory.directory import MemoryDirectory
from tenantry.memory.queue_store import MemoryQueueStore
from tenantry.memory.rate_gate import MemoryRateGate
from tenantry.memory.replay_books import ReplayBooks
from tenantry.memory.replay_desk import MemoryReplayDesk
from tenantry.memory.replay_store import MemoryReplayStore
from tenantry.queue.intake import Admission, IntakeSettings
from tenantry.queue.model import Accepted, BulkSet, NewJob, PoolLevel
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.desk import ReplayService
from tenantry.replay.model import (
    Fetched,
    LanePace,
    Membership,
    Message,
    SourceAddress,
)
from tenantry.testing.clock import ManualClock
from tenantry.web.api import create_api
from tenantry.web.server import HttpServer
from tenantry.web.services import ApiLimits, ApiServices

REGISTRY = {
    "tiers": {
        "small": {"weight": 1, "bound": 5},
        "slow": {"weight": 1, "submit_rate": 0.5},
        "wide": {"weight": 1, "bound": "none"},
    },
    "tenants": {
        "acme": {"tier": "wide", "targets": {"orders": {"url": "https://example.com/orders", "limit": 3}}},
        "globex": {"tier": "wide"},
        "tiny": {"tier": "small"},
        "slow": {"tier": "slow"},
    },
}
URL = "https://example.com/hook"


@dataclass
class Reply:
    """What came back, byte for byte."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The problem's name; fails for an answer that is none, or that disagrees with its status line."""
        assert self.header("content-type") == "application/problem+json", (self.status, self.body)
        assert self.json["status"] == self.status
        assert self.json["title"]
        assert self.json["detail"]
        return str(self.json["type"]).removeprefix("urn:tenantry:problem:")


class Gate:
    """Readiness, intake and keys pass through here, so that a test can take the store away."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def _pass(self) -> None:
        if self._world.store_is_away:
            raise StoreUnavailable("the database at 10.0.0.7 refused tk_secret")
        if self._world.bug is not None:
            raise self._world.bug

    async def check(self) -> None:
        self._pass()

    async def submit(self, tenant: TenantId, jobs: Sequence[NewJob]) -> Accepted | Refusal:
        self._pass()
        self._world.submitted += list(jobs)
        if self._world.refusal is not None:
            return self._world.refusal
        return await self._world.admission.submit(tenant, jobs)

    async def submit_bulk(self, tenant: TenantId, jobs: Sequence[NewJob]) -> BulkSet | Refusal:
        self._pass()
        self._world.submitted += list(jobs)
        return await self._world.admission.submit_bulk(tenant, jobs)


class Pile:
    """A source that only lies there: what a plan looks at."""

    def __init__(self, world: "World") -> None:
        self._world = world

    async def survey(self) -> Membership:
        if self._world.source_is_away:
            raise SourceUnavailable("the broker does not answer")
        return Membership("all", len(self._world.pile))

    async def peek(self, limit: int) -> list[Fetched]:
        return [Fetched(each, None) for each in self._world.pile[:limit]]

    async def close(self) -> None:
        return None


class Piles:
    """Every source is the pile."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def source(self, tenant: TenantId, address: SourceAddress) -> Any:
        if address.kind != "dead_letters":
            raise InvalidValue("source", address.connection, "a place that is open to the tenant")
        return Pile(self._world)


class NobodyStands:
    async def shares(self, tenant: TenantId) -> None:
        return None

    async def lanes(self, tenant: TenantId, targets: Any) -> dict[str, LanePace]:
        return {}


@dataclass
class World:
    """Story verbs over one API. ``submitted``: every job that reached the intake. ``level``: what the pool
    sheds."""

    limits: ApiLimits = field(default_factory=ApiLimits)
    store_is_away: bool = False
    bug: Exception | None = None
    refusal: Refusal | None = None
    level: PoolLevel | None = None
    submitted: list[NewJob] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    pile: list[Message] = field(default_factory=lambda: [_dead(n) for n in range(30)])
    source_is_away: bool = False

    def __post_init__(self) -> None:
        self.clock, randomness = ManualClock(), SeededRandomness(7)
        self.randomness = randomness
        registry = parse_registry(json.dumps(REGISTRY), format="json")
        self.directory = MemoryDirectory(registry)
        self.keys = MemoryApiKeys()
        self.store = MemoryQueueStore(self.clock, randomness)
        rate_gate = MemoryRateGate(self.directory, self.clock)
        self.admission = Admission(
            self.store,
            self.directory,
            rate_gate,
            randomness=randomness,
            events=self.events.append,
            settings=IntakeSettings(level_of=lambda pool: self.level),
        )
        self.made = {
            name: self.keys.issue(TenantId(name), randomness) for name in ("acme", "globex", "tiny", "slow")
        }
        books = ReplayBooks(self.store)
        self.replay_store = MemoryReplayStore(books)
        around = Surroundings(self.directory, self.clock, randomness, self.events.append)
        replays = ReplayService(MemoryReplayDesk(books), Piles(self), NobodyStands(), around)
        self.services = ApiServices(
            intake=Gate(self),
            store=self.store,
            keys=self.keys,
            directory=self.directory,
            readiness=Gate(self),
            replays=replays,
            events=self.events.append,
            limits=self.limits,
            clock=self.clock,
            randomness=randomness,
        )
        self.server = HttpServer(create_api(self.services))

    def key(self, tenant: str = "acme") -> str:
        return self.made[tenant].text

    def forget_tenants(self) -> None:
        """The operator removes every tenant from the registry."""
        self.directory.replace(Registry())

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def post_job(self, tenant: str = "acme", **fields: Any) -> Reply:
        """Submit a good job, with ``fields`` changed (None: left out)."""
        job = {"target": URL, "payload": {"n": 1}, **fields}
        return await self.post("/v1/jobs", {k: v for k, v in job.items() if v is not None}, tenant=tenant)

    async def post(
        self, path: str, body: object, *, tenant: str = "acme", headers: Iterable[tuple[str, str]] = ()
    ) -> Reply:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.ask("POST", path, [*self.credential(tenant), *_typed(headers)], data)

    async def get(self, path: str, *, tenant: str = "acme") -> Reply:
        return await self.ask("GET", path, self.credential(tenant))

    def credential(self, tenant: str) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {self.key(tenant)}")]

    async def ask(
        self, method: str, path: str, headers: Iterable[tuple[str, str]] = (), body: bytes | None = None
    ) -> Reply:
        """One request on a connection of its own, exactly as given."""
        sent = [("host", "api.test"), ("connection", "close"), *headers]
        if body is not None and not any(name == "transfer-encoding" for name, _ in sent):
            sent.append(("content-length", str(len(body))))
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in sent)
        return await self.raw(head.encode("latin-1") + b"\r\n" + (body or b""))

    async def raw(self, request: bytes) -> Reply:
        host, port = self.server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        reply = await read_reply(reader)
        writer.close()
        return reply


def _dead(number: int) -> Message:
    kind = "timeout" if number % 3 else "http_422"
    payload = json.dumps({"n": number}).encode()
    return Message(id=f"m{number}", payload=payload, target=Target(URL), error_class=kind, attempts=8)


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *rest = head.strip().split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in rest)]
    reply = Reply(int(first.split()[1]), headers, b"")
    if "100 " in first:
        return await read_reply(reader)
    reply.body = await reader.read() if reply.header("connection") == "close" else b""
    if reply.header("connection") != "close":
        reply.body = await reader.readexactly(int(reply.header("content-length") or 0))
    return reply


def _typed(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    given = list(headers)
    named = any(name.lower() == "content-type" for name, _ in given)
    return given if named else [*given, ("content-type", "application/json")]
