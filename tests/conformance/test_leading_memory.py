"""The coordinator over the stores in memory."""

import test_memory_replays
from leading import LeadingConformance


class TestLeadingInMemory(LeadingConformance):
    open_replays = test_memory_replays.TestMemoryReplays.open_replays
