"""What is written for psql, Alembic and Django, run by them: there, back, and there again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rls_servers import BINARIES, Databases, ask, planned, run, without

from tenantry.rls.migrations import alembic_migration, django_migration
from tenantry.rls.script import Bounds, sql_file

pytestmark = [
    pytest.mark.needs_postgres,
    pytest.mark.parametrize("rls_server", [18], indirect=True),  # versions differ below, not here
]

TABLES = (
    "CREATE TABLE invoices (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id))",
    'CREATE TABLE "odd :name%s" (id serial, "ten""ant" text NOT NULL)',
    "CREATE VIEW totals AS SELECT tenant_id, count(*) FROM invoices GROUP BY 1",
    "GRANT SELECT ON totals TO app_user",
)
DECLARED = """
roles = ["app_user"]
[tables]
invoices = {}
'"odd :name%s"' = { column = 'ten"ant', type = "text" }
"""
BOUNDS = Bounds()

ENV = """
from alembic import context
from sqlalchemy import create_engine, pool

engine = create_engine(context.config.get_main_option("sqlalchemy.url"), poolclass=pool.NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
"""
SETTINGS = """
from urllib.parse import parse_qs, urlsplit

parts = urlsplit({url!r})
DATABASES = {{"default": {{
    "ENGINE": "django.db.backends.postgresql", "NAME": parts.path[1:], "USER": "postgres",
    "HOST": parse_qs(parts.query)["host"][0], "PORT": "5432",
}}}}
INSTALLED_APPS = ["shop"]
SECRET_KEY = "x"
"""


@pytest.fixture
def url(rls_databases: Databases) -> str:
    rls_databases.role("app_user")
    return rls_databases(*TABLES)


def test_psql_runs_the_file_there_again_and_back(url: str, tmp_path: Path) -> None:
    psql = (BINARIES[15] or Path()) / "psql"
    if not psql.exists():
        without(f"there is no {psql}: sh tests/install_servers.sh")
    plan = planned(url, DECLARED)
    up, down = tmp_path / "up.sql", tmp_path / "down.sql"
    up.write_text(sql_file(plan.steps, BOUNDS, heading="up"))
    down.write_text(sql_file(plan.back, BOUNDS, heading="down"))
    for file, left in ((up, 0), (up, 0), (down, len(plan.steps)), (down, len(plan.steps)), (up, 0)):
        _call(psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", file, at=tmp_path)
        assert len(planned(url, DECLARED).steps) == left


def test_alembic_upgrades_downgrades_and_upgrades(url: str, tmp_path: Path) -> None:
    pytest.importorskip("alembic")
    plan = planned(url, DECLARED)
    (tmp_path / "alembic.ini").write_text(
        "[alembic]\nscript_location = %(here)s/migrations\n"
        f"sqlalchemy.url = {url.replace('postgresql:', 'postgresql+psycopg:').replace('%', '%%')}\n"
    )
    versions = tmp_path / "migrations" / "versions"
    versions.mkdir(parents=True)
    (tmp_path / "migrations" / "env.py").write_text(ENV)
    (versions / "row_policies.py").write_text(alembic_migration(plan, BOUNDS))
    for words, left in (
        (("upgrade", "head"), 0),
        (("downgrade", "base"), len(plan.steps)),
        (("upgrade", "head"), 0),
    ):
        _call(sys.executable, "-m", "alembic", *words, at=tmp_path)
        assert len(planned(url, DECLARED).steps) == left
    assert len(ask(url, "SELECT version_num FROM alembic_version")) == 1


def test_alembic_writes_the_same_as_sql(url: str, tmp_path: Path) -> None:
    pytest.importorskip("alembic")
    (tmp_path / "alembic.ini").write_text(
        "[alembic]\nscript_location = %(here)s/migrations\nsqlalchemy.url = postgresql+psycopg://\n"
    )
    versions = tmp_path / "migrations" / "versions"
    versions.mkdir(parents=True)
    (tmp_path / "migrations" / "env.py").write_text(
        "from alembic import context\n"
        'context.configure(dialect_name="postgresql", literal_binds=True, as_sql=True)\n'
        "with context.begin_transaction():\n    context.run_migrations()\n"
    )
    (versions / "row_policies.py").write_text(alembic_migration(planned(url, DECLARED), BOUNDS))
    said = _call(sys.executable, "-m", "alembic", "upgrade", "head", "--sql", at=tmp_path)
    assert 'ON public."odd :name%s" ' in said.replace("%%", "%")


def test_django_migrates_and_back_and_again(url: str, tmp_path: Path) -> None:
    pytest.importorskip("django")
    plan = planned(url, DECLARED)
    migrations = tmp_path / "shop" / "migrations"
    migrations.mkdir(parents=True)
    for package in (tmp_path / "shop", migrations):
        (package / "__init__.py").touch()
    (tmp_path / "shop_settings.py").write_text(SETTINGS.format(url=url))
    (migrations / "0001_initial.py").write_text(
        "from django.db import migrations\n\n\nclass Migration(migrations.Migration):\n    operations = []\n"
    )
    (migrations / "0002_row_policies.py").write_text(
        django_migration(plan, BOUNDS, after="shop.0001_initial")
    )
    for target, left in (("0002", 0), ("0001", len(plan.steps)), ("0002", 0)):
        words = ("-m", "django", "migrate", "shop", target, "--settings", "shop_settings", "--skip-checks")
        _call(sys.executable, *words, at=tmp_path)
        assert len(planned(url, DECLARED).steps) == left


def test_a_migration_that_gets_no_lock_fails_whole_and_can_be_run_again(url: str, tmp_path: Path) -> None:
    psql = (BINARIES[15] or Path()) / "psql"
    if not psql.exists():
        without(f"there is no {psql}: sh tests/install_servers.sh")
    plan = planned(url, DECLARED)
    up = tmp_path / "up.sql"
    up.write_text(sql_file(plan.steps, Bounds(lock_wait=0.1), heading="up"))
    words = (psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", up)
    run(url, "BEGIN; LOCK TABLE invoices; PREPARE TRANSACTION 'in the way'")
    failed = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    assert failed.returncode == 3
    assert "canceling statement due to lock timeout" in failed.stderr
    run(url, "ROLLBACK PREPARED 'in the way'")
    _call(*words, at=tmp_path)
    assert planned(url, DECLARED).steps == ()


def _call(*words: object, at: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(at)}  # noqa: TID251 - what the child is given
    done = subprocess.run(
        list(map(str, words)), cwd=at, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
