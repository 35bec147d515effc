"""Operators' keys in PostgreSQL: found by nodes, made and revoked under the operator's login."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tenantry.config.api_keys import NewApiKey
from tenantry.config.keys_port import StoredOperatorKey
from tenantry.kernel.instant import Seconds, as_timestamp
from tenantry.postgres.database import Database, connect_once
from tenantry.postgres.errors import translated
from tenantry.postgres.inspection import KeyRecord, key_record
from tenantry.postgres.statements import statement
from tenantry.postgres.urls import redacted


class PostgresOperatorKeys:
    """Implements :class:`tenantry.config.keys_port.OperatorKeys`."""

    def __init__(self, database: Database) -> None:
        self._pool = database.side

    async def find(self, key_id: str) -> StoredOperatorKey | None:
        with translated("looking up an operator's key"):
            row = await self._pool.fetchrow(statement("operator/find_key"), key_id)
        if row is None:
            return None
        expires_at = None if row["expires_at"] is None else as_timestamp(row["expires_at"])
        return StoredOperatorKey(row["name"], row["secret_hash"], expires_at, row["revoked"])

    async def keys(self) -> list[KeyRecord]:
        """All of them, the newest first; the note of each is its name. No secret, no hash."""
        with translated("reading operators' keys"):
            return [key_record(row) for row in await self._pool.fetch(statement("operator/keys"))]


async def add_operator_key(
    admin_url: str, name: str, key: NewApiKey, *, expires_in: Seconds | None = None
) -> None:
    """Keep a new key's hash under the name of whoever will show it. The operator's login.

    ``expires_in``: seconds from now, by the database's clock; None for a key that does not expire."""
    async with _connected(admin_url, "adding an operator's key") as connection:
        await connection.execute(
            "INSERT INTO tenantry.operator_keys (key_id, name, secret_hash, expires_at) "
            "VALUES ($1, $2, $3, clock_timestamp() + make_interval(secs => $4))",
            key.key_id,
            name,
            key.secret_hash,
            expires_in,
        )


async def revoke_operator_key(admin_url: str, key_id: str) -> bool:
    """Refuse the key from now on. False when there is no such key. The operator's login."""
    async with _connected(admin_url, "revoking an operator's key") as connection:
        found = await connection.fetchval(
            "UPDATE tenantry.operator_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) "
            "WHERE key_id = $1 RETURNING true",
            key_id,
        )
        return bool(found)


@asynccontextmanager
async def _connected(admin_url: str, what: str) -> AsyncIterator[Any]:
    connection = await connect_once(admin_url)
    try:
        with translated(what, where=redacted(admin_url)):
            yield connection
    finally:
        await connection.close()
