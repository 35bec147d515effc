"""``tenantry up``: everything on one machine."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import command, group
from tenantry.cli.serving import Working

if TYPE_CHECKING:
    from tenantry.cli.assembly import Node
    from tenantry.cli.settings import NodeSettings

app = group()

FIRST_TENANT, FIRST_TIER = "demo", "standard"


@dataclass(frozen=True, kw_only=True)
class UpOptions(Working):
    """Everything that any node takes, and where the API is."""

    listen: Annotated[
        str, typer.Option(envvar="TENANTRY_LISTEN", metavar="HOST:PORT", help="Where the API is served.")
    ] = "127.0.0.1:8080"
    bare: Annotated[bool, typer.Option("--bare", help="On the first start, make no first tenant.")] = False
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning"


@command(app, "up", UpOptions)
def up(options: UpOptions) -> None:
    """Run everything on this machine: API, planner, worker, and PostgreSQL unless you name one.

    The first start makes a tenant with an API key and prints the line that submits a first job. Ctrl-C ends
    it in order: running jobs get --grace seconds. Data stays in --data-dir.
    """
    from tenantry.cli.eventloop import run
    from tenantry.cli.running import serve
    from tenantry.cli.serving import started_logging

    settings, events = _settings(options), started_logging(options)

    async def announce(node: "Node") -> None:
        await _announce(options, node)

    run(serve(settings, announce, events))


def _settings(options: UpOptions) -> "NodeSettings":
    from tenantry.cli.handlers import loaded_handlers, with_print
    from tenantry.cli.serving import node_arguments, worker_arguments
    from tenantry.cli.settings import Address, NodeSettings

    handlers = with_print(loaded_handlers(options.handlers or ()))
    return NodeSettings(
        listen=Address.parsed(options.listen, path="--listen"),
        migrate=True,
        **node_arguments(options, makes_database=True),
        **worker_arguments(options, handlers),
    )


async def _announce(options: UpOptions, node: "Node") -> None:
    from tenantry.cli.output import Output
    from tenantry.postgres.urls import redacted

    key = None if options.bare else await _first_key(node)
    place = redacted(node.urls.admin) if node.settings.database else str(options.data_dir.absolute())
    output = Output.of(options)
    output.data(
        {
            "api_url": node.api_url,
            "metrics_url": node.metrics_url,
            "database": place,
            "node": node.name,
            "tenant": FIRST_TENANT if key else None,
            "api_key": key,
        }
    )
    if options.json:
        return
    output.line(output.styled("Tenantry is up. Ctrl-C ends it.", "bold"))
    output.line(f"  API       {node.api_url}  (described at {node.api_url}/v1/openapi.json)")
    if node.metrics_url:
        output.line(f"  metrics   {node.metrics_url}/metrics")
    output.line(f"  database  {place}")
    output.line(_first_words(node, key) if key else _later_words(node))


async def _first_key(node: "Node") -> str | None:
    """A first tenant in a registry that nobody has written yet; its API key, or None for any later start."""
    from tenantry.config.api_keys import make_api_key
    from tenantry.config.model import TenantDocument
    from tenantry.config.registry import Registry
    from tenantry.kernel.tenant import TenantId, TierName
    from tenantry.postgres.directory import add_api_key, write_registry

    if node.directory.version > 0:
        return None
    first = TenantDocument(TenantId(FIRST_TENANT), TierName(FIRST_TIER))
    await write_registry(node.urls.admin, Registry(tenants=(first,)))
    await node.directory.refresh()
    key = make_api_key(node.around.randomness)
    await add_api_key(node.urls.admin, first.tenant, key, note="made by the first `tenantry up`")
    return key.text


def _first_words(node: "Node", key: str) -> str:
    return f"""
  A first tenant, {FIRST_TENANT} (tier {FIRST_TIER}), has this API key. It is shown once and kept only hashed:

    export TENANTRY_API_KEY={key}

  Submit a job to the built-in handler, which prints it here:

    curl -sS {node.api_url}/v1/jobs -H "Authorization: Bearer $TENANTRY_API_KEY" \\
      -H 'Content-Type: application/json' -d '{{"target": "handler:print", "payload": {{"hello": "world"}}}}'

  A target can also be your own URL. A job for an address of this machine or of a private network is dead at
  once, unless `tenantry up` runs with --allow-private-targets."""


def _later_words(node: "Node") -> str:
    count = len(tuple(node.directory.tenants()))
    return f"  tenants   {count:,}  (`tenantry tenants list`; new key: `tenantry tenants key create TENANT`)"
