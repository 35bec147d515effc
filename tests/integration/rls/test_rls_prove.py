"""`tenantry rls prove`, run as people run it, on Tenantry's own schema and on a small shop."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pytest
from rls_servers import Databases, ask, run

from tenantry.cli import main as cli
from tenantry.postgres.urls import DatabaseUrls
from tenantry.testing.row_policies import base

Tenantry = Callable[..., tuple[int, str, str]]

REAL = "secret of a real tenant"
REAL_ROWS = f"""
INSERT INTO shop.customers VALUES (7, 1, '{REAL}'), (8, 1, '{REAL}');
INSERT INTO shop.invoices VALUES (7, 1, 1, 5, '{REAL}'), (8, 1, 1, 5, '{REAL}');
"""
OPEN = "ALTER TABLE shop.invoices DISABLE ROW LEVEL SECURITY"


@pytest.fixture
def tenantry(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tenantry:
    """``tenantry(*words)``: exit code, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tenantry", *words])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def shop(rls_databases: Databases) -> Iterator[str]:
    """A shop with rows of real tenants, on each server version."""
    rls_databases.roles += ["shop_app", "shop_owner"]
    run(rls_databases.admin_url, "DROP ROLE IF EXISTS shop_app", "DROP ROLE IF EXISTS shop_owner")
    # in one transaction, since the script sets its role locally
    yield rls_databases(f"BEGIN; {base()} RESET ROLE; {REAL_ROWS} COMMIT;")


def _everything(url: str) -> list[Any]:
    return ask(
        url,
        "SELECT 'c', t::text, xmin::text FROM shop.customers AS t "
        "UNION ALL SELECT 'i', t::text, xmin::text FROM shop.invoices AS t ORDER BY 1, 2",
    )


def test_the_products_own_schema_proves_clean(database_urls: DatabaseUrls, tenantry: Tenantry) -> None:
    code, out, err = tenantry("rls", "prove", "--own", "--json", "--database-url", database_urls.admin)
    told = json.loads(out)
    assert (told["unfound"], told["clean"], code) == ([], True, 0), err
    # its partitions are made for days on which something was replayed
    assert set(told["unplanted"]) <= {"tenantry.replay_keys"}
    assert told["attempts"]["held"] + told["attempts"]["refused"] > 100


def test_a_shop_without_holes_is_clean_and_left_as_it_was(shop: str, tenantry: Tenantry) -> None:
    before = _everything(shop)
    code, out, _ = tenantry("rls", "prove", "--json", "--database-url", shop)
    told = json.loads(out)
    assert (code, told["clean"], told["leaked"]) == (0, True, [])
    assert told["attempts"]["held"] > 20
    assert told["unplanted"] == {}
    assert _everything(shop) == before


def test_a_leak_is_shown_by_statement_and_planted_row_and_never_by_a_real_one(
    shop: str, tenantry: Tenantry
) -> None:
    run(shop, OPEN)
    before = _everything(shop)
    code, out, _ = tenantry("rls", "prove", "--database-url", shop)
    assert code == 1
    assert "confirmed     dormant-policies: " in out
    assert "SELECT tenant_id, id, customer_no, amount, note FROM shop.invoices;" in out
    assert '"tenant_id": 1700000002' in out
    assert REAL not in out
    assert _everything(shop) == before


def test_a_login_that_is_no_superuser_and_an_unknown_door_are_refused(shop: str, tenantry: Tenantry) -> None:
    code, _, err = tenantry("rls", "prove", "--door", "reed", "--database-url", shop)
    assert (code, "did you mean 'read'?" in err) == (2, True)
    url = shop.replace("//postgres@", "//shop_app@")
    code, _, err = tenantry("rls", "prove", "--database-url", url)
    assert (code, "needs a superuser's login" in err) == (2, True)


def test_what_functions_and_errors_say_of_real_rows_is_not_told(shop: str, tenantry: Tenantry) -> None:
    body = "SELECT note INTO found FROM shop.invoices ORDER BY tenant_id LIMIT 1; RAISE EXCEPTION '%', found;"
    run(
        shop,
        OPEN,
        "CREATE FUNCTION shop.said() RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop "
        f"AS $$ DECLARE found text; BEGIN {body} END $$",
        "CREATE FUNCTION shop.peeked(note text) RETURNS boolean LANGUAGE plpgsql COST 1 LEAKPROOF "
        "AS $$ BEGIN RAISE NOTICE '%', note; RETURN true; END $$",
    )
    for form in ((), ("--json",), ("--every",)):
        code, out, _ = tenantry("rls", "prove", *form, "--database-url", shop)
        assert (code, REAL in out) == (1, False)


def test_every_attempt_is_told_with_a_reason_where_it_has_one(shop: str, tenantry: Tenantry) -> None:
    code, out, _ = tenantry("rls", "prove", "--every", "--database-url", shop)
    assert code == 0
    told = [line for line in out.splitlines() if line.startswith("              as shop_app with ")]
    assert "              as shop_app with no tenant" in told
    assert [line for line in told if line.rstrip(" ;") != line] == []


def test_a_database_that_is_away_ends_with_three(shop: str, tenantry: Tenantry) -> None:
    code, _, _ = tenantry("rls", "prove", "--database-url", "postgresql://postgres@127.0.0.1:1/nowhere")
    assert code == 3


async def _counted(connection: "asyncpg.Connection[Any]", query: str, wanted: int) -> None:
    """Waits until ``query`` counts so many."""
    async with asyncio.timeout(30):
        while await connection.fetchval(query) != wanted:
            pass


_WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenantry rls prove' "
    "AND wait_event_type = 'Lock'"
)
_THERE = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenantry rls prove'"


async def test_a_process_that_is_killed_in_the_middle_leaves_nothing(shop: str) -> None:
    before = _everything(shop)
    holder, watcher = await asyncpg.connect(shop), await asyncpg.connect(shop)
    try:
        held = holder.transaction()
        await held.start()
        await holder.execute("LOCK TABLE shop.invoices IN SHARE MODE")
        command = ("-m", "tenantry.cli.main", "rls", "prove", "--lock-timeout", "60", "--database-url", shop)
        attack = await asyncio.create_subprocess_exec(sys.executable, *command)
        await _counted(watcher, _WAITING, 1)  # customers are planted, invoices wait
        attack.kill()
        await attack.wait()
        await _counted(watcher, _THERE, 0)
        await held.rollback()
        assert _everything(shop) == before
    finally:
        await holder.close()
        await watcher.close()


def test_a_trigger_with_effects_outside_is_named_and_not_set_off(shop: str, tenantry: Tenantry) -> None:
    run(
        shop,
        "CREATE SEQUENCE shop.told",
        "CREATE FUNCTION shop.tell() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM setval('shop.told', 77); RETURN NEW; END $$",
        "CREATE TRIGGER tell BEFORE INSERT ON shop.customers FOR EACH ROW EXECUTE FUNCTION shop.tell()",
        "GRANT USAGE, UPDATE ON SEQUENCE shop.told TO shop_app",
    )
    code, out, _ = tenantry("rls", "prove", "--json", "--database-url", shop)
    assert json.loads(out)["outside"] == {"shop.customers": "trigger tell: its body says 'setval'"}
    assert ask(shop, "SELECT last_value FROM shop.told") == [(1,)]
    assert code == 0


def test_the_upsert_of_case_d4_tells_the_value_of_the_row_in_its_way(shop: str, tenantry: Tenantry) -> None:
    run(
        shop,
        "CREATE TABLE shop.users (tenant_id int NOT NULL, email text NOT NULL UNIQUE, body text NOT NULL, "
        "PRIMARY KEY (tenant_id, email))",
        "ALTER TABLE shop.users ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE shop.users FORCE ROW LEVEL SECURITY",
        "CREATE POLICY tenant ON shop.users "
        "USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int)",
        "GRANT SELECT, INSERT, UPDATE ON shop.users TO shop_app",
    )
    code, out, _ = tenantry("rls", "prove", "--door", "upsert", "--json", "--database-url", shop)
    (finding,) = (each for each in json.loads(out)["findings"] if each["rule"] == "on-conflict")
    assert (code, finding["verdict"]) == (1, "confirmed")
    assert 'invalid input syntax for type integer: "b-1700000002"' in finding["by"]["why"]
