"""One replay's session of its source: opened when it is needed, given up when it fails or is to stop.

Whatever goes wrong closes the session: what was in hand and not acknowledged is the source's again, and comes
once more. A source that does not answer in time counts as one that cannot be read.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from tenantry.kernel.errors import SourceUnavailable, TenantryError
from tenantry.kernel.instant import Seconds
from tenantry.replay.model import Batch, Membership, Position, ReplayView, Traits
from tenantry.replay.ports import Source, Sources

T = TypeVar("T")


class Reader:
    """One task only. ``patience``: seconds for an answer of the source, beside what it may wait for a
    message. ``close_within``: for its closing, which people's orders wait for."""

    def __init__(
        self, sources: Sources, view: ReplayView, *, patience: Seconds, close_within: Seconds
    ) -> None:
        self._sources, self._patience, self._close_within = sources, patience, close_within
        self._tenant, self._address = view.spec.tenant, view.spec.source
        self._source: Source | None = None

    @property
    def is_open(self) -> bool:
        return self._source is not None

    async def open(self, membership: Membership, after: Position) -> Traits:
        """The source's traits; opens it behind ``after`` where it is not open. Raises
        :class:`SourceUnavailable`, and what :meth:`Sources.source` raises."""
        if self._source is None:
            source = self._sources.source(self._tenant, self._address)
            self._source = source
            await self._within(source.open(membership, after))
        return self._source.traits

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        """As :meth:`Source.fetch`, of the open session."""
        return await self._within(self._opened().fetch(limit, wait_for), wait_for)

    async def settle(self, acknowledged: Sequence[object], left: Sequence[object]) -> None:
        """These are durably ours; these were not meant."""
        if acknowledged:
            await self._within(self._opened().acknowledge(acknowledged))
        if left:
            await self._within(self._opened().leave(left))

    async def close(self) -> None:
        """Give back what is in hand. Idempotent; what fails on the way out is the source's to notice."""
        source, self._source = self._source, None
        if source is None:
            return
        try:
            async with asyncio.timeout(self._close_within):
                await source.close()
        except (TenantryError, TimeoutError):
            return  # the session is gone either way: what was in hand comes again

    def _opened(self) -> Source:
        if self._source is None:
            raise SourceUnavailable("the session of the source has been closed")
        return self._source

    async def _within(self, call: Coroutine[Any, Any, T], more: Seconds = 0.0) -> T:
        try:
            async with asyncio.timeout(self._patience + more):
                return await call
        except TimeoutError:
            raise SourceUnavailable(f"the source gave no answer within {self._patience + more:g} s") from None


async def arrived(
    sources: Sources, view: ReplayView, *, patience: Seconds, close_within: Seconds
) -> int | None:
    """How many came since the membership was frozen, by a session of its own; None where the source cannot
    tell, or not now."""
    try:
        source = sources.source(view.spec.tenant, view.spec.source)
    except TenantryError:
        return None
    try:
        async with asyncio.timeout(patience):
            return await source.arrived(view.membership)
    except (TenantryError, TimeoutError):
        return None
    finally:
        try:
            async with asyncio.timeout(close_within):
                await source.close()
        except (TenantryError, TimeoutError):
            pass  # it was only asked; nothing is in hand
