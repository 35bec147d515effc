"""Log lines: set up once, in JSON for machines or coloured for people, and a sink that writes events.

Every line passes the redaction, those of libraries that use the standard ``logging`` too. The set-up is the
process's own business (``cli``); the sink can be used with any structlog logger.
"""

import logging
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, Literal, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from tenantry.brokers.kafka import events as kafka
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.events import Event
from tenantry.limiter import events as limiter
from tenantry.queue import events as queue
from tenantry.replay import events as replay
from tenantry.telemetry import http_events as http
from tenantry.telemetry.redaction import cleaned

Form = Literal["json", "console"]
_LEVELS = ("debug", "info", "warning", "error")
_OWN_KEYS = frozenset({"_record", "_from_structlog"})

LEVELS: Mapping[type[Event], str] = MappingProxyType(
    {
        queue.JobsAccepted: "debug",
        queue.SubmitRefused: "debug",
        queue.BulkStored: "info",
        queue.JobsFed: "debug",
        queue.JobsCancelled: "info",
        queue.JobsClaimed: "debug",
        queue.JobsSettled: "debug",
        queue.JobsDied: "warning",
        queue.FeedFailed: "error",
        queue.HandlerOverran: "warning",
        queue.JobsReclaimed: "warning",
        queue.LeasesLost: "warning",
        queue.NodeJoined: "info",
        queue.NodeNameHeld: "warning",
        queue.NodeDraining: "info",
        queue.NodeLeft: "info",
        queue.PlannerElected: "info",
        queue.PlannerLeft: "info",
        queue.PlannerLost: "warning",
        queue.PlannerRebuilt: "info",
        queue.RoundPlanned: "debug",
        queue.BacklogMeasured: "debug",
        queue.BreakerMoved: "info",
        queue.LevelsMeasured: "debug",
        queue.LevelChanged: "warning",
        queue.StoreFailed: "warning",
        limiter.LeasesExchanged: "debug",
        limiter.AuthorityLost: "warning",
        limiter.AuthorityFound: "info",
        limiter.ExactDecided: "debug",
        http.RequestServed: "debug",
        http.CredentialRefused: "info",
        http.RequestFailed: "error",
        kafka.PartitionsAssigned: "info",
        kafka.PartitionsRevoked: "info",
        kafka.PartitionsPaused: "debug",
        kafka.PartitionsResumed: "debug",
        kafka.OffsetsCommitted: "debug",
        kafka.BrokerComplained: "warning",
        kafka.RecordFailed: "warning",
        kafka.GatePassed: "info",
        kafka.ReorderWindowOver: "warning",
        kafka.LagMeasured: "debug",
        replay.ReplayOrdered: "info",
        replay.ReplayTaken: "info",
        replay.ReplayLost: "warning",
        replay.ReplayHeld: "warning",
        replay.ReplayFreed: "info",
        replay.WindowFed: "debug",
        replay.MessagesParked: "debug",
        replay.ClassHeld: "warning",
        replay.ReplayInCircles: "warning",
        replay.SourceFailed: "warning",
        replay.ReplayFaulted: "error",
        replay.CoordinatorFaulted: "error",
        replay.ReplayEnded: "info",
        replay.ReplaysMeasured: "debug",
    }
)
"""How loud each event is. Debug for those whose number grows with the load: metrics count them."""

_LISTED = 5
"""So many records of a batch are written out; the rest are counted."""


def configure_logging(
    *, form: Form = "json", colours: bool = False, level: str = "info", stream: TextIO | None = None
) -> FilteringBoundLogger:
    """Set up structlog and the standard ``logging`` for this process and return a logger. Call once, at the
    start.

    ``colours`` counts for ``console`` only; whoever reads ``NO_COLOR`` says False. ``stream``: standard error
    unless given. Raises :class:`InvalidValue` for an unknown ``form`` or ``level``.
    """
    if form not in ("json", "console"):
        raise InvalidValue("form", form, "json or console")
    if level not in _LEVELS:
        raise InvalidValue("level", level, "one of " + ", ".join(_LEVELS))
    number = logging.getLevelNamesMapping()[level.upper()]
    _configure_structlog(number)
    _configure_standard(number, _renderer(form, colours=colours), stream or sys.stderr)
    return cast(FilteringBoundLogger, structlog.get_logger("tenantry"))


def redact(logger: Any, method: str, entry: EventDict) -> EventDict:
    """A structlog processor: the entry without secrets, made of JSON's types only."""
    own = {key: value for key, value in entry.items() if key in _OWN_KEYS}
    others = {key: value for key, value in entry.items() if key not in _OWN_KEYS}
    return {**cast(MutableMapping[str, Any], cleaned(others)), **own}


class LogSink:
    """A sink that writes each event as one line. It never raises for an event; safe from any thread."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._logger = logger

    def __call__(self, event: Event) -> None:
        level = LEVELS.get(type(event), "info")
        if self._logger.is_enabled_for(_NUMBERS[level]):
            self._logger.log(_NUMBERS[level], type(event).__name__, **written(event))


_NUMBERS = {name: logging.getLevelNamesMapping()[name.upper()] for name in _LEVELS}


def written(event: object) -> dict[str, object]:
    """The fields of an event as a log line shows them: batches shortened to their first few, with a count."""
    return {field.name: _short(getattr(event, field.name)) for field in fields(cast(Any, event))}


def _short(value: object) -> object:
    if is_dataclass(value):
        return written(value)
    if isinstance(value, tuple) and len(value) > _LISTED:
        return [*(_short(item) for item in value[:_LISTED]), f"and {len(value) - _LISTED} more"]
    if isinstance(value, tuple):
        return [_short(item) for item in value]
    return value


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.format_exc_info,
        redact,
    ]


def _configure_structlog(level: int) -> None:
    structlog.configure(
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _configure_standard(level: int, renderer: Processor, stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_shared(),
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)


def _renderer(form: Form, *, colours: bool) -> Processor:
    if form == "json":
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)
