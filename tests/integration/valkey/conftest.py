from collections.abc import Iterator
from pathlib import Path

import pytest
from valkey_servers import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Makes servers; all end with the test."""
    made = Fleet(tmp_path)
    yield made
    made.end()
