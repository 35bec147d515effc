"""Case D9: a backup by a role that policies hold fails, or says it went well and lacks the rows."""

import subprocess
from pathlib import Path

import pytest
from rls_servers import BINARIES, Databases, run

from tenantry.postgres.binaries import packaged
from tenantry.postgres.catalogue import PostgresCatalogue
from tenantry.postgres.urls import DatabaseUrls
from tenantry.rls import Declared, audit

TABLE = """
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
INSERT INTO orders VALUES (1, 1), (2, 2);
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON orders USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
"""


def pg_dump(databases: Databases, url: str, *words: str) -> "subprocess.CompletedProcess[str]":
    program = (BINARIES[databases.version] or packaged()) / "pg_dump"
    if not Path(program).exists():
        pytest.skip(f"there is no pg_dump of PostgreSQL {databases.version}")
    return subprocess.run(
        [program, *words, "--data-only", "--table", "orders", url],
        capture_output=True,
        text=True,
        check=False,
    )


async def test_a_dump_under_policies_fails_or_is_empty_and_the_audit_says_so(
    rls_databases: Databases,
) -> None:
    url = rls_databases(TABLE)
    name = rls_databases.role("rls_backup")
    run(url, f"GRANT pg_read_all_data TO {name}")
    login = DatabaseUrls.derived(url).admin.replace("//postgres", f"//{name}", 1)
    refused = pg_dump(rls_databases, login)
    assert refused.returncode != 0
    assert "row-level security" in refused.stderr
    hollow = pg_dump(rls_databases, login, "--enable-row-security")
    assert hollow.returncode == 0
    assert "\t" not in hollow.stdout.partition("COPY public.orders")[2].partition("\\.")[0]
    facts = await PostgresCatalogue(url).facts()
    said = audit(facts, Declared(application_roles=("postgres",))).findings
    assert "dump-under-policies: role rls_backup" in {each.key for each in said}
    run(url, f"ALTER ROLE {name} BYPASSRLS")
    whole = pg_dump(rls_databases, login)
    assert whole.returncode == 0
    assert "2\t2" in whole.stdout
