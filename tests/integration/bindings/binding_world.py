"""A database with one table of tenants' notes under row policies, and a login that owns nothing."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit, urlunsplit

import psycopg
from binding_doors import Door

from tenantry.bindings import Binding
from tenantry.postgres.urls import with_database

APP, OTHER_ROLE = "tenantry_test_app", "tenantry_test_reader"
BINDING = Binding(setting="app.tenant_id")
NAME = "tenantry_bindings"

_ROLES = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tenantry_test_app') THEN
        CREATE ROLE tenantry_test_reader; CREATE ROLE tenantry_test_app LOGIN IN ROLE tenantry_test_reader;
    END IF;
END $$
"""
_SCHEMA = """
CREATE TABLE notes (
    tenant_id text NOT NULL, id int NOT NULL, body text NOT NULL, PRIMARY KEY (tenant_id, id)
);
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE notes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON notes USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON notes TO tenantry_test_app, tenantry_test_reader;
INSERT INTO notes
SELECT t, n, t || n FROM unnest(ARRAY['acme', 'globex', 'initech']) t, generate_series(1, 3) n;
"""

OpenDoor = Callable[..., Awaitable[Door]]
"""``await door_to(name, binding=…, size=…, url=…)``: a driver's door; closed after the test."""


def as_login(url: str, login: str) -> str:
    """``url``, of another login without a password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}"))


def made_database(admin_url: str) -> str:
    """The superuser's URL of a fresh database with notes."""
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {NAME} TEMPLATE template0".encode())
        connection.execute(_ROLES.encode())
    url = with_database(admin_url, NAME)
    with psycopg.connect(url) as connection:
        connection.execute(_SCHEMA.encode())
    return url


def administer(url: str, statement: str) -> None:
    """One statement on a connection of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def until_asleep(url: str, pid: int) -> None:
    """Returns when the server process ``pid`` is in pg_sleep."""
    asleep = f"SELECT FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'PgSleep'".encode()
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(asleep).rowcount == 0:
            pass
