"""Steps as what is sent to a server, and as a file of SQL: the same statements, under the same bounds. Pure.

How long others are held up. A statement that needs a lock waits for it at most ``lock_wait``, and while it
waits whoever comes after it waits behind it; then it gives up, and its step with it, whole. Once it has the
lock it is a change of the catalogue, done in milliseconds; one that takes longer than ``hold`` is given up
too. What CONCURRENTLY waits for, transactions older than itself, holds nobody up: that is ``build_wait``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from tenantry.algorithms.backoff import Backoff
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Seconds
from tenantry.rls.render import Step

PAUSES = Backoff(base=0.5, cap=5.0)
"""Between two tries of a step."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a step may wait, and how often it is tried. Times are in seconds.

    ``lock_wait``: for one lock, in [0.001, 3600]. ``build_wait``: for transactions older than an index that
    is built CONCURRENTLY, in [0.001, 86,400]. ``attempts``: tries of one step, in [1, 1000]; between them
    ``pauses``. ``hold``: for one statement that has its lock, in [0.001, 3600]. Raises :class:`InvalidValue`.
    """

    lock_wait: Seconds = 2.0
    build_wait: Seconds = 600.0
    attempts: int = 5
    pauses: Backoff = PAUSES
    hold: Seconds = 5.0

    def __post_init__(self) -> None:
        _within("lock_wait", self.lock_wait, 3600)
        _within("build_wait", self.build_wait, 86_400)
        _within("hold", self.hold, 3600)
        if not 1 <= self.attempts <= 1000:
            raise InvalidValue("attempts", self.attempts, "a whole number from 1 to 1,000")

    def longest(self) -> Seconds:
        """After so many seconds, at most, a step that never gets its one lock is given up."""
        return self.attempts * self.lock_wait + sum(map(self.pauses.ceiling, range(1, self.attempts)))


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent at once. ``patient``: it may wait for long, since it holds nobody up."""

    sql: str
    patient: bool = False


def messages(step: Step, bounds: Bounds) -> tuple[Message, ...]:
    """A step, ready to send. What belongs in one transaction is one message, so that no client that is slow,
    stopped or dead holds a lock."""
    if not step.apart:
        body = "".join(f"{each};\n" for each in (*limits(bounds), *step.up))
        return (Message(f"BEGIN;\n{body}COMMIT;"),)
    return tuple(Message(each, patient=_is_patient(each)) for each in step.up)


def limits(bounds: Bounds) -> tuple[str, str]:
    """The statements with which a step's transaction begins. The time of a statement includes its wait."""
    longest = _ms(bounds.lock_wait + bounds.hold)
    return (
        f"SET LOCAL lock_timeout = {_ms(bounds.lock_wait)}",
        f"SET LOCAL statement_timeout = {longest}",
    )


def timeout(message: Message, bounds: Bounds) -> str:
    """The statement that bounds the waits of a message that is no transaction."""
    return f"SET lock_timeout = {_ms(bounds.build_wait if message.patient else bounds.lock_wait)}"


def sql_file(steps: Iterable[Step], bounds: Bounds, *, heading: str = "") -> str:
    """The steps as a file to review and to give to psql: ``psql -v ON_ERROR_STOP=1 -f FILE``. It may be run
    again, from the start, whatever became of it the first time."""
    parts = [*_comments(heading), *(line for step in steps for line in _written(step, bounds))]
    return "\n".join(parts) + "\n"


def _written(step: Step, bounds: Bounds) -> Iterator[str]:
    yield ""
    yield from _comments(step.title)
    if not step.apart:
        yield messages(step, bounds)[0].sql
        return
    yield "-- outside of transactions"
    for patient, group in groupby(messages(step, bounds), key=lambda each: each.patient):
        found = list(group)
        yield f"{timeout(Message('', patient), bounds)};"
        yield from (f"{each.sql};" for each in found)
    yield "RESET lock_timeout;"


def one_line(text: str) -> str:
    """``text`` for a comment: a name may have any character, and must not end the comment that it is in."""
    return "".join(each if each.isprintable() else " " for each in text)


def _comments(text: str) -> Iterator[str]:
    return (f"-- {one_line(line)}" for line in text.splitlines())


def _is_patient(statement: str) -> bool:
    return statement.startswith(("CREATE INDEX CONCURRENTLY", "DROP INDEX CONCURRENTLY"))


def _ms(seconds: Seconds) -> str:
    return f"'{max(1, round(seconds * 1000))}ms'"


def _within(path: str, value: Seconds, most: Seconds) -> None:
    if not 0.001 <= value <= most:
        raise InvalidValue(path, value, f"a number of seconds from 0.001 to {most:,}")
