"""`tenantry rls prove`, run as people run it, on Tenantry's own schema and on a small shop."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

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
    run(shop, "ALTER ROLE shop_app PASSWORD 'x'")
    url = shop.replace("postgres@", "shop_app:x@") if "postgres@" in shop else shop
    code, _, err = tenantry("rls", "prove", "--door", "reed", "--database-url", url)
    assert (code, "did you mean 'read'?" in err) == (2, True)
