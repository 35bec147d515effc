"""The contest drawn: what each target could serve, what each rule got out of it, how long calls took."""

from collections.abc import Callable, Mapping, Sequence

from tenantry.simulation.plot import COLOURS, GREY, Line, Panel, chart
from tenantry.simulation.shaping.lane import SLOW, LaneReport

EVERY = 3
"""Seconds that one point of a curve stands for."""


def goodput_chart(reports: Mapping[str, Mapping[str, LaneReport]]) -> str:
    """An SVG with a panel a target (of the reports by target, then rule): goodput over capacity. Pure."""
    panels = [
        Panel(target, [_capacity(by_rule), *_curves(by_rule, _goodput)], step=EVERY)
        for target, by_rule in reports.items()
    ]
    return chart("Calls a second that succeeded; grey: what the target could serve", panels)


def latency_chart(reports: Mapping[str, Mapping[str, LaneReport]]) -> str:
    """An SVG with a panel a target: the median latency over the reference, cut off at 3. Pure."""
    panels = [
        Panel(target, [_bound(by_rule), *_curves(by_rule, _latency)], step=EVERY, top=3.0)
        for target, by_rule in reports.items()
    ]
    return chart(f"Median latency over the reference; grey: not slow, up to {SLOW}; cut off at 3", panels)


def _curves(by_rule: Mapping[str, LaneReport], values: Callable[[LaneReport], Sequence[float]]) -> list[Line]:
    """Ours last, so that it lies on top, and the thickest."""
    names = list(by_rule)
    lines = [
        Line(name, values(report), COLOURS[place], 2.4 if name == "ours" else 1.0)
        for place, (name, report) in enumerate(by_rule.items())
    ]
    return sorted(lines, key=lambda line: (line.name == "ours", names.index(line.name)))


def _capacity(by_rule: Mapping[str, LaneReport]) -> Line:
    report = next(iter(by_rule.values()))
    middles = [at + EVERY / 2 for at in range(0, int(report.until), EVERY)]
    return Line("capacity", [report.model.rate_at(at) for at in middles], "#dddddd", area=True)


def _bound(by_rule: Mapping[str, LaneReport]) -> Line:
    report = next(iter(by_rule.values()))
    return Line("not slow", [SLOW] * len(range(0, int(report.until), EVERY)), GREY + "55", area=True)


def _goodput(report: LaneReport) -> Sequence[float]:
    return [report.rate(at, at + EVERY) for at in range(0, int(report.until), EVERY)]


def _latency(report: LaneReport) -> Sequence[float]:
    """0 where nothing succeeded."""
    times = range(0, int(report.until), EVERY)
    return [report.latency(0.5, at, at + EVERY) / report.model.reference for at in times]
