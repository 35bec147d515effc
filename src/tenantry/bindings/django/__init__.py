"""Tenants' transactions for Django: a database backend whose ``atomic`` blocks are bound to the current
tenant.

::

    DATABASES = {
        "default": {
            "ENGINE": "tenantry.bindings.django",
            "OPTIONS": {"tenant_binding": Binding(type="uuid")},
            ...
        },
    }

Everything that opens a transaction is bound: ``transaction.atomic``, ``ATOMIC_REQUESTS``, what a library
does. Where the binding is strict, a statement outside ``atomic`` is refused before it is sent, since in
autocommit nothing is bound; migrations and other work of no tenant belong to another alias, with its own
login and Django's own backend. Needs psycopg 3.

``base``  the backend, :class:`~tenantry.bindings.django.base.DatabaseWrapper`
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tenantry.bindings.context import use_tenant
from tenantry.kernel.errors import MissingExtra

try:
    from django.db import transaction
except ModuleNotFoundError as missing:
    raise MissingExtra("django", "tenantry.bindings.django") from missing

__all__ = ["tenant_atomic"]


@contextmanager
def tenant_atomic(
    tenant: object, using: str | None = None, *, savepoint: bool = True, durable: bool = False
) -> Iterator[None]:
    """``transaction.atomic`` with ``tenant`` as the current tenant; also a decorator.

    Inside another tenant's block it is refused before anything is sent. Raises what
    :mod:`tenantry.bindings.errors` lists, :class:`~tenantry.kernel.errors.InvalidValue` for what is no
    tenant, and what Django raises."""
    with use_tenant(tenant), transaction.atomic(using, savepoint, durable):
        yield
