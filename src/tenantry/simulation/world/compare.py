"""One world under every policy, side by side: tables, plain values, pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

from tenantry.simulation.plot import COLOURS, Line, Panel, chart
from tenantry.simulation.world.model import World
from tenantry.simulation.world.run import WorldReport

HEADINGS = (
    "policy", "steady p50 s", "steady p99 s", "others p99 s", "succeeded", "dead", "refused", "slots used",
)  # fmt: skip


def rows(reports: Sequence[WorldReport]) -> list[tuple[str, ...]]:
    """A line a policy, for :data:`HEADINGS`: waits from due to start, of tenants that neither burst nor have
    a target that goes away, and of the others. Pure."""
    return [
        (
            report.policy,
            f"{report.wait(0.5, steady=True):.3f}",
            f"{report.wait(0.99, steady=True):.3f}",
            f"{report.wait(0.99, steady=False):.1f}",
            f"{report.total('succeeded'):,.0f}",
            f"{report.total('dead'):,.0f}",
            f"{report.total('refused'):,.0f}",
            f"{used(report):.0%}",
        )
        for report in reports
    ]


def used(report: WorldReport) -> float:
    """The part of the slots' time that jobs held."""
    return report.total("slot_seconds") / (report.world.provisioned * report.world.lasts)


def provisioning(world: World) -> dict[str, Any]:
    """The slots of three ways to provision; ``avoided``: what the peaks would need beyond the buffer."""
    return {
        "floors": world.floors,
        "provisioned": world.provisioned,
        "peaks": world.peaks,
        "avoided": 1.0 - world.provisioned / world.peaks if world.peaks > world.provisioned else 0.0,
    }


def plain(world: World, reports: Sequence[WorldReport], *, seed: int) -> dict[str, Any]:
    """All of it as one JSON document. Pure."""
    return {
        "world": {"name": world.name, "tenants": len(world.tenants), "lasts": world.lasts, "seed": seed},
        "slots": provisioning(world),
        "policies": [_plain(report) for report in reports],
    }


def picture(world: World, reports: Sequence[WorldReport]) -> str:
    """An SVG: what steady tenants wait, minute by minute, and the slots in use, one panel a policy. Pure."""
    most = float(world.provisioned)
    waits = [
        Panel(
            f"{report.policy}: p99 wait of steady tenants, s",
            [Line("steady tenants' p99 wait", _by_minute(report), COLOURS[0], 2.0)],
        )
        for report in reports
    ]
    slots = [
        Panel(
            f"{report.policy}: slots in use of {world.provisioned}",
            [Line("slots in use", report.used, COLOURS[2], 2.0)],
            top=most,
        )
        for report in reports
    ]
    title = (
        f"{world.name}: {len(world.tenants)} tenants, {world.provisioned} slots (all peaks: {world.peaks})"
    )
    return chart(title, [*waits, *slots], columns=len(reports), x="min")


def _by_minute(report: WorldReport) -> list[float]:
    return report.waits_by_minute(0.99)


def _plain(report: WorldReport) -> Mapping[str, Any]:
    return {
        "policy": report.policy,
        "steady_wait_p50": report.wait(0.5, steady=True),
        "steady_wait_p99": report.wait(0.99, steady=True),
        "others_wait_p99": report.wait(0.99, steady=False),
        "succeeded": int(report.total("succeeded")),
        "dead": int(report.total("dead")),
        "refused": int(report.total("refused")),
        "slots_used": used(report),
        "steady_wait_p99_by_minute": _by_minute(report),
        "slots_by_minute": list(report.used),
    }


__all__ = ["HEADINGS", "picture", "plain", "provisioning", "rows", "used"]
