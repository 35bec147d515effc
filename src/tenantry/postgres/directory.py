"""The operator's registry and API keys, in PostgreSQL. Nodes read a whole view and swap it at once."""

import json
from collections.abc import Iterable

import asyncpg

from tenantry.config.api_keys import NewApiKey
from tenantry.config.documents import decode_document, decode_tier, encode_document, encode_tier
from tenantry.config.keys_port import StoredKey
from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import UnknownTenant, UsageError
from tenantry.kernel.instant import Seconds, as_timestamp
from tenantry.kernel.tenant import TenantId, TierName, folded
from tenantry.postgres.database import Database, connect_once
from tenantry.postgres.errors import translated
from tenantry.postgres.statements import statement
from tenantry.postgres.urls import redacted


class PostgresDirectory:
    """A :class:`tenantry.config.ports.TenantDirectory` that :meth:`refresh` brings up to date.

    Reads answer from memory and are safe from any thread; the whole view is replaced by one assignment.
    """

    def __init__(self, database: Database) -> None:
        self._pool = database.side
        self._registry = Registry()
        self._documents: dict[TenantId, TenantDocument] = {}
        self._tiers: dict[TierName, Tier] = {}
        self._version = -1

    @property
    def version(self) -> int:
        return self._version

    @property
    def floor(self) -> float:
        return self._registry.floor

    async def refresh(self) -> bool:
        """Read the registry again if its version has changed; True when it had. O(tenants), else O(1)."""
        with translated("reading the registry"):
            if await self._pool.fetchval(statement("registry/version")) == self._version:
                return False
            (row,) = await self._pool.fetch(statement("registry/read"))
        registry = _registry(row)
        self._documents = {document.tenant: document for document in registry.tenants}
        self._tiers = {tier.name: tier for tier in registry.tiers}
        self._registry, self._version = registry, row["version"]
        return True

    def tenant(self, tenant: TenantId) -> TenantDocument | None:
        return self._documents.get(tenant)

    def tier_of(self, tenant: TenantId) -> Tier | None:
        document = self._documents.get(tenant)
        return None if document is None else self._tiers[document.tier]

    def tenants(self) -> Iterable[TenantDocument]:
        return self._registry.tenants

    def tiers(self) -> Iterable[Tier]:
        return self._registry.tiers


class PostgresApiKeys:
    """Implements :class:`tenantry.config.keys_port.ApiKeys`."""

    def __init__(self, database: Database) -> None:
        self._pool = database.side

    async def find(self, key_id: str) -> StoredKey | None:
        with translated("looking up an API key"):
            row = await self._pool.fetchrow(statement("registry/find_key"), key_id)
        if row is None:
            return None
        expires_at = None if row["expires_at"] is None else as_timestamp(row["expires_at"])
        return StoredKey(TenantId(row["tenant_id"]), row["secret_hash"], expires_at, row["revoked"])


async def write_registry(admin_url: str, registry: Registry, *, after: int | None = None) -> int:
    """Put ``registry`` in force for every node, as a whole; returns its version. The operator's login.

    ``after``: the version that ``registry`` was made from. Raises :class:`UsageError`, and writes nothing,
    when another is in force by now: what was written meanwhile would be lost. None: whatever is in force.
    Tenants that it no longer names lose their API keys; work that they have in the queue still ends.
    """
    connection = await connect_once(admin_url)
    try:
        with translated("writing the registry", where=redacted(admin_url)):
            async with connection.transaction():
                return await _write(connection, registry, after)
    finally:
        await connection.close()


async def add_api_key(
    admin_url: str, tenant: TenantId, key: NewApiKey, *, note: str = "", expires_in: Seconds | None = None
) -> None:
    """Keep a new key's hash. Raises :class:`UnknownTenant`. The operator's login.

    ``expires_in``: seconds from now, by the database's clock; None for a key that does not expire."""
    connection = await connect_once(admin_url)
    try:
        with translated("adding an API key", where=redacted(admin_url)):
            await connection.execute(
                "INSERT INTO tenantry.api_keys (key_id, tenant_id, secret_hash, note, expires_at) "
                "VALUES ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5))",
                key.key_id,
                tenant,
                key.secret_hash,
                note,
                expires_in,
            )
    except Exception as error:
        if isinstance(error.__cause__, asyncpg.ForeignKeyViolationError):
            raise UnknownTenant(tenant) from error
        raise
    finally:
        await connection.close()


async def revoke_api_key(admin_url: str, key_id: str) -> bool:
    """Refuse the key from now on. False when there is no such key. The operator's login."""
    connection = await connect_once(admin_url)
    try:
        with translated("revoking an API key", where=redacted(admin_url)):
            found = await connection.fetchval(
                "UPDATE tenantry.api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) "
                "WHERE key_id = $1 RETURNING true",
                key_id,
            )
            return bool(found)
    finally:
        await connection.close()


async def _write(
    connection: "asyncpg.Connection[asyncpg.Record]", registry: Registry, after: int | None
) -> int:
    version: int | None = await connection.fetchval(
        "UPDATE tenantry.registry SET version = version + 1, floor = $1 "
        "WHERE $2::bigint IS NULL OR version = $2 RETURNING version",
        registry.floor,
        after,
    )
    if version is None:
        raise UsageError(
            f"the registry was changed while this was prepared (it is no longer version {after}): nothing "
            "was written. Run the command again, so that it starts from what is in force now"
        )
    tenants = [(d.tenant, folded(d.tenant), d.tier, json.dumps(encode_document(d))) for d in registry.tenants]
    tiers = [(t.name, n, json.dumps(encode_tier(t))) for n, t in enumerate(registry.tiers)]
    await connection.execute(
        "DELETE FROM tenantry.tenants WHERE tenant_id <> ALL ($1::text[])", [tenant[0] for tenant in tenants]
    )
    await connection.executemany(
        "INSERT INTO tenantry.tiers (name, position, settings) VALUES ($1, $2, $3) ON CONFLICT (name) "
        "DO UPDATE SET position = EXCLUDED.position, settings = EXCLUDED.settings",
        tiers,
    )
    await connection.executemany(
        "INSERT INTO tenantry.tenants (tenant_id, folded, tier, document) VALUES ($1, $2, $3, $4) "
        "ON CONFLICT (tenant_id) DO UPDATE SET tier = EXCLUDED.tier, document = EXCLUDED.document",
        tenants,
    )
    await connection.execute(
        "DELETE FROM tenantry.tiers WHERE name <> ALL ($1::text[])", [name for name, _, _ in tiers]
    )
    return version


def _registry(row: asyncpg.Record) -> Registry:
    tiers = tuple(decode_tier(name, settings) for name, settings in json.loads(row["tiers"]))
    tenants = tuple(
        decode_document(TenantId(tenant), TierName(tier), document)
        for tenant, tier, document in json.loads(row["tenants"])
    )
    return Registry(tiers=tiers, tenants=tenants, floor=row["floor"])
