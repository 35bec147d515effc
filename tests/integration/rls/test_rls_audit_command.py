"""`tenantry rls audit` and `rules`, run as people and CI run them, against real servers."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rls_servers import Databases, run

from tenantry.cli import main as cli
from tenantry.postgres.urls import DatabaseUrls
from tenantry.rls import RULES
from tenantry.testing.row_policies import base

OPEN = """
CREATE TABLE shop.orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
GRANT SELECT ON shop.orders TO shop_app;
"""
UNFORCED = "ALTER TABLE shop.invoices NO FORCE ROW LEVEL SECURITY"
DECLARATION = """
roles = ["shop_app"]
[tables]
"shop.customers" = {}
"shop.invoices" = {}
[shared]
"shop.currencies" = "one list for all"
[services]
shop_engine = "settles for all tenants"
"""

Tenantry = Callable[..., tuple[int, str, str]]


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
def databases(postgres_admin_url: str) -> Iterator[Databases]:
    """Of one server: what a command says does not depend on the version."""
    databases = Databases(postgres_admin_url, version=0)
    yield databases
    databases.drop()


@pytest.fixture
def shop(databases: Databases) -> str:
    """A superuser's URL of a database with the kit's shop in it, which is clean."""
    script = base()
    for name, attribute in (("shop_app", "LOGIN"), ("shop_owner", "NOLOGIN")):
        databases.role(name, attribute)
        script = script.replace(f"CREATE ROLE {name} {attribute};", "")
    return databases(f"BEGIN; {script}; COMMIT")


@pytest.fixture
def broken(shop: str) -> str:
    """The same with one critical and one medium fault."""
    run(shop, OPEN, UNFORCED)
    return shop


def test_a_clean_database_ends_with_0_and_says_what_was_looked_at(shop: str, tenantry: Tenantry) -> None:
    code, out, _ = tenantry("rls", "audit", "--database-url", shop)
    assert code == 0
    assert "2 tenant tables" in out
    assert "as shop_app" in out
    assert out.rstrip().endswith("Nothing found.")


def test_findings_end_with_1_the_worst_first_with_the_sql_that_mends_them(
    broken: str, tenantry: Tenantry
) -> None:
    code, out, _ = tenantry("rls", "audit", "--database-url", broken)
    assert code == 1
    worst, other = "critical  rls-off: table shop.orders", "unforced-owner: table shop.invoices"
    assert 0 <= out.index(worst) < out.index(other)
    assert "ALTER TABLE shop.orders ENABLE ROW LEVEL SECURITY;" in out
    assert "Found 1 critical" in out


@pytest.mark.parametrize(
    ("fail_on", "code"), [("critical", 1), ("high", 1), ("medium", 1), ("low", 1), ("never", 0)]
)
def test_the_exit_code_is_1_from_the_wanted_severity_on(
    fail_on: str, code: int, broken: str, tenantry: Tenantry
) -> None:
    assert tenantry("rls", "audit", "--database-url", broken, "--fail-on", fail_on)[0] == code


def test_faults_below_the_wanted_severity_are_told_and_end_with_0(shop: str, tenantry: Tenantry) -> None:
    run(shop, UNFORCED)
    code, out, _ = tenantry("rls", "audit", "--database-url", shop, "--fail-on", "critical")
    assert code == 0
    assert "unforced-owner" in out


def test_the_sql_of_the_fixes_mends_what_was_found(broken: str, tenantry: Tenantry) -> None:
    found = json.loads(tenantry("rls", "audit", "--database-url", broken, "--json")[1])["findings"]
    run(broken, *(each["fix_sql"] for each in found))
    left = json.loads(tenantry("rls", "audit", "--database-url", broken, "--json")[1])["findings"]
    assert left == []


def test_that_more_may_follow_once_row_security_is_on_is_said(
    broken: str, shop: str, tenantry: Tenantry
) -> None:
    assert "row security is off on 1 tenant table: keys over all tenants, foreign keys and views" in " ".join(
        tenantry("rls", "audit", "--database-url", broken)[2].split()
    )
    run(shop, "DROP TABLE shop.orders")
    assert "row security is off" not in tenantry("rls", "audit", "--database-url", shop)[2]


def test_json_is_one_document_with_everything(broken: str, tenantry: Tenantry) -> None:
    code, out, _ = tenantry("rls", "audit", "--database-url", broken, "--json")
    said = json.loads(out)
    assert code == 1
    assert said["application"] == ["shop_app"]
    assert said["tenant_tables"]["shop.invoices"] == "tenant_id"
    assert said["rules"] == len(RULES)
    assert said["counts"]["critical"] == 1
    assert {each["key"] for each in said["findings"]} >= {"rls-off: table shop.orders"}
    assert said["findings"][0]["role"] == "shop_app"


def test_a_baseline_accepts_what_is_known_and_ci_sees_what_is_new(
    shop: str, tenantry: Tenantry, tmp_path: Path
) -> None:
    file = str(tmp_path / "baseline.toml")
    run(shop, UNFORCED)
    assert tenantry("rls", "audit", "--database-url", shop, "--baseline", file, "--write-baseline")[0] == 0
    code, out, err = tenantry("rls", "audit", "--database-url", shop, "--baseline", file)
    assert code == 0
    assert "accepted  unforced-owner: table shop.invoices" in out
    assert "accepted without a reason: write it in" in err
    run(shop, OPEN)
    code, out, _ = tenantry("rls", "audit", "--database-url", shop, "--baseline", file)
    assert code == 1
    assert "rls-off" in out
    run(shop, "ALTER TABLE shop.invoices FORCE ROW LEVEL SECURITY", "DROP TABLE shop.orders")
    code, out, _ = tenantry("rls", "audit", "--database-url", shop, "--baseline", file)
    assert code == 0
    assert "stale     unforced-owner: table shop.invoices" in out


def test_a_declaration_that_lies_there_unread_is_remarked_on(
    shop: str, tenantry: Tenantry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "was not read" not in tenantry("rls", "audit", "--database-url", shop)[2]
    (tmp_path / "rls.toml").write_text(DECLARATION)
    assert "--declaration rls.toml" in tenantry("rls", "audit", "--database-url", shop)[2]
    words = ("--declaration", "rls.toml")
    assert "was not read" not in tenantry("rls", "audit", "--database-url", shop, *words)[2]


def test_a_service_role_is_excused_with_its_reason_and_refused_once_a_tenant_can_become_it(
    shop: str, databases: Databases, tenantry: Tenantry, tmp_path: Path
) -> None:
    file = tmp_path / "rls.toml"
    file.write_text(DECLARATION)
    databases.role("shop_engine", "LOGIN BYPASSRLS")
    code, out, _ = tenantry("rls", "audit", "--database-url", shop, "--declaration", str(file))
    assert code == 0
    assert "excused   undeclared-bypass: role shop_engine: settles for all tenants" in out
    run(shop, "GRANT shop_engine TO shop_app")
    code, out, _ = tenantry("rls", "audit", "--database-url", shop, "--declaration", str(file))
    assert code == 1
    assert "service-role-reachable: role shop_app as shop_engine" in out


def test_sarif_names_rules_places_and_what_is_suppressed(
    broken: str, tenantry: Tenantry, tmp_path: Path
) -> None:
    file, output = tmp_path / "baseline.toml", tmp_path / "report.sarif"
    file.write_text('[accepted]\n"unforced-owner: table shop.invoices" = "moved next week"\n')
    words = ("--format", "sarif", "--baseline", str(file), "--output", str(output))
    assert tenantry("rls", "audit", "--database-url", broken, *words)[0] == 1
    (log,) = json.loads(output.read_text())["runs"]
    rules = log["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == [rule.name for rule in RULES]
    by_rule = {each["ruleId"]: each for each in log["results"]}
    opened, accepted = by_rule["rls-off"], by_rule["unforced-owner"]
    assert rules[opened["ruleIndex"]]["id"] == "rls-off"
    assert opened["level"] == "error"
    (place,) = opened["locations"][0]["logicalLocations"]
    assert place == {"fullyQualifiedName": "shop.orders", "kind": "table"}
    assert "suppressions" not in opened
    assert accepted["suppressions"] == [{"kind": "external", "justification": "moved next week"}]


def test_one_rule_alone_can_be_asked_for(broken: str, tenantry: Tenantry) -> None:
    code, out, _ = tenantry("rls", "audit", "--database-url", broken, "--rule", "unforced-owner", "--json")
    said = json.loads(out)
    assert (code, said["rules"]) == (1, 1)
    assert {each["rule"] for each in said["findings"]} == {"unforced-owner"}


def test_an_audit_of_nothing_is_no_clean_audit(databases: Databases, tenantry: Tenantry) -> None:
    url = databases("CREATE TABLE plain (id int)")
    code, _, err = tenantry("rls", "audit", "--database-url", url)
    assert code == 2
    assert "no tenant table was recognised" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rule", "rls-of"), "'rls-off'"),
        (("--role", "shop_ap"), "'shop_app'"),
        (("--service", "shop_engine"), "ROLE=REASON"),
        (("--write-baseline",), "--baseline"),
        (("--json", "--format", "sarif"), "one of them"),
        (("--declaration", "nowhere.toml"), "nowhere.toml"),
        (("--declaration", "nowhere.toml", "--role", "shop_app"), "the one or the other"),
    ],
)
def test_what_must_be_changed_ends_with_2_and_says_how(
    words: tuple[str, ...], said: str, shop: str, tenantry: Tenantry
) -> None:
    code, _, err = tenantry("rls", "audit", "--database-url", shop, *words)
    assert code == 2
    assert said in err


def test_a_database_that_is_not_there_ends_with_3(tenantry: Tenantry) -> None:
    assert tenantry("rls", "audit", "--database-url", "postgresql://x@127.0.0.1:1/x")[0] == 3


def test_tenantrys_own_tables_can_be_asked_about_by_name(
    database_urls: DatabaseUrls, tenantry: Tenantry
) -> None:
    code, out, err = tenantry("rls", "audit", "--own", "--database-url", database_urls.admin)
    assert code == 0, out + err
    assert "as tenantry_tenant" in out
    assert "excused   service-role: role tenantry_engine" in out


def test_own_tables_are_not_looked_for_in_another_database(shop: str, tenantry: Tenantry) -> None:
    code, out, err = tenantry("rls", "audit", "--own", "--database-url", shop)
    assert (code, out) == (2, "")
    assert "--own is about Tenantry's own tables, and the database" in err
    assert "postgresql://postgres@/postgres?host=/PATH/OF/THIS/DIRECTORY/.tenantry/socket" in err


def test_own_tables_take_no_other_declaration(tenantry: Tenantry) -> None:
    nowhere = "postgresql://x@127.0.0.1:1/x"
    code, _, err = tenantry("rls", "audit", "--own", "--role", "app", "--database-url", nowhere)
    assert code == 2
    assert "--own" in err
