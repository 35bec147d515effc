"""The suite for a replay's store: every promise of :class:`~tenantry.replay.ports.ReplayDesk` and
:class:`~tenantry.replay.ports.ReplayStore`, told as stories."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tenantry.testing.conformance.replay_ending import EndConformance
from tenantry.testing.conformance.replay_feeding import FeedConformance
from tenantry.testing.conformance.replay_machine import ReplayMachineConformance
from tenantry.testing.conformance.replay_parking import ParkConformance
from tenantry.testing.conformance.replay_running import RunConformance
from tenantry.testing.conformance.replay_world import ReplayWorld

OpenReplays = Callable[[], Awaitable[ReplayWorld]]


class ReplayStoreConformance(
    FeedConformance,
    RunConformance,
    EndConformance,
    ParkConformance,
    ReplayMachineConformance,
):
    """Derive from it, and give the fixture ``open_replays``: an async callable that opens empty stores.

    After every story the queue's books are audited, and the counts of every replay must add up."""

    @pytest.fixture
    async def open_replays(self) -> OpenReplays:
        """Opens a world whose stores are empty, as often as it is called."""
        raise NotImplementedError("derive a class and give it the fixture open_replays")

    @pytest.fixture
    async def replays(self, open_replays: OpenReplays) -> AsyncIterator[ReplayWorld]:
        opened = await open_replays()
        yield opened
        faults = list(await opened.queue.operator.audit())
        assert faults == [], faults
