"""A level as its row says it."""

from typing import Any

from tenantry.algorithms.shedding import Level
from tenantry.queue.model import PoolLevel, StandingLevel


def standing_level(row: Any) -> StandingLevel:
    """From a row of ``inspection/levels.sql``."""
    level = PoolLevel(row["pool"], Level(row["level"]), row["age"], row["used"], row["falls_in"])
    return StandingLevel(level, row["stands_for"], row["fresh_for"])
