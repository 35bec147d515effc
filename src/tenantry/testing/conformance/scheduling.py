"""The laws of fairness on the whole queue: the pure rule, the planner's memory and a store, taken together.

The rule alone is held to the same laws elsewhere; here each of them must survive rounds, claims, settles and
rebuilds. Tiers are set explicitly, cap 100 % and no bound, unless caps or bounds are what a test is about.
"""

from collections.abc import Awaitable, Callable

import pytest

from tenantry.config.registry import Registry
from tenantry.memory.directory import MemoryDirectory
from tenantry.testing.conformance.accounting import AccountingConformance
from tenantry.testing.conformance.dispatch import Dispatch, Open
from tenantry.testing.conformance.replay_sharing import ReplaySharingConformance
from tenantry.testing.conformance.sharing import SharingConformance
from tenantry.testing.conformance.starting import StartingConformance
from tenantry.testing.conformance.world import World


class SchedulingConformance(
    SharingConformance, ReplaySharingConformance, StartingConformance, AccountingConformance
):
    """Derive from it, and give the fixture ``open_world`` as for
    :class:`~tenantry.testing.conformance.queue_store.QueueStoreConformance`."""

    @pytest.fixture
    async def open_world(self) -> Callable[[], Awaitable[World]]:
        """Opens a world whose store is empty, as often as it is called."""
        raise NotImplementedError("derive a class and give it the fixture open_world")

    @pytest.fixture
    async def opened(self, open_world: Callable[[], Awaitable[World]]) -> Open:
        """``await opened(registry)``: an empty queue with a planner in its place."""

        async def opened(tenants: Registry) -> Dispatch:
            dispatch = Dispatch(await open_world(), MemoryDirectory(tenants))
            await dispatch.begin()
            return dispatch

        return opened
