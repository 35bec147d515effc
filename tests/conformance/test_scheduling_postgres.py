"""The laws of fairness hold over the store in PostgreSQL, on a real server."""

import pytest
import test_postgres_store

from tenantry.testing.conformance.scheduling import SchedulingConformance

pytestmark = pytest.mark.needs_postgres


class TestSchedulingInPostgres(SchedulingConformance):
    open_world = test_postgres_store.TestPostgresStore.open_world
