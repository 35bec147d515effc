"""``tenantry api``: the tenants' HTTP API by itself."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import command, group
from tenantry.cli.serving import Serving

if TYPE_CHECKING:
    from tenantry.cli.assembly import Node

app = group()


@dataclass(frozen=True, kw_only=True)
class ApiOptions(Serving):
    """Everything that any node takes, and where the API is."""

    listen: Annotated[
        str,
        typer.Option(envvar="TENANTRY_LISTEN", metavar="HOST:PORT", help="Where the tenants' API is served."),
    ] = "127.0.0.1:8080"


@command(app, "api", ApiOptions)
def api(options: ApiOptions) -> None:
    """Serve the tenants' HTTP API on a database that is there already. Start as many as you need."""
    from tenantry.cli.eventloop import run
    from tenantry.cli.running import serve
    from tenantry.cli.serving import announced, node_arguments, started_logging
    from tenantry.cli.settings import Address, NodeSettings, Role

    settings = NodeSettings(
        roles=frozenset({Role.API}),
        listen=Address.parsed(options.listen, path="--listen"),
        **node_arguments(options),
    )

    async def announce(node: "Node") -> None:
        announced(options, node)

    run(serve(settings, announce, started_logging(options)))
