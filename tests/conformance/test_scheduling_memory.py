"""The laws of fairness hold over the store in memory."""

import test_memory_store

from tenantry.testing.conformance.scheduling import SchedulingConformance


class TestSchedulingInMemory(SchedulingConformance):
    open_world = test_memory_store.TestMemoryStore.open_world
