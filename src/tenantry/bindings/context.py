"""The current tenant, and the transactions that are open here: context variables.

A task copies its context when it is made: a tenant set before is the new task's too, one set later is not,
and what the new task sets stays its own. A thread begins without a tenant, unless it is started in a copied
context (``asyncio.to_thread``, Django's ``sync_to_async``). An open transaction belongs to the task or
thread that opened it: a copy of the context does not make it the child's.
"""

import asyncio
import threading
from asyncio import _get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tenantry.bindings.errors import OtherTenant
from tenantry.bindings.model import Binding
from tenantry.bindings.rules import value_of

_current: ContextVar[object | None] = ContextVar("tenantry_tenant", default=None)
_open: ContextVar["Open | None"] = ContextVar("tenantry_transaction", default=None)


@contextmanager
def use_tenant(tenant: object | None) -> Iterator[None]:
    """Inside, transactions that name no tenant are ``tenant``'s. Nests; None is no tenant.

    Sends nothing and changes no transaction that is already open: a statement in one that is another tenant's
    is refused where a driver lets us see it. What is no tenant is refused when a transaction opens. For one
    task or thread; see this module for what its children see.
    """
    token = _current.set(tenant)
    try:
        yield
    finally:
        _current.reset(token)


def current_tenant() -> object | None:
    """The tenant that :func:`use_tenant` named here, as it was given, or None."""
    return _current.get()


@dataclass(slots=True, eq=False)
class Open:
    """A bound transaction that is open. ``named``: the tenant as it was given, and ``value`` as it is bound.
    ``connection``: the driver's, when it was the caller's own. ``outer``: what was noted here before."""

    binding: Binding
    named: object | None
    value: str
    connection: object | None
    runner: object
    outer: "Open | None"
    live: bool = True

    def is_of(self, binding: Binding, runner: object) -> bool:
        """Whether it is open yet, of ``binding``, and opened by ``runner``, a task or thread."""
        return self.live and self.runner is runner and self.binding == binding


def open_here(binding: Binding) -> Open | None:
    """The innermost transaction of ``binding`` that this very task or thread has open."""
    found = _open.get()
    return found if found is not None and found.is_of(binding, _runner()) else None


def enter(binding: Binding, tenant: object | None, connection: object | None = None, *, doing: str) -> Open:
    """Note a transaction of ``tenant``, or of the current one, which ``doing`` is about to open.

    Raises :class:`TenantMissing`, :class:`OtherTenant` when one of another tenant is open here, and
    :class:`~tenantry.kernel.errors.InvalidValue`."""
    named = _current.get() if tenant is None else tenant
    value = value_of(binding, named, doing=doing)
    runner, found = _runner(), _open.get()
    if found is not None and found.is_of(binding, runner) and found.value != value:
        raise OtherTenant(value, found.value)
    outer = found if found is not None and found.live else None  # what is over would be kept for ever
    opened = Open(binding, named, value, connection, runner, outer)
    _open.set(opened)
    return opened


def check_statement(opened: Open) -> None:
    """Raises :class:`OtherTenant` where the current tenant, if there is one, is not the open
    transaction's."""
    named = current_tenant()
    if named is None or named is opened.named:
        return
    value = value_of(opened.binding, named, doing="a statement")
    if value != opened.value:
        raise OtherTenant(value, opened.value)


def leave(opened: Open) -> None:
    """Note its end, in the context in which it was opened, or in another one: then it is only marked."""
    opened.live = False
    if _open.get() is opened:
        _open.set(opened.outer)


def _runner() -> object:
    loop = _get_running_loop()  # get_running_loop() raises in a thread without one, which takes long
    return (loop and asyncio.current_task(loop)) or threading.current_thread()
