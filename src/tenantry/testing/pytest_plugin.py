"""A pytest plugin: ``assert_isolated(table)`` fails, and says why, when a table lets one tenant reach
another's rows.

Registered by installing tenantry. Give it a connection of the application's own login, in ``conftest.py``::

    @pytest.fixture
    def tenantry_connection():
        with psycopg.connect(APPLICATION_URL) as connection:
            yield connection

    def test_invoices_are_isolated(assert_isolated):
        assert_isolated("invoices")

``tenantry_binding``, a fixture too, says which setting the policies read and of what type the tenant is.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tenantry.bindings.model import DEFAULT, Binding
from tenantry.testing.isolation import open_doors

AssertIsolated = Callable[..., None]
"""``assert_isolated(table, *, column, row, tenants)``: see :func:`tenantry.testing.isolation.open_doors`."""


@pytest.fixture
def tenantry_connection() -> Any:
    """A DB-API 2.0 connection of the application's login: yours to give."""
    pytest.fail(
        "assert_isolated needs a connection. In conftest.py, define a fixture tenantry_connection that "
        "returns a DB-API 2.0 connection (psycopg, Django's) of the login that the application uses"
    )


@pytest.fixture
def tenantry_binding() -> Binding:
    """Which setting the policies read: a text in ``app.tenant_id`` unless you define another."""
    return DEFAULT


@pytest.fixture
def assert_isolated(tenantry_connection: Any, tenantry_binding: Binding) -> AssertIsolated:
    """Fails unless every door of a table between two tenants is shut; leaves nothing behind."""

    def check(table: str, **how: Any) -> None:
        __tracebackhide__ = True
        found = open_doors(tenantry_connection, table, binding=tenantry_binding, **how)
        if found:
            lines = "\n".join(f"  {opened}" for opened in found)
            pytest.fail(f"{table} does not keep tenants apart. {len(found)} door(s) are open:\n{lines}")

    return check
