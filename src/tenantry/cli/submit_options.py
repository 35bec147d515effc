"""What ``tenantry submit`` may be told."""

from dataclasses import dataclass
from typing import Annotated

import typer

from tenantry.cli.options import API_KEY, API_URL, OnDatabase


@dataclass(frozen=True, kw_only=True)
class SubmitOptions(OnDatabase):
    """One job, or many."""

    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]", help="An http(s) URL, handler:NAME, or a name of the tenant's document."
        ),
    ] = None
    data: Annotated[str | None, typer.Option("--data", "-d", metavar="JSON", help="The payload.")] = None
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="The payload from a file; - for standard input."),
    ] = None
    jobs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Many jobs: one JSON object a line, as the API takes them; - for standard input.",
        ),
    ] = None
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", "-t", help="As the operator: straight into the database, for this tenant."),
    ] = None
    job_class: Annotated[str, typer.Option("--class", help="live, background or replay.")] = "live"
    delay: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Not before so many seconds.")] = 0.0
    key: Annotated[str | None, typer.Option(help="The idempotency key: submitted twice, it is one job.")] = (
        None
    )
    ordering_key: Annotated[
        str | None, typer.Option(help="Jobs with one key run one at a time, in order.")
    ] = None
    cost: Annotated[float | None, typer.Option(metavar="SECONDS", help="Expected slot-seconds.")] = None
    content_type: Annotated[
        str | None, typer.Option(help="Of the payload; application/json unless given.")
    ] = None
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Wait until it has ended; exit code 1 if not well.")
    ] = False
    batch: Annotated[int, typer.Option(min=1, max=1_000, help="Jobs a request, with --jobs.")] = 100
    url: Annotated[str, typer.Option(envvar=API_URL, metavar="URL", help="The API.")] = (
        "http://127.0.0.1:8080"
    )
    api_key: Annotated[
        str | None,
        typer.Option(envvar=API_KEY, metavar="KEY", help="The tenant's key; better set the variable."),
    ] = None
