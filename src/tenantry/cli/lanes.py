"""``tenantry lanes``: the table of lanes, and what an operator orders of them."""

import sys
from asyncio import sleep as wait_for
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.desk_runs import at_desk
from tenantry.cli.lane_orders import add_orders
from tenantry.cli.options import OnDatabase, default_command, group
from tenantry.cli.output import Output
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from tenantry.cli.desk import Desk
    from tenantry.lanes.table import LaneQuery, LaneRow

app = group()


@dataclass(frozen=True, kw_only=True)
class TableOptions(OnDatabase):
    """Which lanes, and how they are shown."""

    tenant: Annotated[str | None, typer.Option("--tenant", "-t", help="Only lanes of this tenant.")] = None
    target: Annotated[str | None, typer.Option(help="Only lanes to this target, as jobs name it.")] = None
    state: Annotated[str | None, typer.Option(help="Only open, paused or held ones.")] = None
    sort: Annotated[str, typer.Option(help="backlog, in_flight or name.")] = "backlog"
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="At most so many.")] = 50
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it anew until interrupted; with --json a line each.")
    ] = False
    every: Annotated[float, typer.Option(min=0.2, max=3_600, help="Seconds between, with --watch.")] = 1.0


@default_command(app, TableOptions)
def lanes(options: TableOptions) -> None:
    """The live table of lanes: who may start how much where, and what stops it.

    Without a command it shows each lane's state, its limit and what is in flight, the reference and the
    present latency of its target, its breaker, its rate of successes and its backlog. A lane is paused by a
    person and held by a rule.

    Commands give orders: for one lane with --tenant and --target, for every lane to a target with --target
    alone, for every lane of a tenant with --tenant alone.
    """
    output, query = Output.of(options), _query(options)
    if not options.watch:
        _show(output, options, at_desk(options, lambda desk: _rows(desk, query)))
    elif output.json:
        at_desk(options, lambda desk: _tell_on(desk, query, output, options.every))
    else:
        _check_terminal()
        at_desk(options, lambda desk: _watch(desk, query, output, options))


add_orders(app)


async def _rows(desk: "Desk", query: "LaneQuery") -> "list[LaneRow]":
    from tenantry.lanes.table import row_of

    return [row_of(facts, desk.directory) for facts in await desk.operator.lanes(query)]


def _show(output: Output, options: TableOptions, rows: "list[LaneRow]") -> None:
    _tell(output, rows)
    if output.json:
        return
    from tenantry.cli.lanes_screen import print_table

    print_table(output, rows)
    if not rows:
        output.line(
            "None." if _narrowed(options) else "None yet: a lane comes into being with its first job."
        )
    elif len(rows) == options.limit:
        output.note(f"The first {options.limit}; --limit shows more, --tenant, --target and --state fewer.")


def _tell(output: Output, rows: "list[LaneRow]") -> None:
    from tenantry.web.wire import lane_out

    output.data([lane_out(row) for row in rows])


async def _tell_on(desk: "Desk", query: "LaneQuery", output: Output, every: float) -> None:
    while True:
        await desk.directory.refresh()
        _tell(output, await _rows(desk, query))
        await wait_for(every)


async def _watch(desk: "Desk", query: "LaneQuery", output: Output, options: TableOptions) -> None:
    from tenantry.cli.lanes_screen import live_table

    with live_table(output) as show:
        while True:
            await desk.directory.refresh()
            show(await _rows(desk, query))
            await wait_for(options.every)


def _check_terminal() -> None:
    if not sys.stdout.isatty():
        raise UsageError("--watch needs a terminal; with --json it prints a line of JSON each time instead")


def _narrowed(options: TableOptions) -> bool:
    return any(each is not None for each in (options.tenant, options.target, options.state))


def _query(options: TableOptions) -> "LaneQuery":
    from tenantry.kernel.tenant import tenant_id
    from tenantry.lanes.model import Target
    from tenantry.lanes.table import LaneQuery, LaneSort, LaneState

    if options.sort not in set(LaneSort):
        raise InvalidValue("--sort", options.sort, ", ".join(LaneSort))
    if options.state is not None and options.state not in set(LaneState):
        raise InvalidValue("--state", options.state, ", ".join(LaneState))
    return LaneQuery(
        tenant=None if options.tenant is None else tenant_id(options.tenant, path="--tenant"),
        target=None if options.target is None else Target(options.target),
        state=None if options.state is None else LaneState(options.state),
        sort=LaneSort(options.sort),
        limit=options.limit,
    )
