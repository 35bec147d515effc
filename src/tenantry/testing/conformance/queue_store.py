"""The suite for a queue's store: every promise of :mod:`tenantry.queue.ports`, told as stories."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tenantry.testing.conformance.feeding import FeederConformance
from tenantry.testing.conformance.intake import IntakeConformance
from tenantry.testing.conformance.keys import KeyConformance
from tenantry.testing.conformance.machine import MachineConformance
from tenantry.testing.conformance.operating import OperatorConformance
from tenantry.testing.conformance.ordering import OrderingConformance
from tenantry.testing.conformance.parking import ParkingConformance
from tenantry.testing.conformance.planning import PlannerConformance
from tenantry.testing.conformance.replayed_machine import ReplayedMachineConformance
from tenantry.testing.conformance.replaying import ReplayConformance
from tenantry.testing.conformance.shaping import ShapingConformance
from tenantry.testing.conformance.shedding import SheddingConformance
from tenantry.testing.conformance.working import WorkerConformance
from tenantry.testing.conformance.world import World

OpenWorld = Callable[[], Awaitable[World]]


class QueueStoreConformance(
    IntakeConformance,
    KeyConformance,
    OrderingConformance,
    PlannerConformance,
    ShapingConformance,
    SheddingConformance,
    WorkerConformance,
    OperatorConformance,
    FeederConformance,
    ReplayConformance,
    ParkingConformance,
    MachineConformance,
    ReplayedMachineConformance,
):
    """Derive from it, and give the fixture ``open_world``: an async callable that opens an empty store.

    After every story the books are audited: they must add up, whatever the story was about.
    """

    @pytest.fixture
    async def open_world(self) -> OpenWorld:
        """Opens a world whose store is empty, as often as it is called."""
        raise NotImplementedError("derive a class and give it the fixture open_world")

    @pytest.fixture
    async def world(self, open_world: OpenWorld) -> AsyncIterator[World]:
        opened = await open_world()
        yield opened
        faults = list(await opened.operator.audit())
        assert faults == [], faults
