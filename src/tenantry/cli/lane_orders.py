"""The orders under ``tenantry lanes``: given on the database, each with its reason and by whom."""

import getpass
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.desk_runs import at_desk
from tenantry.cli.options import OnDatabase, command
from tenantry.cli.output import Output, amount, moment
from tenantry.kernel.errors import InvalidValue, UnknownTenant, UsageError

if TYPE_CHECKING:
    from tenantry.cli.desk import Desk
    from tenantry.kernel.tenant import TenantId
    from tenantry.lanes.orders import Action, Order, OrderRecord, Scope
    from tenantry.lanes.table import LaneFacts


@dataclass(frozen=True, kw_only=True)
class OrderOptions(OnDatabase):
    """Which lanes, why, and by whom."""

    tenant: Annotated[
        str | None, typer.Option("--tenant", "-t", help="Lanes of this tenant; those that come later too.")
    ] = None
    target: Annotated[
        str | None, typer.Option(help="Lanes to this target, as jobs name it; those that come later too.")
    ] = None
    reason: Annotated[
        str, typer.Option("--reason", "-r", help="Why, in a line. Tenants whose jobs it stops see it.")
    ]
    by: Annotated[
        str | None, typer.Option(envvar="TENANTRY_OPERATOR", help="Who; unless given, the user's name here.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class CeilingOptions(OrderOptions):
    """How many."""

    most: Annotated[int, typer.Argument(metavar="MOST", help="In flight in each lane, 1 to 1,000,000.")]


@dataclass(frozen=True, kw_only=True)
class OrdersOptions(OnDatabase):
    """Which orders."""

    log: Annotated[
        bool, typer.Option("--log", help="Every order that was ever given, not only those that stand.")
    ] = False
    before: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="With --log: those numbered below.")
    ] = None
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="At most so many, the newest first.")] = 50


def add_orders(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "pause", OrderOptions)(pause)
    command(app, "resume", OrderOptions)(resume)
    command(app, "ceiling", CeilingOptions)(ceiling)
    command(app, "lift", OrderOptions)(lift)
    command(app, "reset", OrderOptions)(reset)
    command(app, "orders", OrdersOptions)(orders)


def pause(options: OrderOptions) -> None:
    """Start nothing in these lanes until they are resumed. Jobs are accepted up to the tenant's bound; what
    runs is not interrupted."""
    _give(options, "pause")


def resume(options: OrderOptions) -> None:
    """End a pause of exactly these lanes: one of a whole target or tenant is ended as it was given."""
    _give(options, "resume")


def ceiling(options: CeilingOptions) -> None:
    """At most MOST in flight in each of these lanes, however much their targets seem to take. Of several
    ceilings over a lane the lowest holds. What runs is not interrupted."""
    _give(options, "ceiling", most=options.most)


def lift(options: OrderOptions) -> None:
    """Lift a ceiling of exactly these lanes."""
    _give(options, "lift")


def reset(options: OrderOptions) -> None:
    """Forget what the shapers of these lanes learned of their targets: limit 1, breaker closed, no latency
    known. For a target that is not what it was."""
    _give(options, "reset")


def orders(options: OrdersOptions) -> None:
    """The orders that stand, or with --log all that were ever given: what, by whom, when and why."""
    from tenantry.web.wire import order_out

    if options.before is not None and not options.log:
        raise UsageError("--before is for --log: the orders that stand are one list")

    async def look(desk: "Desk") -> "list[OrderRecord]":
        if options.log:
            return await desk.operator.order_log(limit=options.limit, before=options.before)
        return await desk.operator.orders(limit=options.limit)

    output, found = Output.of(options), at_desk(options, look)
    output.data([order_out(each) for each in found])
    output.table(("number", "at", "by", "order", "reason"), [_cells(each) for each in found])
    if not found:
        output.line(
            "None." if options.log else "None stands. `tenantry lanes orders --log` shows earlier ones."
        )
    elif len(found) == options.limit:
        on = f" --before {found[-1].number} goes on." if options.log else ""
        output.note(f"The newest {options.limit}.{on}")


def _cells(record: "OrderRecord") -> tuple[str, ...]:
    order = record.order
    what = order.action if order.ceiling is None else f"{order.action} {order.ceiling:,}"
    return str(record.number), moment(record.at), order.by, f"{what}: {order.scope}", order.reason


def _give(options: OrderOptions, action: str, *, most: int | None = None) -> None:
    from tenantry.lanes.orders import Action

    order = _order(options, Action(action), most)

    async def do(desk: "Desk") -> "tuple[OrderRecord, list[LaneFacts]]":
        await _check_tenant(desk, order.scope.tenant)
        given = await desk.operator.order(order)
        return given, await _lanes_of(desk, order.scope)

    output, (given, lanes) = Output.of(options), at_desk(options, do)
    _tell(output, given, lanes)


def _order(options: OrderOptions, action: "Action", most: int | None) -> "Order":
    from tenantry.kernel.tenant import TenantId
    from tenantry.lanes.model import Target
    from tenantry.lanes.orders import Order, Scope

    if options.tenant is None and options.target is None:
        raise UsageError(
            "which lanes? --tenant and --target name one lane, --target alone every lane to it, "
            "--tenant alone every lane of it"
        )
    scope = Scope(
        None if options.tenant is None else TenantId(options.tenant),
        None if options.target is None else Target(options.target),
    )
    return Order(action, scope, options.reason, options.by or _user(), most)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        raise InvalidValue("--by", None, "your name", "This user has none on this machine.") from None


async def _check_tenant(desk: "Desk", tenant: "TenantId | None") -> None:
    """A tenant that the registry names, or one that was removed and has lanes still."""
    from tenantry.lanes.table import LaneQuery

    if tenant is None or desk.directory.tenant(tenant) is not None:
        return
    if not await desk.operator.lanes(LaneQuery(tenant=tenant, limit=1)):
        raise UnknownTenant(tenant, tuple(document.tenant for document in desk.directory.tenants()))


async def _lanes_of(desk: "Desk", scope: "Scope") -> "list[LaneFacts]":
    from tenantry.lanes.table import MOST_LANES, LaneQuery

    query = LaneQuery(tenant=scope.tenant, target=scope.target)
    return await desk.operator.lanes(replace(query, limit=MOST_LANES))


_DONE = {
    "pause": "paused",
    "resume": "resumed",
    "ceiling": "bounded",
    "lift": "lifted",
    "reset": "reset",
}


def _tell(output: Output, given: "OrderRecord", lanes: "list[LaneFacts]") -> None:
    """What was ordered, how many lanes that is now, and what else still stands over them."""
    from tenantry.web.wire import order_out

    order = given.order
    output.data(order_out(given))
    now = "no lane yet" if not lanes else amount(len(lanes), "lane") + " now"
    output.line(f"Order {given.number}: {order.scope} {_DONE[order.action]} ({now}).")
    for other in _standing_still(order, lanes):
        output.note(f"Still {other.order.action} over some of them: {other.order.scope}, {other}")


def _standing_still(order: "Order", lanes: "list[LaneFacts]") -> "list[OrderRecord]":
    """After an order that ends one: the others of that kind over the same lanes."""
    from tenantry.lanes.orders import Action

    kind = {Action.RESUME: Action.PAUSE, Action.LIFT: Action.CEILING}.get(order.action)
    found = {each.number: each for lane in lanes for each in lane.orders if each.order.action is kind}
    return [found[number] for number in sorted(found)]
