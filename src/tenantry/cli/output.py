"""What commands print: sentences and tables for people, one JSON document for machines. Never both."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from tenantry.cli.options import Shown
from tenantry.kernel.instant import Timestamp, as_datetime

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "dim": 2, "bold": 1}


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command's words go. ``colour``: whether standard output may be coloured."""

    json: bool
    colour: bool

    @classmethod
    def of(cls, options: Shown) -> "Output":
        return cls(options.json, may_colour(options, sys.stdout))

    def line(self, text: str = "") -> None:
        """A sentence for people; nothing in JSON."""
        if not self.json:
            print(text, flush=True)

    def note(self, text: str) -> None:
        """A remark for people beside the answer, on standard error; nothing with JSON, which says it."""
        if not self.json:
            print(text, file=sys.stderr, flush=True)

    def data(self, value: object) -> None:
        """The JSON document, on one line; nothing for people."""
        if self.json:
            import msgspec

            print(msgspec.json.encode(value, enc_hook=str).decode(), flush=True)

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Columns as wide as their longest cell; nothing in JSON."""
        cells = [[_cell(value) for value in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
        for number, row in enumerate([list(headings), *cells]):
            text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            self.line(self.styled(text, "bold") if number == 0 else text)

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if self.colour else text


def may_colour(options: Shown, stream: TextIO) -> bool:
    """Whether ``stream`` may be coloured: a terminal, and nobody said no (https://no-color.org)."""
    return not (options.json or options.no_color or os.environ.get("NO_COLOR")) and stream.isatty()


def moment(at: Timestamp | None) -> str:
    """An instant for people: UTC, to the second."""
    return "" if at is None else as_datetime(at).strftime("%Y-%m-%d %H:%M:%SZ")


def amount(number: int, noun: str) -> str:
    """``1 job``, ``1,000 jobs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cell(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
