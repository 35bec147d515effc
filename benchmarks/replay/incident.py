"""Everybody replays at once, in virtual time, call by call: 300 replays, 5 million messages in one of them.

The yardstick is the fluid schedule of the same targets and slots (:mod:`tenantry.simulation.fluid`), which
discovers nothing, divides slots without end and knows no round trips. What is simulated and what is not is
told in :mod:`tenantry.simulation.incident.run`. The full form takes ten minutes.
"""

import time

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured
from tenantry.simulation.incident import IncidentRun, Judged, Scale, mass_incident

QUICK = True
"""Whether it runs in a quick run too."""

FULL = Scale(replays=300, bystanders=20, slots=2_000, median=8_000, largest=5_000_000)
SHORT = Scale(replays=24, bystanders=6, slots=120, median=600, largest=30_000)


async def run(context: Context) -> None:
    """One incident of one seed: what it comes to is the same on every machine."""
    incident = mass_incident(SHORT if context.quick else FULL)
    context.say(f"incident: {incident.name}, {incident.messages:,} messages, {incident.slots} slots")
    began = time.perf_counter()
    judged = Judged(IncidentRun(incident).run())
    took = Measured(f"{incident.messages:,} messages, simulated", "s", "lower")
    took.add(OURS, time.perf_counter() - began)
    context.judge(*ends(judged), *shares(judged), *live(judged), *foretold(judged), took)


def ends(judged: Judged) -> list[Measured]:
    """When replays ended."""
    most = Measured("end over the fluid end, a minute and more, at most", "×", "lower", Goal(at_most=1.1))
    most.add(OURS, judged.long[-1])
    middle = Measured(f"the same, median of {len(judged.long)}", "×", "lower")
    middle.add(OURS, judged.long[len(judged.long) // 2])
    late = Measured("replays of less than a minute: later than fluid, at most", "s", "lower")
    late.add(OURS, judged.late)
    return [most, middle, late]


def shares(judged: Judged) -> list[Measured]:
    """Who got what."""
    floor = Measured("the floor over the smallest share", "×", "lower", Goal(at_most=1.0))
    floor.add(OURS, 1.0 / judged.least_share)
    window = Measured("the floor over the smallest share in any 10 s", "×", "lower", Goal(at_most=1.0))
    window.add(OURS, 1.0 / judged.least_window)
    found = [floor, window]
    for tier in judged.tiers:
        behind = Measured(
            f"{tier.tier} tier, drained by fluid over by ours at {judged.looked_at} s",
            "×",
            "lower",
            Goal(at_most=1.1),
        )
        behind.add(OURS, tier.due / tier.drained)
        found.append(behind)
    holes = Measured("slots that the black hole held, mean", "slots", "lower")
    holes.add(OURS, judged.held_by_holes)
    return [*found, holes]


def live(judged: Judged) -> list[Measured]:
    """What live work noticed: until half of the replays had ended, over before."""
    seconds = Measured("live p99 from submit to answer, over before", "×", "lower", Goal(at_most=1.3))
    seconds.add(OURS, judged.live_seconds(during=True) / judged.live_seconds(during=False))
    found = [seconds]
    for who, own in (("who replay", True), ("who do not", False)):
        measured = Measured(f"live p99 over what a call takes, of those {who}, over before", "×", "lower")
        measured.add(OURS, judged.live(during=True, own=own) / judged.live(during=False, own=own))
        found.append(measured)
    return found


def foretold(judged: Judged) -> list[Measured]:
    """Whether the end of each was known, though its share changes whenever another one ends."""
    right, shown = judged.foretold
    missed = Measured("ranges without the true end, in the incident", "%", "lower", Goal(at_most=10.0))
    missed.add(OURS, 100.0 * (1.0 - right))
    silent = Measured("answers without a range, in the incident", "%", "lower")
    silent.add(OURS, 100.0 * (1.0 - shown))
    return [missed, silent]
