"""``tenantry partition``: where events lie, what a change would move, which spread traffic asks for."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import command, group
from tenantry.cli.output import Output, amount
from tenantry.cli.partition_files import (
    OfLayouts,
    SvgOption,
    TrafficOption,
    history_of,
    moment_of,
    traffic_of,
    write,
)
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from tenantry.partition import Choice, DrainPlan, Layout, Movement, Suggestion

app = group("Which partition a tenant's events go to, and what changing that would move. Needs no database.")

TOLD = 20
"""So many lines of a table are shown to people; JSON has all."""


@dataclass(frozen=True, kw_only=True)
class WhereOptions(OfLayouts):
    """One tenant, perhaps one entity, at a time or during one."""

    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Which tenant.")]
    entity: Annotated[str | None, typer.Option(help="One entity or message id; all unless given.")] = None
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="The events' time: seconds since 1970, or ISO; now.")
    ] = None
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --at: every event from there to this time.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class PlanOptions(OfLayouts):
    """A change: the newest layout of the file, or a wider spread of one tenant."""

    traffic: TrafficOption = None
    crowd: Annotated[
        int, typer.Option(metavar="TENANTS", help="Without --traffic: so many tenants, all alike.")
    ] = 1000
    tenant: Annotated[str | None, typer.Option(help="Widen this tenant instead; needs --spread.")] = None
    spread: Annotated[int | None, typer.Option(metavar="K", help="To so many partitions.")] = None


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(OfLayouts):
    """A crowd of tenants of unlike size."""

    traffic: TrafficOption = None
    crowd: Annotated[int, typer.Option(metavar="TENANTS", help="Without --traffic: so many.")] = 1000
    skew: Annotated[float, typer.Option(help="Rates fall as 1/rank**skew; 0 makes all alike.")] = 1.1
    svg: SvgOption = None


@dataclass(frozen=True, kw_only=True)
class SuggestOptions(OfLayouts):
    """Measured traffic."""

    traffic: Annotated[
        str, typer.Argument(metavar="TRAFFIC", help="CSV with tenant,rate, or JSON lines; - for stdin.")
    ]
    most: Annotated[
        float | None,
        typer.Option(metavar="RATE", help="What one partition should carry of one tenant; an equal share."),
    ] = None
    svg: SvgOption = None


@command(app, "where", WhereOptions)
def where(options: WhereOptions) -> None:
    """Where events of a tenant lie, by the layout of their own time."""
    from tenantry.kernel.clock import SystemClock
    from tenantry.partition import Placement

    placement = Placement(history_of(options.layouts))
    start = SystemClock().now() if options.at is None else moment_of("--at", options.at)
    if options.until is None:
        found = placement.where_at(options.tenant, options.entity, start)
    else:
        end = moment_of("--until", options.until)
        found = placement.where_during(options.tenant, start, end, options.entity)
    output, ranking = Output.of(options), placement.partitions_of(options.tenant, start)
    output.data({"tenant": options.tenant, "entity": options.entity, "partitions": found, "ranking": ranking})
    output.line(" ".join(map(str, found)))


@command(app, "plan", PlanOptions)
def plan(options: PlanOptions) -> None:
    """What the newest layout of the file moves, and how to get there with every entity in order.

    With --tenant and --spread: what widening that tenant would move, and which way is cheaper.
    """
    if (options.tenant is None) != (options.spread is None):
        raise UsageError("--tenant and --spread go together: which tenant, over how many partitions")
    history = history_of(options.layouts)
    if options.tenant is not None and options.spread is not None:
        _tell_choices(Output.of(options), history.newest, options.tenant, options.spread)
        return
    if len(history) < 2:
        hint = "Add the layout that you plan, with its effective_from."
        raise InvalidValue("layouts", f"{len(history)} layout", "at least two: before and after", hint)
    from tenantry.partition import drain_plan, movement

    old, new = history[-2], history[-1]
    found = movement(old, new, _named(_traffic(options, skew=0.0), old, new))
    _tell_movement(Output.of(options), found, drain_plan(old, new, found))


@command(app, "simulate", SimulateOptions)
def simulate(options: SimulateOptions) -> None:
    """A crowd under the newest layout: load, who shares with whom, beside what Kafka's hash would do."""
    from tenantry.partition import Layout, heat_map, load_of, murmur2_partition, overlap, unevenness

    layout, traffic = history_of(options.layouts).newest, _traffic(options, skew=options.skew)
    load, shared = load_of(layout, traffic), overlap(layout, traffic)
    plain = dict.fromkeys(layout.ids, 0.0)
    for tenant, rate in traffic.items():
        plain[murmur2_partition(tenant, layout.ids)] += rate
    rows = [
        ("this layout", unevenness(load)),
        ("every tenant on one partition", unevenness(load_of(Layout(layout.ids), traffic))),
        ("Kafka's murmur2 of the tenant", unevenness(plain)),
    ]
    output = Output.of(options)
    output.data(
        {
            "tenants": len(traffic),
            "partitions": len(load),
            "load": {str(each): rate for each, rate in load.items()},
            "fullest_over_mean": dict(rows),
            "pairs_sharing": {str(each): count for each, count in shared.pairs.items()},
            "pairs_apart": shared.apart,
        }
    )
    output.line(f"{amount(len(traffic), 'tenant')} over {amount(len(load), 'active partition')}.")
    output.table(("placed by", "fullest over mean"), [(name, f"{value:.2f}") for name, value in rows])
    output.line(f"Of all pairs of {shared.compared:,} tenants, {shared.apart:.1%} share no partition.")
    named = {*layout.spreads, *layout.pins}
    if named and named.isdisjoint(traffic):
        output.line("The layout's spreads and pins name none of these tenants: give yours with --traffic.")
    if options.svg:
        write(options.svg, heat_map(layout, traffic, title="Load by partition"))


@command(app, "suggest", SuggestOptions)
def suggest_spreads(options: SuggestOptions) -> None:
    """Which spreads the measured traffic asks for, and what taking them would move."""
    from pathlib import Path

    from tenantry.partition import heat_map, load_of, suggest, unevenness, with_spreads

    layout, traffic = history_of(options.layouts).newest, traffic_of(Path(options.traffic))
    found = suggest(layout, traffic, most=options.most)
    then = with_spreads(layout, found, layout.effective_from)
    before, after = (unevenness(load_of(each, traffic)) for each in (layout, then))
    output = Output.of(options)
    output.data({"suggestions": found, "fullest_over_mean": {"now": before, "then": after}})
    _tell_suggestions(output, found)
    output.line(f"Fullest partition over the mean: {before:.2f} now, {after:.2f} then.")
    if options.svg:
        write(options.svg, heat_map(then, traffic, title="Load by partition, as suggested"))


def _traffic(options: PlanOptions | SimulateOptions, *, skew: float) -> dict[str, float]:
    from tenantry.partition import crowd

    return traffic_of(options.traffic) if options.traffic else crowd(options.crowd, skew=skew)


def _named(traffic: dict[str, float], *layouts: "Layout") -> dict[str, float]:
    """``traffic`` and every tenant that a layout names, at the mean rate where nothing was measured."""
    mean = sum(traffic.values()) / len(traffic)
    named = {tenant for layout in layouts for tenant in (*layout.spreads, *layout.pins)}
    return {**dict.fromkeys(sorted(named), mean), **traffic}


def _tell_choices(output: Output, layout: "Layout", tenant: str, spread: int) -> None:
    from tenantry.partition import cheaper, choices
    from tenantry.partition.choice import best_possible

    found = choices(layout, tenant, spread)
    best, least = cheaper(found), best_possible(layout.spread_of(tenant), found[0].spread)
    output.data({"tenant": tenant, "asked": found[0], "others": found[1:], "cheaper": best, "least": least})
    output.table(("spread", "slots", "keys moved"), [_choice_cells(each) for each in found])
    if best is not None:
        output.line(f"Cheaper: {best.spread} partitions by {best.slots} slots moves {best.moved:.1%}.")
    stays = not layout.reserved or tenant in layout.spreads  # else it moves to the reserved ones, wholly
    if stays and found[0].moved > least + 1e-9:
        output.line(f"{found[0].spread} partitions with jump slots from the start would move {least:.1%}.")


def _choice_cells(choice: "Choice") -> tuple[object, ...]:
    return choice.spread, choice.slots, f"{choice.moved:.1%}"


def _tell_movement(output: Output, found: "Movement", drain: "DrainPlan") -> None:
    at = None if drain.at == -inf else drain.at
    output.data(
        {
            "at": at,
            "movement": found,
            "drain": {"new": drain.new, "retired": drain.retired, "waits": drain.waits, "steps": drain.steps},
        }
    )
    output.line(f"{amount(len(found.moves), 'tenant')} of {found.tenants:,} would move.")
    output.table(
        ("what", "part"),
        [
            ("first partitions that change", f"{found.first_moved:.1%}"),
            ("keys that move, by traffic", f"{found.keys_moved:.1%}"),
            ("keys that move to partitions there were", f"{found.between_old:.1%}"),
            ("Kafka's murmur2 % n would move", f"{found.murmur2_moved:.1%}"),
        ],
    )
    rows = [
        (move.tenant, _listed(move.old.partitions), _listed(move.new.partitions), f"{move.share:.1%}")
        for move in found.moves[:TOLD]
    ]
    if rows:
        output.table(("tenant", "from", "to", "keys moved"), rows)
    if len(found.moves) > TOLD:
        output.line(f"and {len(found.moves) - TOLD:,} more; --json has all.")
    for number, step in enumerate(drain.steps, 1):
        output.line(f"{number}. {step}")


def _tell_suggestions(output: Output, found: "tuple[Suggestion, ...]") -> None:
    rows = [
        (each.tenant, f"{each.rate:,.1f}", each.spread, each.choice.spread, each.choice.slots,
         f"{each.choice.moved:.1%}")
        for each in found[:TOLD]
    ]  # fmt: skip
    if rows:
        output.table(("tenant", "rate", "now", "then", "slots", "keys moved"), rows)
    else:
        output.line("Every spread is as the traffic asks.")
    if len(found) > TOLD:
        output.line(f"and {len(found) - TOLD:,} more; --json has all.")


def _listed(partitions: tuple[int, ...]) -> str:
    words = " ".join(map(str, partitions[:8]))
    return words if len(partitions) <= 8 else f"{words} … ({len(partitions)})"
