"""The published table of events and metrics, drawn from the code.

``python -m tenantry.telemetry.catalogue docs/telemetry.md`` writes it into the page, between its markers.
"""

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from tenantry.brokers.kafka import events as kafka_events
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.events import Event
from tenantry.limiter import events as limiter_events
from tenantry.queue import events as queue_events
from tenantry.replay import events as replay_events
from tenantry.telemetry import http_events
from tenantry.telemetry.logs import LEVELS
from tenantry.telemetry.mapping import HANDLERS
from tenantry.telemetry.meters import METRICS, PREFIX, TENANT_METRICS, Metric

SOURCES: tuple[ModuleType, ...] = (
    queue_events,
    http_events,
    kafka_events,
    limiter_events,
    replay_events,
)
"""The modules whose events are published, in the order of the table."""

BEGIN, END = "<!-- begin: drawn from the code -->", "<!-- end: drawn from the code -->"


def events() -> Iterator[type[Event]]:
    """Every published event, in the order of the source."""
    for module in SOURCES:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Event) and value.__module__ == module.__name__:
                yield value


def tables() -> str:
    """The tables of events and metrics in Markdown. Pure: the same text for the same code."""
    parts = ["## Events", "", *_event_table(), "", "## Metrics", "", *_metric_table(METRICS)]
    return "\n".join([*parts, "", "### Only by tenant", "", *_metric_table(TENANT_METRICS), ""])


def page(text: str) -> str:
    """``text``, a page, with the tables between its markers. Raises :class:`InvalidValue` without markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InvalidValue("page", "this page", f"a page with {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def _event_table() -> Iterator[str]:
    yield "| event | level | moves metrics | fields | says |"
    yield "| --- | --- | --- | --- | --- |"
    for event in events():
        names = ", ".join(f"`{field.name}`" for field in fields(event))
        moves = "yes" if event in HANDLERS else "no"
        yield f"| `{event.__name__}` | {LEVELS[event]} | {moves} | {names} | {_said(event)} |"


def _metric_table(metrics: tuple[Metric, ...]) -> Iterator[str]:
    yield "| metric | kind | labels | says |"
    yield "| --- | --- | --- | --- |"
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "–"
        yield f"| `{PREFIX}{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |"


def _said(event: type[Any]) -> str:
    """The docstring in one line, in Markdown's quotes, safe in a table."""
    text = " ".join((event.__doc__ or "").split())
    return text.replace("``", "`").replace(":class:", "").replace("|", "\\|")


def main(path: Path) -> None:
    """Rewrite the page at ``path``."""
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
