"""The backend: Django's own for PostgreSQL, but for how a transaction begins and ends.

Django lets a backend begin transactions itself, under autocommit (as SQLite's does). This one does, so that
the binding travels with BEGIN; and it commits with the check in COMMIT's message."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tenantry.bindings import psycopg as room
from tenantry.bindings.context import Open, check_statement, enter, leave
from tenantry.bindings.errors import TenantMissing
from tenantry.bindings.model import DEFAULT, Binding, Judged
from tenantry.bindings.rules import Envelope
from tenantry.kernel.errors import InvalidValue, MissingExtra

try:
    from django.db.backends.postgresql import base as postgresql
    from django.db.backends.utils import debug_transaction
except ModuleNotFoundError as missing:
    raise MissingExtra("django", "tenantry.bindings.django") from missing

_OPTION = "tenant_binding"
_UNTOLD = nullcontext()


class DatabaseWrapper(postgresql.DatabaseWrapper):
    """One connection of one thread, as Django has it."""

    def __init__(self, settings_dict: dict[str, Any], *arguments: Any, **options: Any) -> None:
        super().__init__(settings_dict, *arguments, **options)
        self._binding = _binding_of(settings_dict)
        self._open: Open | None = None
        self._envelope: Envelope | None = None
        self._judged = Judged()
        self.execute_wrappers.append(self._checked)

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        params.pop(_OPTION, None)
        return params

    def _start_transaction_under_autocommit(self) -> None:
        opened = enter(self._binding, None, doing="transaction.atomic()")
        try:
            begin = room.begin_of(self.connection)
            envelope = Envelope(self._binding, opened.value, begin=begin, judged=self._judged)
            with self._told("BEGIN"), self.wrap_database_errors:
                room.open_transaction(self.connection, envelope)
        except BaseException:
            leave(opened)
            raise
        self._open, self._envelope = opened, envelope

    def _commit(self) -> None:
        if self._envelope is None or self.connection is None:
            super()._commit()  # type: ignore[misc]  # the stubs leave it out
            return
        try:
            with self._told("COMMIT"), self.wrap_database_errors:
                room.commit_transaction(self.connection, self._envelope)
        finally:
            self._left()

    def _told(self, sql: str) -> AbstractContextManager[None]:
        """In Django's log of queries, where there is one."""
        return debug_transaction(self, sql) if self.queries_logged else _UNTOLD

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._left()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._left()

    def _left(self) -> None:
        opened, self._open, self._envelope = self._open, None, None
        if opened is not None:
            leave(opened)

    def _checked(self, execute: Callable[..., Any], *statement: Any) -> Any:
        """Django calls it around each statement."""
        if self._open is not None:
            check_statement(self._open)
        elif self._binding.strict:
            raise TenantMissing("a statement outside transaction.atomic()")
        return execute(*statement)


def _binding_of(settings_dict: dict[str, Any]) -> Binding:
    binding = settings_dict.get("OPTIONS", {}).get(_OPTION, DEFAULT)
    if isinstance(binding, Binding):
        return binding
    raise InvalidValue(f"DATABASES OPTIONS {_OPTION}", binding, "a tenantry.bindings.Binding")
