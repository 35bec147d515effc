"""``tenantry worker``: one more node on a database that others use too."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import command, group
from tenantry.cli.serving import Working

if TYPE_CHECKING:
    from tenantry.cli.assembly import Node
    from tenantry.cli.settings import NodeSettings

app = group()


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(Working):
    """Everything that a worker takes."""

    no_planner: Annotated[
        bool,
        typer.Option("--no-planner", help="Never take the planner's place, feed nothing, lead no replay."),
    ] = False
    no_http: Annotated[
        bool, typer.Option("--no-http", help="Run handlers only, and deliver nothing over HTTP.")
    ] = False


@command(app, "worker", WorkerOptions)
def worker(options: WorkerOptions) -> None:
    """Run a worker on a database that is there already; it stands by as planner too.

    Start as many as you need, on as many machines. SIGTERM drains it: it takes nothing more, running jobs get
    --grace seconds, and what is left is given back unharmed.
    """
    from tenantry.cli.eventloop import run
    from tenantry.cli.running import serve
    from tenantry.cli.serving import announced, started_logging

    settings, events = _settings(options), started_logging(options)

    async def announce(node: "Node") -> None:
        announced(options, node)

    run(serve(settings, announce, events))


def _settings(options: WorkerOptions) -> "NodeSettings":
    from tenantry.cli.handlers import loaded_handlers
    from tenantry.cli.serving import node_arguments, worker_arguments
    from tenantry.cli.settings import NodeSettings, Role

    roles = {Role.WORKER} if options.no_planner else {Role.WORKER, Role.PLANNER, Role.FEEDER, Role.REPLAY}
    return NodeSettings(
        roles=frozenset(roles),
        http=not options.no_http,
        **node_arguments(options),
        **worker_arguments(options, loaded_handlers(options.handlers or ())),
    )
