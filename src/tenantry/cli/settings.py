"""What a node is to be: frozen, and read by nobody but the assembly."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

from tenantry.delivery.guard import AddressRule
from tenantry.delivery.handlers import Handlers
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import identifier, tenant_id
from tenantry.postgres.urls import DatabaseUrls
from tenantry.replay.connections import NO_CONNECTIONS, Connections


class Role(StrEnum):
    """What a node does. Any node may have any of them; each is safe to have many times."""

    API = "api"
    PLANNER = "planner"  # stands by while another holds the planner's place
    WORKER = "worker"
    FEEDER = "feeder"
    REPLAY = "replay"  # leads replays; several share them


EVERYTHING = frozenset(Role)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. ``port`` 0 takes any free one."""

    host: str = "127.0.0.1"
    port: int = 0

    @classmethod
    def parsed(cls, text: str, *, path: str) -> Self:
        """``HOST:PORT``, ``[IPV6]:PORT`` or ``PORT`` alone (loopback). Raises :class:`InvalidValue`."""
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not (port.isascii() and port.isdigit() and int(port) <= 65_535):
            raise InvalidValue(
                path, text, "HOST:PORT such as 127.0.0.1:8080, or a port; 0 takes any free one"
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """One node.

    ``database``: where PostgreSQL is; None starts (or joins) the embedded server in ``data_dir``.
    ``migrate``: bring the schema up to date first; else a schema that is behind is an error. ``name``: the
    node's name in the database, at most one live process each; None makes one of host and process. ``pool``
    and ``slots`` (1 to 100,000): which pool the worker serves, and how many jobs it runs at once.
    ``grace_for``: seconds that running jobs get when it stops. ``listen``: where the tenants' API is served
    (role ``api``);
    ``metrics``: where metrics and health are, or None for nowhere. ``addresses``: what deliveries may connect
    to. ``http``: whether the worker delivers over HTTP. ``handlers``: what it can run beside that.
    ``connections``: of each of the two pools to the database, 2 to 1,000. ``per_tenant_metrics``: also count
    by tenant. ``outside``: the operator's connections to brokers, files and other databases.
    ``refresh_every``: seconds between two looks at the registry. ``keep_days``: how long the ends of jobs are
    kept, 1 to 36,500.
    """

    database: DatabaseUrls | None = None
    data_dir: Path = Path(".tenantry")
    migrate: bool = False
    roles: frozenset[Role] = EVERYTHING
    name: str | None = None
    pool: str = "shared"
    slots: int = 20
    grace_for: Seconds = 20.0
    listen: Address = Address()
    metrics: Address | None = None
    addresses: AddressRule = field(default_factory=AddressRule)
    http: bool = True
    handlers: Handlers | None = None
    connections: int = 8
    per_tenant_metrics: bool = False
    outside: Connections = NO_CONNECTIONS
    refresh_every: Seconds = 2.0
    keep_days: int = 7

    def __post_init__(self) -> None:
        if not self.roles:
            raise InvalidValue("roles", "none", "at least one of " + ", ".join(Role))
        if self.name is not None:
            identifier(self.name, path="name")
        tenant_id(self.pool, path="pool")  # a pool's name has the alphabet of tenants'
        for path, value, (low, high) in self._ranges():
            if not low <= value <= high:  # false for NaN
                raise InvalidValue(path, value, f"a number from {low:,} to {high:,}")
        can_write = any(any(each.targets.values()) for each in self.outside)
        if Role.WORKER in self.roles and not (self.http or self.handlers is not None or can_write):
            accepted = "true for a worker without handlers or connections to write to"
            raise InvalidValue("http", self.http, accepted, "It could run nothing.")

    def _ranges(self) -> tuple[tuple[str, float, tuple[int, int]], ...]:
        return (
            ("slots", self.slots, (1, 100_000)),
            ("connections", self.connections, (2, 1_000)),
            ("grace", self.grace_for, (0, 3_600)),
            ("keep_days", self.keep_days, (1, 36_500)),
        )
