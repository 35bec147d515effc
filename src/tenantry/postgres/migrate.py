"""The schema's history: numbered files, each run once, in order, in a transaction of its own.

Safe from many nodes at once: each step takes a transaction-level advisory lock of this database, then looks
at what is applied, so a node either runs a migration or finds it done. That also holds behind PgBouncer.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Final, TypeVar

import asyncpg

from tenantry.kernel.errors import InvariantBroken, StoreUnavailable, UsageError
from tenantry.postgres.database import connect_once
from tenantry.postgres.errors import translated
from tenantry.postgres.urls import ENGINE_LOGIN, TENANT_LOGIN, redacted

_R = TypeVar("_R")

_LOCK: Final = 0x74656E616E747279  # "tenantry"
_LOCK_WAIT = "120s"
_TABLE_WAIT = "5s"
_ATTEMPTS = 20
_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One file. ``sha256`` is the hexadecimal hash of its bytes: an applied file must never change."""

    number: int
    name: str
    sha256: str
    sql: str

    def __str__(self) -> str:
        return f"{self.number:04}_{self.name}"


@dataclass(frozen=True, slots=True)
class Applied:
    """What the database says of one migration."""

    number: int
    name: str
    sha256: str


async def migrate(
    admin_url: str,
    *,
    engine_password: str | None = None,
    tenant_password: str | None = None,
    migrations: Sequence[Migration] | None = None,
) -> tuple[Migration, ...]:
    """Brings the database up to date; returns what this call applied. Idempotent, safe to run concurrently.

    Sets the passwords of the two logins where given. ``migrations`` defaults to those of this version. Raises
    :class:`StoreUnavailable` when the server cannot be reached or a lock is not to be had, and
    :class:`UsageError` when an applied file has changed, when the database is newer than this code, and when
    the operator's login may not do what a migration needs, with the SQL that would.
    """
    every = shipped() if migrations is None else tuple(migrations)
    connection = await connect_once(admin_url)
    try:
        with translated("migrating", where=redacted(admin_url)):
            done = [
                migration
                for migration in every
                if await _despite_rivals(partial(_apply, connection, migration, every))
            ]
            await _set_passwords(connection, {ENGINE_LOGIN: engine_password, TENANT_LOGIN: tenant_password})
            return tuple(done)
    finally:
        await connection.close()


async def pending(
    connection: "asyncpg.Connection[asyncpg.Record]", migrations: Sequence[Migration] | None = None
) -> tuple[Migration, ...]:
    """The migrations that the database still lacks, in order. The engine's login may ask.

    Raises :class:`UsageError` as :func:`migrate` does.
    """
    every = shipped() if migrations is None else tuple(migrations)
    return outstanding(every, await _applied(connection))


def outstanding(every: Sequence[Migration], applied: Sequence[Applied]) -> tuple[Migration, ...]:
    """Which of ``every`` are not in ``applied``. Pure. Raises :class:`UsageError` when the two disagree."""
    ours = {migration.number: migration for migration in every}
    for found in applied:
        known = ours.get(found.number)
        if known is None:
            raise UsageError(
                f"the database is newer than this code: it has migration {found.number:04}_{found.name}, and "
                f"this version knows up to {max(ours, default=0):04}. Upgrade tenantry on this machine"
            )
        if known.sha256 != found.sha256:
            raise UsageError(
                f"migration {known} has changed since it was applied (sha256 {found.sha256[:12]} then, "
                f"{known.sha256[:12]} now). Restore the file, and put the change into a new migration"
            )
    have = {found.number for found in applied}
    return tuple(migration for migration in every if migration.number not in have)


@cache
def shipped() -> tuple[Migration, ...]:
    """The migrations of this version, in order. Raises :class:`InvariantBroken` unless they count from 1."""
    directory = files("tenantry.postgres").joinpath("migrations")
    texts = {entry.name: entry.read_bytes() for entry in directory.iterdir() if entry.name.endswith(".sql")}
    return numbered(texts)


def numbered(texts: Mapping[str, bytes]) -> tuple[Migration, ...]:
    """Migrations from file names and contents. Pure. Raises :class:`InvariantBroken` as :func:`shipped`."""
    found = []
    for name in sorted(texts):
        match = _FILE.fullmatch(name)
        if match is None:
            raise InvariantBroken(f"migrations/{name}: expected a name such as 0003_outcomes.sql")
        digest = hashlib.sha256(texts[name]).hexdigest()
        found.append(Migration(int(match[1]), match[2], digest, texts[name].decode()))
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise InvariantBroken(f"migrations do not count from 0001 without gap: {', '.join(map(str, found))}")
    return tuple(found)


async def _apply(
    connection: "asyncpg.Connection[asyncpg.Record]", migration: Migration, every: Sequence[Migration]
) -> bool:
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}'")
        await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if migration not in await pending(connection, every):
            return False
        await connection.execute(f"SET LOCAL lock_timeout = '{_TABLE_WAIT}'")
        try:
            await connection.execute(migration.sql)
        except asyncpg.InsufficientPrivilegeError as error:
            said = f"{error.args[0]}. {error.hint or 'Run it as the owner of the database.'}"
            raise UsageError(f"migration {migration} is not permitted to this login: {said}") from error
        await connection.execute(
            "INSERT INTO tenantry.migrations (number, name, sha256) VALUES ($1, $2, $3)",
            migration.number,
            migration.name,
            migration.sha256,
        )
        return True


async def _applied(connection: "asyncpg.Connection[asyncpg.Record]") -> list[Applied]:
    if await connection.fetchval("SELECT to_regclass('tenantry.migrations')") is None:
        return []
    rows = await connection.fetch("SELECT number, name, sha256 FROM tenantry.migrations ORDER BY number")
    return [Applied(row["number"], row["name"], row["sha256"]) for row in rows]


async def _set_passwords(
    connection: "asyncpg.Connection[asyncpg.Record]", passwords: Mapping[str, str | None]
) -> None:
    for login, password in passwords.items():
        if password is not None:
            await _set_password(connection, login, password)


async def _set_password(connection: "asyncpg.Connection[asyncpg.Record]", login: str, password: str) -> None:
    statement = await connection.fetchval(
        "SELECT format('ALTER ROLE %I PASSWORD %L', $1::text, $2::text)", login, password
    )
    try:
        await _despite_rivals(lambda: connection.execute(statement))
    except asyncpg.InsufficientPrivilegeError as error:
        raise UsageError(
            f"this login may not set the password of {login}: "
            f"as a superuser, run ALTER ROLE {login} PASSWORD '…'"
        ) from error


async def _despite_rivals(attempt: Callable[[], Awaitable[_R]]) -> _R:
    """Tries again what a rival undid.

    Roles belong to the whole server and no lock of one database guards them, so the migration of another
    database may change the same role at this moment. PostgreSQL then rolls one of the two back as a whole.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await attempt()
        except (asyncpg.InternalServerError, asyncpg.UniqueViolationError) as error:
            if not _by_rival(error):
                raise
    raise StoreUnavailable("the roles of this server are being changed by others all the time; try again")


def _by_rival(error: asyncpg.PostgresError) -> bool:
    """Whether two changed one row of a system catalog, or both inserted it."""
    return "concurrently updated" in str(error) or (error.constraint_name or "").startswith("pg_")
