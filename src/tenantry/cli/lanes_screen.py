"""How the table of lanes looks: on a terminal as wide as it is, anywhere else in full."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Literal, NamedTuple

from tenantry.cli.output import Output
from tenantry.config.validation import without_credentials
from tenantry.kernel.instant import Seconds
from tenantry.lanes.table import LaneRow, LaneState

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_GAP = 2
_WIDEST_TENANT = 24
_NARROWEST_TARGET = 12
_SLOW = 1.0  # starts a second; a lane that has fewer looks as if it stood still

STYLES = {LaneState.OPEN: "green", LaneState.PAUSED: "yellow", LaneState.HELD: "red"}


class Column(NamedTuple):
    """One column. ``from_width``: the narrowest terminal, in characters, that still shows it."""

    heading: str
    cell: Callable[[LaneRow], str]
    from_width: int = 0
    is_number: bool = True


def duration(seconds: Seconds | None) -> str:
    """Three digits: ``0.42 ms``, ``24 ms``, ``1.31 s``."""
    if seconds is None:
        return "–"
    if seconds < 0.00995:
        return f"{seconds * 1000:.2f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{seconds:,.2f} s"


def _rate(row: LaneRow) -> str:
    """Successes a second, and the target's own limit where it has shown one."""
    found = "–" if row.rate is None else f"{row.rate:,.1f}"
    return found if row.rate_limit is None else f"{found} of {row.rate_limit:,.1f}"


COLUMNS = (
    Column("tenant", lambda row: row.lane.tenant, is_number=False),
    Column("target", lambda row: without_credentials(row.lane.target), is_number=False),
    Column("state", lambda row: row.state.value, is_number=False),
    Column("limit", lambda row: "–" if row.limit is None else f"{row.limit:,}"),
    Column("in flight", lambda row: f"{row.in_flight:,}"),
    Column("backlog", lambda row: f"{row.backlog:,}"),
    Column("latency", lambda row: duration(row.latency), 90),
    Column("reference", lambda row: duration(row.reference), 100),
    Column("breaker", lambda row: row.breaker.value, 110, is_number=False),
    Column("rate/s", _rate, 120),
)


def print_table(output: Output, rows: Sequence[LaneRow]) -> None:
    """The table once, and under it why lanes are not open."""
    if not rows:
        return
    if sys.stdout.isatty():
        _console(output).print(picture(rows, _console(output).width))
        return
    output.table(
        [column.heading for column in COLUMNS], [[column.cell(row) for column in COLUMNS] for row in rows]
    )
    for reason in reasons(rows):
        output.line(reason)


@contextmanager
def live_table(output: Output) -> Iterator[Callable[[Sequence[LaneRow]], None]]:
    """The table in place; yields what shows it anew. The terminal is as before when it ends."""
    from rich.live import Live

    console = _console(output)
    with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:

        def show(rows: Sequence[LaneRow]) -> None:
            fitting = fits(rows, console.width, console.height)
            left_out = len(rows) - len(fitting)
            live.update(picture(fitting, console.width, left_out=left_out), refresh=True)

        yield show


def picture(rows: Sequence[LaneRow], width: int, *, left_out: int = 0) -> "RenderableType":
    """The table for a terminal of ``width`` characters: what does not fit is left away by column, and text
    shortened. Reasons stand in full below."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown = [column for column in COLUMNS if column.from_width <= width]
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for column, wide in zip(shown, _widths(shown, rows, width), strict=True):
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(column.heading, justify=justify, no_wrap=True, overflow="ellipsis", width=wide)
    for row in rows:
        cells = [
            Text(column.cell(row), STYLES[row.state] if column.heading == "state" else "") for column in shown
        ]
        table.add_row(*cells)
    below = [Text(reason, "dim") for reason in reasons(rows)]
    if left_out:
        below.append(Text(f"… and {left_out:,} more", "dim"))
    return Group(table, *below)


def fits(rows: Sequence[LaneRow], width: int, height: int) -> Sequence[LaneRow]:
    """The first rows that have room on a terminal, with their reasons below; at least one."""
    left = height - 3  # the headings, the line on what was left out, and the cursor's
    for place, row in enumerate(rows):
        left -= 1 + ceil(len(_reason(row)) / width)
        if left < 0:
            return rows[: max(1, place)]
    return rows


def _widths(shown: Sequence[Column], rows: Sequence[LaneRow], width: int) -> list[int]:
    """Each column as wide as its widest cell; the target takes what is left."""
    widths = [max([len(column.heading), *(len(column.cell(row)) for row in rows)]) for column in shown]
    widths[0] = min(widths[0], _WIDEST_TENANT)
    others = sum(widths) - widths[1] + _GAP * (len(shown) - 1)
    widths[1] = min(widths[1], max(_NARROWEST_TARGET, width - others))
    return widths


def reasons(rows: Sequence[LaneRow]) -> list[str]:
    """Why lanes are not open, or start less than one job a second, a line each."""
    return [reason for row in rows if (reason := _reason(row))]


def _reason(row: LaneRow) -> str:
    """Empty where there is nothing to say."""
    from tenantry.cli.output import moment

    frees = f", until {moment(row.frees_at)} unless more is heard" if row.frees_at is not None else ""
    where = f"{row.lane.tenant} to {without_credentials(row.lane.target)}"
    if row.state is not LaneState.OPEN:
        return f"{where}: {row.reason}{frees}"
    if row.rate_limit is None or row.rate_limit >= _SLOW:
        return ""
    every = 1.0 / row.rate_limit
    return f"{where}: the target answered 429; it is asked every {every:.0f} s until it takes a call"


def _console(output: Output) -> "Console":
    from rich.console import Console

    return Console(file=sys.stdout, no_color=not output.colour, highlight=False)
