"""Suites that every adapter of a port is held to, ours and yours. Needs ``pytest``, ``pytest-asyncio`` (in
``auto`` mode) and ``hypothesis``.

A suite is a class of tests. To hold an adapter to it, derive a class and give the fixture that opens one::

    class TestMyStore(QueueStoreConformance):
        @pytest.fixture
        async def open_world(self):
            async def opened() -> World:
                store = MyStore(...)  # empty
                return World(store, store, store, store, store, MyTime(store), store)

            return opened

``queue_store``  :class:`~tenantry.testing.conformance.queue_store.QueueStoreConformance`
``scheduling``   :class:`~tenantry.testing.conformance.scheduling.SchedulingConformance`, the laws of fairness
                 over a store; ``dispatch`` is what they are told with
``sources``      :class:`~tenantry.testing.conformance.sources.SourceConformance`, for a replay's sources
``world``        :class:`~tenantry.testing.conformance.world.World`, a store with a hand on its planner
"""

import pytest

_SUITES = (
    "ordering",
    "intake",
    "keys",
    "planning",
    "working",
    "operating",
    "feeding",
    "machine",
    "sharing",
    "starting",
    "accounting",
    "dispatch",
    "sources",
    "replaying",
    "parking",
    "replay_stories",
    "replay_sharing",
    "replayed_machine",
    "replay_feeding",
    "replay_running",
    "replay_ending",
    "replay_parking",
    "replay_machine",
    "replay_world",
)
pytest.register_assert_rewrite(*(f"{__name__}.{suite}" for suite in _SUITES))
