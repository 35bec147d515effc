"""``tenantry demo``: the product in two acts, on its own, in a temporary directory.

===================  =====================================================================================
``scenario``         who the fifty tenants are, and when what happens
``show``             the minute itself: server, node and crowd up, the load, the books, everything down
``crew``             the other processes: ``crowd``, the outside world of clients and targets, and ``door``,
                     the API; ``messages`` is what they and the show say to each other
``tally``            what the node tells, kept per tenant
``home``             where each act lives while it runs
``figures``          what follows from that: shares, percentiles, the same load through one line
``screen``           the table while it runs; ``summary`` the words at the end, and the JSON
``incident``         the second act: fifty replays at once
===================  =====================================================================================
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tenantry.cli.options import command, group

app = group()


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """How long, and what is kept of it."""

    seconds: Annotated[
        float,
        typer.Option(
            min=4,
            max=600,
            help="How long the first act's load lasts; below 30 the second act's incident is smaller too.",
        ),
    ] = 40.0
    act: Annotated[
        int | None, typer.Option(min=1, max=2, help="Only the first or the second act; both by default.")
    ] = None
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the summary's figures to FILE too.")
    ] = None
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colours; NO_COLOR in the environment does the same.")
    ] = False


@command(app, "demo", DemoOptions)
def demo(options: DemoOptions) -> None:
    """Watch fifty tenants share one queue fairly while one submits 20,000 jobs at once; then replay at once.

    The first act is the burst. In the second, what all fifty depend on fails, their jobs die, and fifty
    replays start at once. It starts a PostgreSQL of its own in a temporary directory and ends by itself after
    less than two minutes; with 1 as its exit code if a promise of the product did not hold (but for that of
    waits, which are told: they are milliseconds of this machine).
    Ctrl-C ends it earlier. Nothing is left behind, and nothing that is there already is touched.
    """
    from tenantry.cli.demo.show import perform
    from tenantry.cli.eventloop import run

    run(perform(options))
