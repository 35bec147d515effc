"""Fixtures of the API's world."""

from collections.abc import AsyncIterator

import pytest
from web_world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An API on loopback, served until the test ends."""
    made = World()
    async with made.server:
        yield made
