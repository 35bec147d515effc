"""How a tenant's transaction begins and ends, for every driver: judgements, and procedures without I/O.

A procedure is a generator: it yields steps (:class:`Run`, :class:`Read`), is sent their answers, and raises
what the driver's user shall see. :func:`drive` and :func:`drive_async` carry one out.

All of it happens inside the transaction, since behind a PgBouncer in transaction mode only that is sure to be
one session: what is found is cleaned in the transaction that found it.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from tenantry.bindings.errors import FailureHidden, LeftBehind, TenantChanged, TenantMissing
from tenantry.bindings.model import Binding, Facts, Judged, Leftover, LeftoverKind, Read, Run
from tenantry.bindings.statements import Statements, statements
from tenantry.bindings.values import tenant_value
from tenantry.kernel.errors import UsageError

Procedure = Generator[Run | Read, Any, None]

UNBOUND = ""
"""The value of a transaction without a tenant: the policies see NULL, and no rows."""

_CURES = {
    LeftoverKind.SETTING: "RESET {setting}",
    LeftoverKind.ROLE: "RESET ROLE",
    LeftoverKind.TEMPORARY: "DISCARD TEMP",
    LeftoverKind.CURSOR: "CLOSE ALL",
}

_DIVISION_BY_ZERO = "22012"  # what the check in front of COMMIT raises
_IN_FAILED_TRANSACTION = "25P02"
_NO_SUCH_STATEMENT = "26000"


def value_of(binding: Binding, tenant: object | None, *, doing: str) -> str:
    """What to bind for ``tenant``. Raises :class:`TenantMissing` for None where the binding is strict, and
    :class:`~tenantry.kernel.errors.InvalidValue`."""
    if tenant is not None:
        return tenant_value(tenant, binding.type)
    if binding.strict:
        raise TenantMissing(doing)
    return UNBOUND


def opening(binding: Binding, value: str, *, begin: str, judged: Judged) -> Procedure:
    """Begin, judge the session, bind. One message where nothing is suspicious.

    The first time, and where something is, everything is judged, at two messages more. Raises
    :class:`LeftBehind`; the transaction has ended then.
    """
    said = statements(binding)
    if not judged.done:
        yield Run(begin)
    elif (yield from _fast(said, value, begin, judged)) == 1:
        return
    found = unfit(binding, facts_of((yield Read(said.facts))))
    if found:
        yield from _refusing(binding, found)
    yield Run(said.bound(value))
    judged.done = True


def _fast(said: Statements, value: str, begin: str, judged: Judged) -> Generator[Run, Any, int]:
    """Begin and bind in one message, or in two where a session is new; the number of rows, 1 for a fit
    one."""
    if not judged.pays:
        rows: int = yield Run(said.opened(begin, value))
        return rows
    try:
        rows = yield Run(said.executed(begin, value))
    except Exception as error:
        if getattr(error, "sqlstate", None) != _NO_SUCH_STATEMENT:
            raise
        judged.misses += 1
        rows = yield Run(said.prepared(begin, value))
    else:
        judged.hits += 1
    return rows


def _refusing(binding: Binding, found: Sequence[Leftover]) -> Procedure:
    rest: Sequence[Leftover] = found
    cures = dict.fromkeys(_CURES[leftover.kind] for leftover in found if leftover.kind in _CURES)
    if cures:
        yield Run(";".join(cures).format(setting=binding.setting))
        rest = unfit(binding, facts_of((yield Read(statements(binding).facts))))
    yield Run("COMMIT")  # what was cleaned, even where something else remains
    raise LeftBehind(found, cleaned=not rest)


def facts_of(row: Sequence[Any]) -> Facts:
    """A driver's row as facts."""
    setting, user, login, powerful, temporary, cursors = row
    return Facts(setting, user, login, bool(powerful), tuple(temporary), tuple(cursors))


def unfit(binding: Binding, facts: Facts) -> tuple[Leftover, ...]:
    """Everything that makes a session unfit for a tenant; empty for a fit one."""
    found = [Leftover(LeftoverKind.SETTING, binding.setting)] if facts.setting else []
    if facts.user != (binding.role or facts.login):
        found.append(Leftover(LeftoverKind.ROLE, facts.user))
    if facts.powerful:
        found.append(Leftover(LeftoverKind.POWERFUL, facts.user))
    found += [Leftover(LeftoverKind.TEMPORARY, name) for name in facts.temporary]
    found += [Leftover(LeftoverKind.CURSOR, name) for name in facts.cursors]
    return tuple(found)


def ending(binding: Binding, value: str, commit: str = "COMMIT") -> str:
    """The message that commits, unless tenant or role are no longer what they were."""
    return statements(binding).committed(value, commit)


def why_not_committed(sqlstate: str | None, *, was_open: bool, is_open: bool) -> UsageError | None:
    """What an error of :func:`ending` says of the body; None where it is the database's own.

    ``was_open`` and ``is_open``: whether a transaction, be it a failed one, was there before and is after.
    Where COMMIT itself failed it was and is not: then a division by zero is a deferred trigger's.
    """
    if sqlstate == _IN_FAILED_TRANSACTION:
        return FailureHidden()
    if sqlstate == _DIVISION_BY_ZERO and was_open == is_open:
        return TenantChanged()
    return None


def drive(steps: Procedure, run: Callable[[str], int], read: Callable[[str], Sequence[Any]]) -> None:
    """Carry out a procedure with a driver's two functions. What they raise is shown to the procedure
    first."""
    try:
        step = next(steps)
        while True:
            try:
                answer: Any = run(step.sql) if isinstance(step, Run) else read(step.sql)
            except Exception as error:  # noqa: BLE001 - handed on
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration:
        return


async def drive_async(
    steps: Procedure,
    run: Callable[[str], Awaitable[int]],
    read: Callable[[str], Awaitable[Sequence[Any]]],
) -> None:
    """As :func:`drive`, with coroutine functions."""
    try:
        step = next(steps)
        while True:
            try:
                answer: Any = await (run(step.sql) if isinstance(step, Run) else read(step.sql))
            except Exception as error:  # noqa: BLE001 - handed on
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration:
        return
