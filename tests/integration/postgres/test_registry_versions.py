"""Two operators who change the registry at once: neither undoes, unseen, what the other wrote."""

import asyncio

import pytest

from tenantry.config.api_keys import make_api_key
from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import UsageError
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.postgres.database import Database
from tenantry.postgres.directory import PostgresApiKeys, PostgresDirectory, add_api_key, write_registry
from tenantry.postgres.urls import DatabaseUrls

pytestmark = pytest.mark.needs_postgres

ACME, GLOBEX = (TenantDocument(TenantId(name), TierName("standard")) for name in ("acme", "globex"))


async def test_of_two_changes_of_one_version_one_is_refused_and_writes_nothing(
    database_urls: DatabaseUrls,
) -> None:
    first = await write_registry(database_urls.admin, Registry())
    answers = await asyncio.gather(
        *(
            write_registry(database_urls.admin, Registry(tenants=(each,)), after=first)
            for each in (ACME, GLOBEX)
        ),
        return_exceptions=True,
    )
    (version,) = (answer for answer in answers if isinstance(answer, int))
    (refusal,) = (answer for answer in answers if isinstance(answer, UsageError))
    assert version == first + 1
    assert "again" in str(refusal)
    async with await Database.open(database_urls, engine_connections=1, tenant_connections=1) as database:
        directory = PostgresDirectory(database)
        await directory.refresh()
        winner = (ACME, GLOBEX)[answers.index(version)]
        assert (directory.version, list(directory.tenants())) == (version, [winner])


@pytest.mark.parametrize(("expires_in", "usable"), [(None, True), (3_600.0, True), (-1.0, False)])
async def test_a_key_is_refused_once_its_time_is_over(
    database_urls: DatabaseUrls, expires_in: Seconds | None, usable: bool
) -> None:
    await write_registry(database_urls.admin, Registry(tenants=(ACME,)))
    key = make_api_key(SystemRandomness())
    await add_api_key(database_urls.admin, ACME.tenant, key, expires_in=expires_in)
    async with await Database.open(database_urls, engine_connections=1, tenant_connections=1) as database:
        stored = await PostgresApiKeys(database).find(key.key_id)
    assert stored is not None
    assert stored.usable_at(SystemClock().now()) is usable
