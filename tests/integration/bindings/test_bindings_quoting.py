"""Values travel inside the statement's text, so the quoting must hold for any text there is."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tenantry.bindings.names import literal

pytestmark = pytest.mark.needs_postgres

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40)
SPECIAL = st.text("'\\\"$;%-E\n\r\t\x01 ", max_size=12)


@pytest.fixture(scope="module", params=["on", "off"])
def connection(request: pytest.FixtureRequest, notes_admin_url: str) -> "Iterator[psycopg.Connection[Any]]":
    """A session with each of the two readings of a backslash."""
    with psycopg.connect(notes_admin_url, autocommit=True) as connection:
        connection.execute(f"SET standard_conforming_strings = {request.param}".encode())
        yield connection


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS | SPECIAL)
@example(text="'; DROP TABLE notes; --")
@example(text="\\'; DROP TABLE notes; --")
@example(text="E'\\\\''")
def test_a_literal_reads_back_as_the_text_it_was_made_of(
    connection: "psycopg.Connection[Any]", text: str
) -> None:
    cursor = connection.execute(b"SELECT " + literal(text).encode())
    assert cursor.fetchall() == [(text,)]
    assert not cursor.nextset()
