"""The coordinator's side. What a window brings is staged by one statement, in one transaction."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import asyncpg

from tenantry.kernel.errors import InvalidValue, InvariantBroken
from tenantry.kernel.instant import Seconds, as_datetime, as_timestamp
from tenantry.lanes.outcome import MESSAGE_FAULTS
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.replay_rows import FATES, Line, columns, counts_of, failure_of, view_of
from tenantry.postgres.statements import statement
from tenantry.queue.admission import check_listed
from tenantry.replay.lifecycle import ENDED, PLAN_KEPT_FOR, moved_from
from tenantry.replay.model import (
    ClassFailure,
    Counts,
    Fate,
    FedWindow,
    Hold,
    Lease,
    Quotas,
    ReplayId,
    ReplayState,
    ReplayView,
    Staged,
    Window,
)
from tenantry.replay.quotas import over_a_day, over_keys

_FEED = "replay/feed"
_FOLD = "SELECT tenantry.fold_replay($1, $2, $3, $4)"
_MOVE = "SELECT tenantry.move_replay($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_ADMIT = "SELECT tenantry.admit_replay($1, $2, $3)"
_RETURN = "SELECT tenantry.return_replay($1, $2, $3, $4)"
_ROLL = "SELECT tenantry.roll_keys((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 1)"
_TIDY = "SELECT tenantry.tidy_replays($1, $2, $3, $4)"

_LONG_AT_ONCE = 2
"""Feeds and folds of one process that run at the same time: the others of these connections are for what
people wait for."""

_BATCHES_A_FOLD = 200
_TIDIED_AT_ONCE = 100
_OF_A_ROW = ("22", "23", "54")
"""Classes of what PostgreSQL says of a value: data, integrity, limits."""


class PostgresReplayStore:
    """Implements :class:`tenantry.replay.ports.ReplayStore`, on the engine's login."""

    def __init__(self, database: Database, hints: Hints) -> None:
        self._pool, self._hints = database.side, hints
        self._long = asyncio.Semaphore(_LONG_AT_ONCE)

    async def take(self, holder: str, lease_for: Seconds, *, limit: int) -> list[ReplayView]:
        with translated("taking replays"):
            rows = await self._pool.fetch(statement("replay/take"), holder, lease_for, limit)
            return await self._views([row["replay_id"] for row in rows])

    async def keep(
        self, holder: str, leases: Mapping[ReplayId, int], lease_for: Seconds
    ) -> Mapping[ReplayId, ReplayView]:
        with translated("keeping replays"):
            rows = await self._pool.fetch(
                statement("replay/keep"), holder, list(leases), list(leases.values()), lease_for
            )
            views = await self._views([row["replay_id"] for row in rows])
        return {view.id: view for view in views}

    async def release(self, holder: str, leases: Mapping[ReplayId, int]) -> None:
        with translated("releasing replays"):
            await self._pool.execute(statement("replay/release"), holder, list(leases), list(leases.values()))

    async def feed(self, lease: Lease, window: Window) -> FedWindow | None:
        async with self._long:
            return await self._staged(lease, window)

    async def _staged(self, lease: Lease, window: Window) -> FedWindow | None:
        with translated("feeding a replay"):
            try:
                row = await self._feed(lease, window, window.messages)
            except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                if not _speaks_of_a_row(error):
                    raise
                bad = await self._bad_ones(lease, window, range(len(window.messages)))
                if not bad:
                    raise
                return await self._feed_others(lease, window, bad)
        return None if row is None else _fed(row, window)

    async def _feed_others(self, lease: Lease, window: Window, bad: Collection[int]) -> FedWindow | None:
        """All but the bad ones. The window has not been staged as a whole, so what it says of the source does
        not hold yet."""
        others = [each for at, each in enumerate(window.messages) if at not in bad]
        part = replace(window, messages=tuple(others), position=None, left=0, exhausted=False)
        row = await self._feed(lease, part, others)
        if row is None:
            return None
        fed = _fed(row, part)
        rest = iter(fed.fates)
        fates = (Fate.BROKEN if at in bad else next(rest) for at in range(len(window.messages)))
        return replace(fed, fates=tuple(fates))

    async def _bad_ones(self, lease: Lease, window: Window, among: Sequence[int]) -> set[int]:
        """The positions of the messages that the database cannot take, by bisection: each try is undone."""
        if await self._can_take(lease, window, [window.messages[at] for at in among]):
            return set()
        if len(among) == 1:
            return set(among)
        half = len(among) // 2
        first = await self._bad_ones(lease, window, among[:half])
        return first | await self._bad_ones(lease, window, among[half:])

    async def _can_take(self, lease: Lease, window: Window, messages: Sequence[Staged]) -> bool:
        async with self._pool.acquire() as connection:
            attempt = connection.transaction()
            await attempt.start()
            try:
                await connection.fetch(statement(_FEED), *_arguments(lease, window, messages))
            except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                if not _speaks_of_a_row(error):
                    raise
                return False
            finally:
                await attempt.rollback()
        return True

    async def _feed(self, lease: Lease, window: Window, messages: Sequence[Staged]) -> asyncpg.Record | None:
        (row,) = await self._pool.fetch(statement(_FEED), *_arguments(lease, window, messages))
        if row["fates"] is None:
            return None
        self._hints.changed()
        return row

    async def fold(self, lease: Lease) -> bool | None:
        given = (lease.replay, lease.token, _BATCHES_A_FOLD, MESSAGE_FAULTS)
        async with self._long:
            with translated("folding the ends of a replay"):
                more: bool | None = await self._pool.fetchval(_FOLD, *given)
        return more

    async def failures(self, replay: ReplayId, *, limit: int) -> list[ClassFailure]:
        check_listed(limit)
        with translated("reading the failures of a replay"):
            rows = await self._pool.fetch(statement("replay/failures"), replay, limit)
        return [failure_of(row) for row in rows]

    async def counts(self, replays: Collection[ReplayId]) -> Mapping[ReplayId, Counts]:
        with translated("counting replays"):
            rows = await self._pool.fetch(statement("replay/counts"), list(replays), MESSAGE_FAULTS)
        return {ReplayId(row["replay_id"]): counts_of(row) for row in rows}

    async def move(
        self,
        lease: Lease,
        state: ReplayState,
        *,
        seen: ReplayState | None = None,
        hold: Hold | None = None,
        running_for: Seconds,
        progress: str,
    ) -> ReplayView | None:
        if (state is ReplayState.HELD) is (hold is None):
            raise InvalidValue("hold", hold, "a hold where the state is held, and none where it is not")
        while state in ENDED and (more := await self.fold(lease)) is not False:
            if more is None:
                return None
        held = (
            (None, None, None, False)
            if hold is None
            else (hold.rule, hold.reason, _datetime(hold), hold.stops)
        )
        with translated("moving a replay"):
            try:
                moved = await self._pool.fetchval(
                    _MOVE,
                    *(
                        lease.replay,
                        lease.token,
                        state,
                        [each for each in moved_from(state) if seen in {None, each}],
                        *held,
                        running_for,
                        progress,
                    ),
                )
            except asyncpg.CheckViolationError as error:
                raise InvariantBroken(error.args[0]) from error  # less its detail, which shows the row
            views = await self._views([lease.replay]) if moved is not None else []
        if state in ENDED:  # a message may have been sent back since: then it is for whoever takes it next
            views = [replace(view, state=state) for view in views]
        return views[0] if views else None

    async def admit(self, lease: Lease, quotas: Quotas) -> ReplayView | None:
        with translated("admitting a replay"):
            held = await self._pool.fetchval(_ADMIT, lease.replay, lease.token, quotas.replays)
            views = await self._views([lease.replay]) if held is not None else []
        return views[0] if views else None

    async def return_waiting(self, lease: Lease, *, limit: int) -> int | None:
        with translated("returning what waits"):
            count: int | None = await self._pool.fetchval(
                _RETURN, lease.replay, lease.token, limit, MESSAGE_FAULTS
            )
        if count:
            self._hints.changed()
        return count

    async def tidy(self, *, now_kept_for: Seconds) -> None:
        with translated("tidying replays"):
            await self._pool.execute(_ROLL)
            tidied = (now_kept_for, PLAN_KEPT_FOR, _TIDIED_AT_ONCE, MESSAGE_FAULTS)
            while await self._pool.fetchval(_TIDY, *tidied) == _TIDIED_AT_ONCE:
                pass  # in batches, so that none holds its locks for long

    async def _views(self, ids: Sequence[str]) -> list[ReplayView]:
        if not ids:
            return []
        rows = await self._pool.fetch(statement("replay/views"), ids, MESSAGE_FAULTS)
        return [view_of(row) for row in rows]


def _arguments(lease: Lease, window: Window, messages: Sequence[Staged]) -> tuple[Any, ...]:
    quotas = window.quotas
    return (
        lease.replay,
        lease.token,
        window.lifetime_for,
        quotas.replayed_a_day,
        quotas.dedup_keys,
        window.position,
        window.left,
        window.exhausted,
        *columns([Line.of(staged) for staged in messages]),
    )


def _fed(row: asyncpg.Record, window: Window) -> FedWindow:
    fates, quotas = tuple(FATES[fate] for fate in row["fates"]), window.quotas
    if row["quota"] == "a_day" and quotas.replayed_a_day is not None:
        return FedWindow(fates, over_a_day(quotas.replayed_a_day, as_timestamp(row["frees_at"])))
    if row["quota"] == "keys" and quotas.dedup_keys is not None:
        return FedWindow(fates, over_keys(quotas.dedup_keys, as_timestamp(row["frees_at"])))
    return FedWindow(fates)


def _datetime(hold: Hold) -> datetime | None:
    return None if hold.frees_at is None else as_datetime(hold.frees_at)


def _speaks_of_a_row(error: BaseException) -> bool:
    """Whether it is about a value, rather than about the server or the connection."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "")[:2] in _OF_A_ROW
    return isinstance(error, asyncpg.DataError)
