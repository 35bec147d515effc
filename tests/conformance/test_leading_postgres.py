"""The coordinator over PostgreSQL, on a real server."""

import pytest
import test_postgres_replays
from leading import LeadingConformance

pytestmark = pytest.mark.needs_postgres


class TestLeadingInPostgres(LeadingConformance):
    open_world = test_postgres_replays.TestPostgresReplays.open_world
    open_replays = test_postgres_replays.TestPostgresReplays.open_replays
