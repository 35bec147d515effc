"""A fresh database with two tenants, and the queue in it."""

from collections.abc import AsyncIterator

import pytest
from queue_world import ACME, GLOBEX, Queue, opened, register_tenants

from tenantry.postgres.urls import DatabaseUrls


@pytest.fixture
async def queue(database_urls: DatabaseUrls) -> AsyncIterator[Queue]:
    await register_tenants(database_urls, ACME, GLOBEX)
    async with opened(database_urls) as queue:
        yield queue
        assert await queue.faults() == []
