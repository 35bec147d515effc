"""The catalogue is read while others change it: never a broken picture, never an error."""

import asyncio
from contextlib import suppress
from datetime import timedelta

import asyncpg
import pytest

from tenantry.kernel.errors import StoreUnavailable
from tenantry.postgres.catalogue import PostgresCatalogue
from tenantry.rls import Declared, audit

READINGS = 12

CHANGES = (
    "CREATE TABLE passing (tenant_id int NOT NULL DEFAULT 1, id int PRIMARY KEY, CHECK (id > 0));"
    "CREATE INDEX ON passing ((id + 1)) WHERE id > 3;"
    "ALTER TABLE passing ENABLE ROW LEVEL SECURITY;"
    "CREATE POLICY p ON passing USING (tenant_id = 1);"
    "CREATE VIEW passing_view AS SELECT * FROM passing;"
    "CREATE RULE r AS ON INSERT TO passing DO ALSO NOTHING;"
    "CREATE FUNCTION passing_function(int) RETURNS int LANGUAGE sql AS 'SELECT $1';"
    "CREATE SEQUENCE passing_sequence OWNED BY passing.id;",
    "DROP TABLE passing CASCADE; DROP FUNCTION passing_function;",
)


async def _change(url: str, go_on: asyncio.Event) -> None:
    connection = await asyncpg.connect(url)
    try:
        while go_on.is_set():
            for script in CHANGES:
                await connection.execute(script)
    finally:
        await connection.close()


async def test_a_reading_beside_others_ddl_is_whole_and_raises_nothing(empty_database_url: str) -> None:
    setup = await asyncpg.connect(empty_database_url)
    await setup.execute("CREATE TABLE staying (tenant_id int NOT NULL, id int, PRIMARY KEY (tenant_id, id))")
    await setup.close()
    go_on = asyncio.Event()
    go_on.set()
    changing = [asyncio.create_task(_change(empty_database_url, go_on))]
    seen = set()
    try:
        for _ in range(READINGS):
            facts = await PostgresCatalogue(empty_database_url).facts()
            audit(facts, Declared())
            names = {each.name for each in facts.relations.values()}
            policies = {each.name for each in facts.policies}
            assert "staying" in names
            # one snapshot: the passing things are there together or not at all
            assert len({"passing" in names, "passing_view" in names, bool(policies)}) == 1
            seen.add("passing" in names)
    finally:
        go_on.clear()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*changing)
    assert seen, "nothing was read"


async def test_a_reading_does_not_wait_for_ever_for_a_table_that_a_migration_has_locked(
    empty_database_url: str,
) -> None:
    migration = await asyncpg.connect(empty_database_url)
    await migration.execute("CREATE TABLE hot (tenant_id int, id int); CREATE INDEX ON hot (id) WHERE id > 3")
    transaction = migration.transaction()
    await transaction.start()
    try:
        await migration.execute("LOCK TABLE hot IN ACCESS EXCLUSIVE MODE")
        catalogue = PostgresCatalogue(empty_database_url, lock_wait=timedelta(milliseconds=50))
        with pytest.raises(StoreUnavailable, match="a lock was not to be had in time"):
            async with asyncio.timeout(30):
                await catalogue.facts()
    finally:
        await transaction.rollback()
        await migration.close()
