"""What the commands that run a node share: their options, and how those become settings and a log."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenantry.cli.options import OnDatabase
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.events import EventSink

if TYPE_CHECKING:
    from tenantry.cli.assembly import Node
    from tenantry.cli.settings import Address
    from tenantry.delivery.handlers import Handlers


@dataclass(frozen=True, kw_only=True)
class Serving(OnDatabase):
    """Any node."""

    name: Annotated[
        str | None,
        typer.Option(envvar="TENANTRY_NODE", help="The node's name; unless given, host and process."),
    ] = None
    metrics: Annotated[
        str,
        typer.Option(
            envvar="TENANTRY_METRICS",
            metavar="HOST:PORT",
            help="Where /metrics and /health are served, or none.",
        ),
    ] = "127.0.0.1:9464"
    tenant_metrics: Annotated[
        bool, typer.Option("--tenant-metrics", help="Also count by tenant (the first 100, then 'other').")
    ] = False
    connections: Annotated[
        int,
        typer.Option(
            min=2, max=1_000, help="Connections of each of the node's two pools; one more is reserved."
        ),
    ] = 8
    connections_file: Annotated[
        Path | None,
        typer.Option(
            envvar="TENANTRY_CONNECTIONS_FILE",
            metavar="FILE",
            help="Connections to brokers, files and other databases, and which tenant may use what of them.",
        ),
    ] = None
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info"
    log_format: Annotated[
        str | None, typer.Option(help="json or console; unless given, console on a terminal, else json.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Working(Serving):
    """A node with a worker."""

    handlers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE[:NAME]", help="Python handlers: a module whose `handlers` is a Handlers."
        ),
    ] = None
    pool: Annotated[str, typer.Option(help="The pool that the worker serves.")] = "shared"
    slots: Annotated[int, typer.Option(min=1, max=100_000, help="Jobs at once.")] = 20
    grace: Annotated[
        float, typer.Option(min=0, max=3_600, help="Seconds that running jobs get when the worker stops.")
    ] = 20.0
    keep_days: Annotated[
        int, typer.Option(min=1, max=36_500, help="Days that the ends of jobs are kept.")
    ] = 7
    allow_private_targets: Annotated[
        bool,
        typer.Option(
            "--allow-private-targets",
            help="Deliver to private and loopback addresses too. Tenants choose targets, so think first.",
        ),
    ] = False
    allow_network: Annotated[
        list[str] | None,
        typer.Option(metavar="CIDR", help="Deliver to this network too, such as 10.1.0.0/16. Repeatable."),
    ] = None


def node_arguments(options: Serving, *, makes_database: bool = False) -> dict[str, Any]:
    """What any node's settings take from its options. Raises :class:`UsageError`.

    ``makes_database``: whether it may make the embedded server's directory."""
    from tenantry.cli.connections import read_connections
    from tenantry.cli.desk import check_embedded, given_urls

    urls = given_urls(options)
    if urls is None and not makes_database:
        check_embedded(options)
    return {
        "database": urls,
        "data_dir": options.data_dir,
        "name": options.name,
        "metrics": metrics_address(options.metrics),
        "per_tenant_metrics": options.tenant_metrics,
        "connections": options.connections,
        "outside": read_connections(options.connections_file),
    }


def worker_arguments(options: Working, handlers: "Handlers | None") -> dict[str, Any]:
    """What a worker's settings take from its options. Raises :class:`InvalidValue`."""
    from tenantry.delivery.guard import AddressRule, networks

    allowed = networks(options.allow_network or (), path="--allow-network")
    return {
        "pool": options.pool,
        "slots": options.slots,
        "grace_for": options.grace,
        "keep_days": options.keep_days,
        "addresses": AddressRule(options.allow_private_targets, allowed),
        "handlers": handlers,
    }


def metrics_address(text: str) -> "Address | None":
    """``HOST:PORT``, or ``none``."""
    from tenantry.cli.settings import Address

    return None if text.casefold() == "none" else Address.parsed(text, path="--metrics")


def started_logging(options: Serving) -> EventSink:
    """Sets up this process's log on standard error; returns the sink that writes events to it."""
    from tenantry.cli.output import may_colour
    from tenantry.telemetry.logs import LogSink, configure_logging

    form = options.log_format or ("console" if sys.stderr.isatty() else "json")
    if form not in ("json", "console"):
        raise InvalidValue("--log-format", form, "json or console")
    colours = may_colour(options, sys.stderr)
    logger = configure_logging(
        form="json" if form == "json" else "console", colours=colours, level=options.log_level
    )
    return LogSink(logger)


def announced(options: Serving, node: "Node") -> None:
    """Says that the node serves, and where."""
    from tenantry.cli.output import Output
    from tenantry.postgres.urls import redacted

    output, roles = Output.of(options), sorted(node.settings.roles)
    database = redacted(node.urls.engine)
    output.data(
        {
            "node": node.name,
            "roles": roles,
            "api_url": node.api_url,
            "metrics_url": node.metrics_url,
            "database": database,
        }
    )
    served = [f"API {node.api_url}"] if node.api_url else []
    served += [f"metrics {node.metrics_url}/metrics"] if node.metrics_url else []
    output.line(f"{node.name} ({', '.join(roles)}) is up on {database}. {'; '.join(served)}")
