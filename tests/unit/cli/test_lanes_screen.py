"""The table of lanes on terminals of several widths."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.cli.lanes_screen import duration, fits, picture
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Lane, Target
from tenantry.lanes.table import LaneRow, LaneState

LANE = Lane(TenantId("acme"), Target("https://user:pass@hooks.example.com/a/rather/long/path/to/somewhere"))
OPEN = LaneRow(LANE, LaneState.OPEN, "", None, 12, 7, 1_200, 34, latency=0.0312, reference=0.024, rate=230.5)
HELD = replace(
    OPEN,
    state=LaneState.HELD,
    reason="the breaker is open: the target failed",
    frees_at=Timestamp(60.0),
    breaker=BreakerState.OPEN,
)


def drawn(*rows: LaneRow, width: int, left_out: int = 0, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        no_color=not colour,
        force_terminal=colour,
        color_system="standard" if colour else None,
    )
    console.print(picture(rows, width, left_out=left_out))
    return out.getvalue()


def test_a_wide_terminal_shows_every_column() -> None:
    heading, row = drawn(OPEN, width=160).splitlines()
    assert heading.split() == ["tenant", "target", "state", "limit", "in", "flight", "backlog", "latency",
                               "reference", "breaker", "rate/s"]  # fmt: skip
    assert row.split()[2:] == ["open", "12", "7", "1,234", "31", "ms", "24", "ms", "closed", "230.5"]


@pytest.mark.parametrize("width", [60, 80, 95, 105, 115, 130, 200])
def test_no_line_is_wider_than_the_terminal_and_what_it_is_about_stays(width: int) -> None:
    lines = drawn(OPEN, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) == 2, "a row is one line"
    for word in ("tenant", "target", "state", "limit", "in flight", "backlog"):
        assert word in lines[0]
    assert "acme" in lines[1]
    assert "1,234" in lines[1]


def test_the_reason_stands_in_full_below_however_narrow_it_is() -> None:
    text = " ".join(drawn(HELD, width=60).split())
    assert "the breaker is open: the target failed, until 1970-01-01 00:01:00Z unless more is heard" in text


def test_an_open_lane_that_hardly_starts_says_why() -> None:
    text = " ".join(drawn(replace(OPEN, rate_limit=0.25), width=60).split())
    assert "the target answered 429; it is asked every 4 s until it takes a call" in text
    assert len(drawn(replace(OPEN, rate_limit=40.0), width=160).splitlines()) == 2


def test_credentials_in_a_target_are_not_shown() -> None:
    assert "pass" not in drawn(HELD, width=200)


def test_how_many_lanes_found_no_room_is_said() -> None:
    assert "… and 1,200 more" in drawn(OPEN, width=80, left_out=1_200)


@pytest.mark.parametrize(
    ("height", "shown"), [(24, 21), (3, 1), (200, 50)], ids=["terminal", "too low", "more than enough"]
)
def test_as_many_rows_are_shown_as_the_terminal_is_high(height: int, shown: int) -> None:
    assert len(fits([OPEN] * 50, 80, height)) == shown


def test_reasons_take_room_too() -> None:
    found = fits([HELD] * 50, 80, 24)
    lines = drawn(*found, width=80, left_out=50 - len(found)).splitlines()
    assert len(found) == 7
    assert len(lines) <= 23


def test_states_are_coloured_where_colours_are_wanted_and_not_else() -> None:
    assert "\x1b[31mheld" in drawn(HELD, width=120, colour=True)
    assert "\x1b" not in drawn(HELD, width=120)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.000_42, "0.42 ms"), (0.0242, "24 ms"), (0.9996, "1.00 s"), (1.314, "1.31 s")],
)
def test_latencies_are_read_at_a_glance(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
