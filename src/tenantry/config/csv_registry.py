"""Tenants from a CSV file, as a service-criticality registry exports it: one row a tenant, a column its tier.

Columns that nobody asked for are ignored, since such exports carry owners, costs and notes; a mapped column
that is missing is an error. Rows without any text are skipped. Pure.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType

from tenantry.config.entries import Aliases, Entry, resolved
from tenantry.config.syntax import unreadable
from tenantry.config.validation import MISSING, Described, Problems, refused
from tenantry.kernel.errors import InvalidValue, nearest


@dataclass(frozen=True, slots=True)
class CsvColumns:
    """Which columns say what. ``aliases`` turn the file's words, in any case, into tiers' names.

    ``delimiter``: a tab or one printable character, but not ``"`` or space; many spreadsheets write ``;``.
    """

    tenant: str = "tenant"
    tier: str = "tier"
    aliases: Aliases = field(default_factory=lambda: MappingProxyType({}))
    delimiter: str = ","


@dataclass(frozen=True, slots=True)
class _Header:
    width: int
    tenant_index: int
    tier_index: int


def read_csv(text: str, columns: CsvColumns, problems: Problems) -> list[Entry]:
    """The rows as entries; the aliases' words are case-folded already. Faults go to ``problems``.

    A fault of CSV itself (a stray quote) ends the reading: what follows it cannot be trusted.
    """
    entries: list[Entry] = []
    try:
        rows = _rows(text, _delimiter(columns.delimiter))
        header = _header(*next(rows, (1, [])), columns)  # no header at all lacks every column
        for line, cells in rows:
            _add(entries, _entry(f"line {line}", cells, columns, header), problems)
    except InvalidValue as error:
        problems.note(error)
    return entries


def _add(entries: list[Entry], found: Entry | InvalidValue, problems: Problems) -> None:
    if isinstance(found, Entry):
        entries.append(found)
    else:
        problems.note(found)


def _entry(place: str, cells: list[str], columns: CsvColumns, header: _Header) -> Entry | InvalidValue:
    if len(cells) > header.width:
        found = Described(f"a row of {len(cells)} cells")
        return InvalidValue(
            place, found, f"{header.width}, as in the header", "Quote cells that hold the delimiter."
        )
    return Entry(
        tenant=_cell(cells, header.tenant_index),
        tenant_at=f"{place}, column {columns.tenant}",
        tier=resolved(_cell(cells, header.tier_index), columns.aliases),
        tier_at=f"{place}, column {columns.tier}",
    )


def _cell(cells: list[str], index: int) -> object:
    text = cells[index].strip() if index < len(cells) else ""
    return text or MISSING


def _header(line: int, cells: list[str], columns: CsvColumns) -> _Header:
    names = tuple(cell.strip() for cell in cells)
    return _Header(len(names), _index(line, names, columns.tenant), _index(line, names, columns.tier))


def _index(line: int, names: tuple[str, ...], wanted: str) -> int:
    if names.count(wanted) == 1:
        return names.index(wanted)
    near = nearest(wanted, names)
    hint = f"Did you mean {near!r}?" if near and near != wanted else "The column names are a setting."
    times = names.count(wanted)
    found = Described(f"a header with {f'{times} columns' if times else 'no column'} named {wanted!r}")
    others = f", beside {', '.join(map(repr, names))[:200]}" if names else ""
    raise InvalidValue(f"line {line}", found, f"one{others}", hint)


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each row that holds text, and the line on which it starts (a quoted cell may span several)."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter, strict=True)
    start = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise unreadable(f"line {start}", "CSV", f"{str(error).capitalize()}.") from None


def _delimiter(text: object) -> str:
    if isinstance(text, str) and len(text) == 1 and (text.isprintable() or text == "\t") and text not in '" ':
        return text
    raise refused("delimiter", text, "one character, such as ',', ';' or a tab")
