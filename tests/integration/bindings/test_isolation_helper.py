"""``assert_isolated`` finds each door that is open, passes where all are shut, and leaves nothing behind."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from binding_world import APP

from tenantry.bindings import Binding
from tenantry.testing.isolation import Undecided, open_doors

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.needs_postgres

BINDING = Binding(type="int")
SHUT = """
CREATE TYPE state AS ENUM ('open', 'paid');
CREATE TABLE invoices (
    tenant_id int NOT NULL, id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number text NOT NULL,
    state state NOT NULL, at timestamptz NOT NULL DEFAULT now(), lines jsonb NOT NULL, tags text[] NOT NULL,
    key uuid NOT NULL UNIQUE, paid boolean NOT NULL, UNIQUE (tenant_id, number)
);
ALTER TABLE invoices ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON invoices USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int)
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT, INSERT, UPDATE, DELETE ON invoices TO tenantry_test_app;
"""
MINE = "tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int"

OPEN = {
    "ALTER TABLE invoices DISABLE ROW LEVEL SECURITY": {
        "SELECT of the other's rows", "SELECT FOR UPDATE of the other's rows", "INSERT for the other",
        "UPDATE of the other's rows", "UPDATE that takes the other's rows over",
        "UPDATE that gives rows to the other", "DELETE of the other's rows", "DELETE of everything",
        "no tenant is bound",
    },
    "ALTER POLICY tenant ON invoices WITH CHECK (true)": {
        "INSERT for the other", "UPDATE that gives rows to the other",
    },
    "ALTER TABLE invoices ADD UNIQUE (number)": {"ON CONFLICT with the other's row"},
    "GRANT TRUNCATE ON invoices TO tenantry_test_app": {"TRUNCATE"},
    "CREATE POLICY blind ON invoices FOR DELETE USING (true)": {"DELETE of everything"},
    "CREATE POLICY blind ON invoices FOR UPDATE USING (true)": {
        "UPDATE that takes the other's rows over", "UPDATE that gives rows to the other",
    },
    "CREATE POLICY read ON invoices FOR SELECT USING (true)": {
        "SELECT of the other's rows", "no tenant is bound",
    },
    f"ALTER POLICY tenant ON invoices USING ({MINE} OR current_setting('app.tenant_id', true) = '')": {
        "no tenant is bound",
    },
}  # fmt: skip
"""What is done to a table whose doors are shut, and the doors that it opens."""


@pytest.fixture
def owner(notes_admin_url: str) -> "Iterator[psycopg.Connection[Any]]":
    """A superuser that becomes the application where the test says so; all is rolled back."""
    with psycopg.connect(notes_admin_url) as connection:
        connection.execute(SHUT.encode())
        yield connection
        connection.rollback()


def test_a_table_whose_doors_are_shut_has_no_open_ones(owner: "psycopg.Connection[Any]") -> None:
    owner.execute(f"SET ROLE {APP}".encode())
    assert open_doors(owner, "invoices", binding=BINDING) == []


@pytest.mark.parametrize("change", list(OPEN))
def test_each_door_that_is_opened_is_found_and_no_other(
    owner: "psycopg.Connection[Any]", change: str
) -> None:
    owner.execute(change.encode())
    owner.execute(f"SET ROLE {APP}".encode())
    assert {opened.door for opened in open_doors(owner, "invoices", binding=BINDING)} == OPEN[change]


def test_nothing_is_left_of_it_and_the_open_transaction_goes_on(owner: "psycopg.Connection[Any]") -> None:
    owner.execute(f"SET ROLE {APP}".encode())
    owner.execute(b"SELECT set_config('app.tenant_id', '7', true)")
    owner.execute(b"INSERT INTO invoices (tenant_id, number, state, lines, tags, key, paid) "
                  b"VALUES (7, 'mine', 'open', '{}', '{}', gen_random_uuid(), false)")  # fmt: skip
    open_doors(owner, "invoices", binding=BINDING)
    assert owner.execute(b"SELECT current_setting('app.tenant_id'), number FROM invoices").fetchall() == [
        ("7", "mine")
    ]


def test_a_connection_without_a_transaction_has_none_afterwards(notes_url: str) -> None:
    with psycopg.connect(notes_url, autocommit=True) as connection:
        assert open_doors(connection, "notes", binding=Binding()) == []
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_what_cannot_be_made_up_is_asked_for_and_then_used(owner: "psycopg.Connection[Any]") -> None:
    owner.execute(b"ALTER TABLE invoices ADD at_place point NOT NULL, ADD CHECK (number LIKE 'R-%')")
    owner.execute(f"SET ROLE {APP}".encode())
    with pytest.raises(Undecided, match=r"no point can be made up for invoices\.at_place: give it with row="):
        open_doors(owner, "invoices", binding=BINDING)
    with pytest.raises(Undecided, match=r"cannot plant a row of its own: .*check"):
        open_doors(owner, "invoices", binding=BINDING, row={"at_place": "(1,2)"})
    given = open_doors(
        owner, "invoices", binding=BINDING, row=lambda tenant: {"at_place": "(1,2)", "number": f"R-{tenant}"}
    )
    assert given == []


def test_a_wrong_column_or_setting_is_said(owner: "psycopg.Connection[Any]") -> None:
    owner.execute(f"SET ROLE {APP}".encode())
    with pytest.raises(Undecided, match="invoices has no column org_id"):
        open_doors(owner, "invoices", binding=BINDING, column="org_id")
    with pytest.raises(Undecided, match=r"cannot plant a row of its own: .*row-level security"):
        open_doors(owner, "invoices", binding=Binding(setting="app.org", type="int"))


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of pytest's own begins sooner without what else is installed here."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


CONFTEST = """
import psycopg, pytest
from tenantry.bindings import Binding

@pytest.fixture
def tenantry_connection():
    with psycopg.connect({url!r}) as connection:
        connection.execute("SET ROLE {role}")
        yield connection
        connection.rollback()
"""


def test_the_plugin_passes_and_fails_as_the_table_does(
    pytester: pytest.Pytester, notes_admin_url: str
) -> None:
    pytester.makeconftest(CONFTEST.format(url=notes_admin_url, role=APP))
    pytester.makepyfile(
        """
        def test_shut(assert_isolated):
            assert_isolated("notes")

        def test_open(assert_isolated, tenantry_connection):
            tenantry_connection.execute("RESET ROLE")
            tenantry_connection.execute("GRANT TRUNCATE ON notes TO PUBLIC")
            tenantry_connection.execute("CREATE POLICY all_rows ON notes FOR SELECT USING (true)")
            tenantry_connection.execute("SET ROLE tenantry_test_app")
            assert_isolated("notes")
        """
    )
    run = pytester.runpytest_subprocess("-p", "tenantry.testing.pytest_plugin", "-p", "no:cacheprovider")
    run.assert_outcomes(passed=1, failed=1)
    run.stdout.fnmatch_lines(
        [
            "*notes does not keep tenants apart. 3 door(s) are open:",
            "*SELECT of the other's rows: 1 row(s), where 0 may be",
            "*no tenant is bound: * row(s), where 0 may be",
            "*TRUNCATE: the login may, and no row policy is asked",
        ]
    )


def test_without_a_connection_the_plugin_says_what_to_define(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(assert_isolated):\n    assert_isolated('notes')\n")
    run = pytester.runpytest_subprocess("-p", "tenantry.testing.pytest_plugin", "-p", "no:cacheprovider")
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines(["*define a fixture tenantry_connection*"])


def test_the_plugin_is_registered_with_pytest() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    points = project["project"]["entry-points"]["pytest11"]
    assert points == {"tenantry": "tenantry.testing.pytest_plugin"}
