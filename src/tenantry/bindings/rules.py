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
from tenantry.bindings.statements import statements
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

_NO_SUCH_SETTING = "42704"  # what the check in front of COMMIT raises
_NO_TRANSACTION = "25P01"  # what its savepoint raises where the body ended the transaction
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


class Envelope:
    """What travels around one transaction of a tenant: begins, judges the session and binds; checks and
    commits. Of one transaction, so of one task or thread."""

    __slots__ = ("begin", "binding", "judged", "said", "value")

    def __init__(self, binding: Binding, value: str, *, begin: str, judged: Judged) -> None:
        self.binding, self.value, self.begin, self.judged = binding, value, begin, judged
        self.said = statements(binding)

    def opening(self) -> str | None:
        """The one message that does it all where nothing is suspicious; None where it is not to be expected
        to: then and where :meth:`is_fit` says no, :meth:`steps` go on."""
        judged = self.judged
        return self.said.executed(self.begin, self.value) if judged.done and judged.pays else None

    def is_fit(self, answer: int | Exception) -> bool:
        """Whether the opening's answer, its row count or its error, means that the tenant is bound."""
        if answer == 1:
            self.judged.hits += 1
            return True
        return False

    def steps(self, answer: int | Exception | None = None) -> Procedure:
        """What follows the opening's answer, or stands in its place: everything is judged the first time and
        where something is suspicious, at two messages more. Raises :class:`LeftBehind`; the transaction has
        ended then."""
        if (yield from self._begun(answer)) == 1:
            return
        found = unfit(self.binding, facts_of((yield Read(self.said.facts))))
        if found:
            yield from _refusing(self.binding, found)
        yield Run(self.said.bound(self.value))
        self.judged.done = True

    def _begun(self, answer: int | Exception | None) -> Generator[Run, int, int]:
        """A transaction has begun; 1 where the tenant is bound, too."""
        if isinstance(answer, Exception):
            if getattr(answer, "sqlstate", None) != _NO_SUCH_STATEMENT:
                raise answer
            self.judged.misses += 1
            return (yield Run(self.said.prepared(self.begin, self.value)))
        if answer is None and self.judged.done:
            return (yield Run(self.said.opened(self.begin, self.value)))
        if answer is None:
            yield Run(self.begin)
        return 0

    def closing(self) -> str:
        """The message that commits, unless tenant or role are no longer what they were."""
        if self.judged.prepares:
            return self.said.committed(self.value)
        return self.said.committed_at_once(self.value)

    def closing_anyhow(self, error: BaseException, *, is_open: bool) -> str | None:
        """The message that does what :meth:`closing` would have, had ``error`` not told that the body, or its
        driver, threw the prepared statement away; None where that is not what it tells."""
        if is_open and getattr(error, "sqlstate", None) == _NO_SUCH_STATEMENT:
            return self.said.committed_anyhow(self.value)
        return None


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


def why_not_committed(sqlstate: str | None, *, was_open: bool, is_open: bool) -> UsageError | None:
    """What an error of :meth:`Envelope.closing` says of the body; None where it is the database's own.

    ``was_open`` and ``is_open``: whether a transaction, be it a failed one, was there before and is after.
    Where COMMIT itself failed it was and is not: then the same error is a deferred trigger's.
    """
    if sqlstate == _IN_FAILED_TRANSACTION:
        return FailureHidden()
    if sqlstate in (_NO_SUCH_SETTING, _NO_TRANSACTION) and was_open == is_open:
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
