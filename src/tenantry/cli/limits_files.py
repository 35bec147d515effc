"""What the limits commands read: plans, and access logs as counts by tenant."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenantry.cli.partition_files import read
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId, tenant_id

if TYPE_CHECKING:
    from tenantry.limiter import Plans

_ACCEPTED = "CSV with the columns tenant and, if need be, status and cost; or JSON lines with the same names"


def plans_of(file: Path) -> "Plans":
    """The plans of ``file``. Raises :class:`UsageError` where it cannot be read."""
    from tenantry.limiter.plan_file import parse_plans

    return parse_plans(read(file).decode(errors="replace"))


def used_in(file: Path) -> dict[TenantId, float]:
    """What the calls of an access log cost, by tenant; those answered 429 were refused and cost nothing."""
    used: dict[TenantId, float] = {}
    for number, row in enumerate(_rows(read(file).decode("utf-8-sig", errors="replace")), start=1):
        if str(row.get("status") or "").strip() == "429":
            continue
        tenant = tenant_id(row.get("tenant"), path=f"log[{number}].tenant")
        used[tenant] = used.get(tenant, 0.0) + _cost(row.get("cost"), f"log[{number}].cost")
    return used


def _rows(text: str) -> Iterable[dict[str, Any]]:
    return _json_rows(text) if text.lstrip().startswith("{") else _csv_rows(text)


def _csv_rows(text: str) -> Iterator[dict[str, Any]]:
    rows = csv.DictReader(io.StringIO(text))
    try:
        if "tenant" not in (rows.fieldnames or ()):
            raise InvalidValue("log line 1", text.partition("\n")[0], _ACCEPTED)
        yield from rows
    except csv.Error as error:
        raise InvalidValue(f"log line {rows.line_num + 1}", str(error), _ACCEPTED) from None


def _json_rows(text: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise InvalidValue(f"log[{number}]", line, "a JSON object")
            yield row


def _cost(value: Any, path: str) -> float:
    try:
        cost = 1.0 if value in (None, "") else float(value)
    except (TypeError, ValueError):
        cost = -1.0
    if not 0 < cost <= 1e12:
        raise InvalidValue(path, value, "tokens > 0")
    return cost
