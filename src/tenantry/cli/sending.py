"""Many jobs through one door: in batches, coming back when it was told to, a smaller batch where one is too
large."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from tenantry.cli.doors import Door, Sent, Standing
from tenantry.kernel.errors import InvalidValue, UsageError
from tenantry.kernel.verdict import Refusal
from tenantry.queue.model import NewJob

_ROW = re.compile(r"jobs\[(\d+)\]")
_FIRST_LOOK, _LAST_LOOK = 0.1, 2.0


@dataclass(slots=True)
class Tally:
    """What became of a file's jobs so far. ``refused``: how often a batch had to come back."""

    accepted: int = 0
    existing: int = 0
    refused: int = 0
    ids: list[str] = field(default_factory=list)

    def take(self, sent: list[Sent]) -> None:
        self.accepted += len(sent)
        self.existing += sum(each.existing for each in sent)
        self.ids += [each.id for each in sent]


Told = Callable[[Tally, Refusal | None], None]
"""Called after each answer; the refusal, if it was one."""


class Sender:
    """Sends a file's jobs through one door. ``place``: where the n-th job stands in the file, for errors.
    ``told`` after each answer. One task's."""

    def __init__(self, door: Door, place: Callable[[int], str], told: Told) -> None:
        self._door, self._place, self._told = door, place, told
        self.tally = Tally()

    async def send(self, jobs: Sequence[NewJob], *, batch: int) -> None:
        """Submit every job, ``batch`` at a time, however often one is refused meanwhile.

        Raises :class:`InvalidValue` with the place of a job that is not accepted, :class:`UsageError` for a
        refusal that coming back cannot help, and what the door raises. What came before stays accepted."""
        for start in range(0, len(jobs), batch):
            await self._send(jobs[start : start + batch], start)

    async def _send(self, rows: Sequence[NewJob], start: int) -> None:
        refusal = await self._until_accepted(rows, start)
        if refusal is None:
            return
        if len(rows) == 1:
            raise UsageError(
                f"{self._place(start)}: refused by {refusal.rule.value}: {refusal.detail}{self._before()}"
            )
        middle = len(rows) // 2  # the batch alone is more than is ever allowed at once
        await self._send(rows[:middle], start)
        await self._send(rows[middle:], start + middle)

    async def _until_accepted(self, rows: Sequence[NewJob], start: int) -> Refusal | None:
        """None once they are accepted; the refusal that coming back cannot help."""
        while True:
            answer = await self._submitted(rows, start)
            if not isinstance(answer, Refusal):
                self.tally.take(answer)
                self._told(self.tally, None)
                return None
            self.tally.refused += 1
            self._told(self.tally, answer)
            if answer.retry_after is None:
                return answer
            await asyncio.sleep(answer.retry_after)

    async def _submitted(self, rows: Sequence[NewJob], start: int) -> list[Sent] | Refusal:
        try:
            return await self._door.submit(rows)
        except InvalidValue as error:
            row = _ROW.match(error.path)
            where = self._place(start + (int(row[1]) if row else 0))
            inner = error.path[row.end() :] if row else f".{error.path}"
            hint = f"{error.hint}{self._before()}"
            raise InvalidValue(f"{where}{inner}", error.value, error.accepted, hint) from None

    def _before(self) -> str:
        return f" {self.tally.accepted:,} jobs before it were accepted." if self.tally.accepted else ""


async def until_ended(door: Door, job: str) -> AsyncIterator[Standing]:
    """Where the job is, each time that this changes, until it has ended. Raises :class:`UsageError` when it
    is not there (any more)."""
    last, pause = None, _FIRST_LOOK
    while last is None or not last.ended:
        standing = await door.standing(job)
        if standing is None:
            raise UsageError(f"the job {job} is not there any more: its end was not kept")
        if standing != last:
            last = standing
            yield standing
        if not last.ended:
            await asyncio.sleep(pause)
            pause = min(_LAST_LOOK, pause * 1.3)
