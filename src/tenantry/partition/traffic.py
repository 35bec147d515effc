"""Traffic as measured: tenant to rate, from CSV or JSON lines. Pure.

The unit is the measurer's (messages a second, bytes a day): only proportions are used, unless a bound is
given in the same unit.
"""

import csv
import json
from collections.abc import Iterator
from math import inf, isfinite

from tenantry.config.syntax import decoded
from tenantry.kernel.errors import InvalidValue

_RATE_NAMES = ("rate", "messages", "count")


def parse_traffic(text: str | bytes) -> dict[str, float]:
    """The rates that ``text`` holds; a tenant that stands there twice has the sum. In the text's order.

    CSV with the columns ``tenant`` and ``rate`` (or ``messages``, or ``count``), or JSON lines with the same
    keys; other columns and keys are left aside. A line without any rate counts as one message.

    Raises :class:`InvalidValue`, naming the line.
    """
    plain = decoded(text, may_have_bom=True, wanted="tenants and their rates")
    rows = _from_json(plain) if plain.lstrip().startswith("{") else _from_csv(plain)
    found: dict[str, float] = {}
    for line, row in rows:
        tenant = row.get("tenant")
        if not isinstance(tenant, str) or not tenant:
            raise InvalidValue(f"line {line}: tenant", tenant, "a tenant's id")
        found[tenant] = found.get(tenant, 0.0) + _rate(line, row)
    if not 0 < sum(found.values()) < inf:
        raise InvalidValue("traffic", sum(found.values()), "some traffic, that adds up to a number")
    return found


def _from_csv(text: str) -> Iterator[tuple[int, dict[str, object]]]:
    reader = csv.DictReader(text.splitlines())
    if "tenant" not in (reader.fieldnames or ()):
        raise InvalidValue("line 1", reader.fieldnames, "a heading with the columns tenant and rate")
    try:
        for row in reader:
            yield reader.line_num, dict(row)
    except csv.Error as error:
        raise InvalidValue(f"line {reader.line_num}", "text", "CSV", f"{error}.") from None


def _from_json(text: str) -> Iterator[tuple[int, dict[str, object]]]:
    for line, each in enumerate(text.splitlines(), 1):
        if not each.strip():
            continue
        try:
            row = json.loads(each)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InvalidValue(f"line {line}", each[:60], "one JSON object a line")
        yield line, row


def _rate(line: int, row: dict[str, object]) -> float:
    name = next((name for name in _RATE_NAMES if name in row), None)
    if name is None:
        return 1.0
    value = row[name]
    try:
        rate = float(value) if isinstance(value, (int, float, str)) else -1.0
    except (ValueError, OverflowError):
        rate = -1.0
    if isfinite(rate) and rate >= 0 and not isinstance(value, bool):
        return rate
    raise InvalidValue(f"line {line}: {name}", value, "a number, 0 or more")
