"""Shapers against targets, in virtual time: one lane with work without end, one target, one rule.

The rule under test is the product's own code (:mod:`tenantry.lanes.shaper`), or one of five published rules
to compare with. ``targets``: what a target is like; ``lane``: the loop and the score; ``ours`` and
``published``: the rules; ``contest``: all of them on nine targets; ``pictures``: drawn.
"""

from tenantry.simulation.shaping.contest import RULES, TARGETS, Scored, markdown, played, scored, verdict
from tenantry.simulation.shaping.lane import Ending, LaneReport, Rule, run_lane
from tenantry.simulation.shaping.ours import Ours
from tenantry.simulation.shaping.pictures import goodput_chart, latency_chart
from tenantry.simulation.shaping.targets import Spell, TargetModel

__all__ = [
    "RULES",
    "TARGETS",
    "Ending",
    "LaneReport",
    "Ours",
    "Rule",
    "Scored",
    "Spell",
    "TargetModel",
    "goodput_chart",
    "latency_chart",
    "markdown",
    "played",
    "run_lane",
    "scored",
    "verdict",
]
