"""An incident for people and for machines: tables, one plain document, a picture. Pure."""

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

from tenantry.simulation.incident.judged import LONG, Judged
from tenantry.simulation.incident.model import TIERS
from tenantry.simulation.incident.run import ReplayResult
from tenantry.simulation.plot import COLOURS, GREY, Line, Panel, chart

HEADINGS = ("tier", "weight", "replays", "messages", "median end s", "fluid s", "drained", "fluid drained")


def rows(judged: Judged) -> list[tuple[str, ...]]:
    """A line a tier, for :data:`HEADINGS`: when the middle one of its replays ended, and the part of its
    messages that had gone when half of the critical tier's have in the fluid schedule."""
    return [
        (
            each.tier,
            f"{each.weight:g}",
            f"{each.replays}",
            f"{each.messages:,}",
            f"{each.ended:.1f}",
            f"{each.fluid:.1f}",
            f"{each.drained:.0%}",
            f"{each.due:.0%}",
        )
        for each in judged.tiers
    ]


def lines(judged: Judged) -> list[str]:
    """What the table does not say, a sentence a line."""
    right, shown = judged.foretold
    return [
        *_ends(judged),
        *_live(judged),
        f"Ends foretold: {right:.0%} of the ranges held them; {shown:.0%} of the answers had a range.",
        f"Black holes held {judged.held_by_holes:.2f} slots on average.",
        *(_special(each) for each in judged.report.results if each.tenant.id in _SPECIAL),
    ]


def _ends(judged: Judged) -> list[str]:
    late = f"Shorter ones ended {judged.late:.1f} s later than there, at most."
    if not judged.long:
        return [
            f"No replay takes {LONG:g} s in the fluid schedule: there is nothing to compare with it.",
            late,
        ]
    middle, most = judged.long[len(judged.long) // 2], judged.long[-1]
    return [
        f"{len(judged.long)} replays of a minute and more ended after {middle:.3f} × the fluid schedule's "
        f"time in the middle, {most:.3f} × at most.",
        late,
        f"Smallest share of them: {judged.least_share:.1f} × the floor; of anybody in any ten seconds: "
        f"{judged.least_window:.1f} ×.",
    ]


def _live(judged: Judged) -> list[str]:
    before, during = judged.live_seconds(during=False), judged.live_seconds(during=True)
    if not before:
        return ["No live work before the incident."]
    return [
        f"Live work, p99 from submit to answer: {before:.3f} s before, {during:.3f} s until half of the "
        f"replays had ended ({during / before:.2f} ×)."
    ]


_SPECIAL = ("largest", "hundredfold", "hole", "poison")


def _special(result: ReplayResult) -> str:
    tenant = result.tenant
    ended = f"ended after {result.ended_at:,.1f} s" if isfinite(result.ended_at) else "has not ended"
    return (
        f"{tenant.id}: {tenant.messages:,} messages, {result.delivered:,} delivered, {result.parked:,} "
        f"parked; at most {result.most} slots; {ended}."
    )


def plain(judged: Judged) -> dict[str, Any]:
    """All of it as one JSON document."""
    report = judged.report
    incident = report.incident
    return {
        "incident": {
            "name": incident.name,
            "replays": sum(tenant.messages > 0 for tenant in incident.tenants),
            "messages": incident.messages,
            "slots": incident.slots,
            "floor": incident.floor,
            "seed": report.seed,
        },
        "tiers": [_tier(each) for each in judged.tiers],
        "over_fluid": {
            "replays": len(judged.long),
            "median": judged.long[len(judged.long) // 2] if judged.long else None,
            "most": judged.long[-1] if judged.long else None,
            "shorter_ones_late": judged.late,
        },
        "smallest_share_over_floor": _finite(judged.least_share),
        "smallest_share_of_ten_seconds_over_floor": _finite(judged.least_window),
        "estimates": {"right": judged.foretold[0], "shown": judged.foretold[1]},
        "live_p99": {
            "before": judged.live(during=False),
            "during": judged.live(during=True),
            "bystanders_before": judged.live(during=False, own=False),
            "bystanders_during": judged.live(during=True, own=False),
            "seconds_before": judged.live_seconds(during=False),
            "seconds_during": judged.live_seconds(during=True),
        },
        "held_by_black_holes": judged.held_by_holes,
        "calls": report.calls,
        "replays": [_replay(judged, each) for each in report.results if each.tenant.messages],
    }


def picture(judged: Judged) -> str:
    """An SVG: what each tier has drained over time beside the fluid schedule, the slots in use, and every
    replay's end beside its end there."""
    report = judged.report
    count = int(3.0 * judged.crowded_for) + 2
    step = max(1, count // 150)
    seconds = range(0, min(count, len(report.drained)), step)
    panels = [_tier_panel(judged, tier, seconds, step) for tier in TIERS]
    used = [report.used[at] if at < len(report.used) else 0.0 for at in seconds]
    slots = Line("slots in use", used, COLOURS[2], 2.0)
    panels.append(Panel(f"slots in use of {report.incident.slots}, by second", [slots], step=step))
    overs = Line("end over the fluid end", judged.long, COLOURS[4], 2.0)
    panels.append(Panel("end over the fluid end, by replay, rising", [overs], top=1.5))
    title = f"{report.incident.name}: {report.incident.messages:,} messages, {report.incident.slots} slots"
    return chart(title, panels, x="")


def _tier_panel(judged: Judged, tier: str, seconds: Sequence[int], step: int) -> Panel:
    (found,) = [each for each in judged.tiers if each.tier == tier]
    total = max(1, found.messages)
    ours = [judged.report.drained[at][tier] / total for at in seconds]
    fluid = [judged.fluid_drained(float(at))[tier] / total for at in seconds]
    lines_ = [Line("fluid", fluid, GREY, 3.0), Line("ours", ours, COLOURS[0], 1.5)]
    return Panel(f"{tier} (weight {found.weight:g}): part drained, by second", lines_, step=step, top=1.0)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _tier(each: Any) -> dict[str, Any]:
    return {name: getattr(each, name) for name in each.__slots__}


def _replay(judged: Judged, result: ReplayResult) -> dict[str, Any]:
    tenant = result.tenant
    return {
        "tenant": tenant.id,
        "tier": tenant.tier,
        "backlog": tenant.backlog.value,
        "messages": tenant.messages,
        "delivered": result.delivered,
        "parked": result.parked,
        "ended_at": _finite(result.ended_at),
        "fluid_end": _finite(judged.schedule.ends.get(tenant.id, inf)),
        "most_slots": result.most,
    }
