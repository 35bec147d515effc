"""What an operator looks at: the server, the logins, the policies, the planner, the workers. Reads only.

On the engine's login, so that it shows what a node can see; nothing here needs the operator's.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenantry.kernel.instant import Timestamp, as_timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.migrate import pending
from tenantry.postgres.statements import statement
from tenantry.queue.model import JobState

_ENDS = {1: JobState.DELIVERED, 2: JobState.DEAD, 3: JobState.CANCELLED}


@dataclass(frozen=True, slots=True)
class Server:
    """``now``: the server's clock. ``standby``: it takes no writes. The settings as the server's words."""

    version: str
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    max_connections: int
    login: str
    database: str
    standby: bool
    now: Timestamp


@dataclass(frozen=True, slots=True)
class Login:
    """One of the two logins, and what it may do beyond its needs. ``is_member``: of any other role."""

    login: str
    superuser: bool
    bypasses_policies: bool
    creates_roles: bool
    can_login: bool
    is_member: bool
    owns_tables: bool


@dataclass(frozen=True, slots=True)
class Unprotected:
    """A table that carries a tenant and whose row policies do not hold for everyone."""

    name: str
    enabled: bool
    forced: bool
    has_policy: bool


@dataclass(frozen=True, slots=True)
class Life:
    """``held``: a planner holds its place under ``term``. ``days_ahead``: days after today for which there is
    a partition of outcomes; ``today``: whether there is one now."""

    term: int
    holder: str
    held: bool
    days_ahead: int
    today: bool


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker."""

    node_id: str
    pool: str
    slots: int
    draining: bool
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is known of an API key. The key itself is kept nowhere."""

    key_id: str
    note: str
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked_at: Timestamp | None


def key_record(row: Any) -> KeyRecord:
    """One row of keys: a mapping by column."""
    return KeyRecord(
        key_id=row["key_id"],
        note=row["note"],
        created_at=as_timestamp(row["created_at"]),
        expires_at=None if row["expires_at"] is None else as_timestamp(row["expires_at"]),
        revoked_at=None if row["revoked_at"] is None else as_timestamp(row["revoked_at"]),
    )


class Inspection:
    """All raise :class:`~tenantry.kernel.errors.StoreUnavailable`. Safe for many tasks of one event loop."""

    def __init__(self, database: Database) -> None:
        self._pool, self._control = database.side, database.control

    async def server(self) -> Server:
        with translated("asking the server"):
            (row,) = await self._pool.fetch(statement("inspection/server"))
        return Server(**{**row, "now": as_timestamp(row["now"])})

    async def pending(self) -> tuple[str, ...]:
        """The migrations that the database lacks. Raises :class:`UsageError` as ``migrate`` does."""
        async with self._control.connection() as connection:
            return tuple(map(str, await pending(connection)))

    async def logins(self) -> Sequence[Login]:
        with translated("looking at the logins"):
            return [Login(**row) for row in await self._pool.fetch(statement("inspection/roles"))]

    async def unprotected(self) -> Sequence[Unprotected]:
        """The tables whose policies do not hold; empty is well."""
        with translated("looking at the row policies"):
            return [Unprotected(**row) for row in await self._pool.fetch(statement("inspection/unprotected"))]

    async def life(self) -> Life:
        with translated("looking at the planner's place"):
            (row,) = await self._pool.fetch(statement("inspection/life"))
        return Life(**row)

    async def workers(self) -> Sequence[Worker]:
        with translated("looking at the workers"):
            rows = await self._pool.fetch(statement("inspection/nodes"))
        return [Worker(**{**row, "kinds": tuple(row["kinds"])}) for row in rows]

    async def ends(self, jobs: Collection[str]) -> Mapping[JobState, int]:
        """How many of ``jobs`` (ids, of any tenants) ended how, as far back as ends are kept. One that has
        not ended is not counted: for ids that were accepted, what lacks is waiting, running or lost."""
        with translated("reading the ends of jobs"):
            rows = await self._pool.fetch(statement("inspection/ends"), list(jobs))
        return {_ENDS[row["state"]]: row["jobs"] for row in rows}

    async def keys(self, tenant: TenantId) -> Sequence[KeyRecord]:
        """The tenant's API keys, the newest first."""
        with translated("listing API keys"):
            rows = await self._pool.fetch(statement("inspection/keys"), tenant)
        return [key_record(row) for row in rows]
