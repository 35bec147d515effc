"""The last words: a table for people, the same figures as JSON for machines."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tenantry.cli.demo.figures import Figures, Group
from tenantry.cli.demo.scenario import BURST_JOBS, SLOTS, Member
from tenantry.cli.demo.screen import BURST, COLOURS, duration
from tenantry.queue.model import JobState


def as_json(document: dict[str, Any]) -> bytes:
    """One JSON object, for people too. Pure."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def document(found: Figures) -> dict[str, Any]:
    """The figures as a JSON object; durations in seconds, shares in [0, 1]. Pure."""
    books = found.books
    return {
        "accepted": books.accepted,
        "refused": found.refused,
        "delivered": books.ends.get(JobState.DELIVERED, 0),
        "dead": books.ends.get(JobState.DEAD, 0),
        "parked": 0,  # nothing parks yet
        "lost": books.lost,
        "faults_in_the_books": books.faults,
        "jain": found.jain,
        "smallest_share_over_floor": found.over_floor,
        "measured_tenants": found.measured,
        "measured_for": found.measured_for,
        "ran_for": found.ran_for,
        "fifo_p99": found.fifo_p99,
        "below_share_p99_before_burst": found.before_burst,
        "below_share_p99_after_burst": found.after_burst,
        "tiers": {name: _group(each) for name, each in found.tiers.items()},
        "below_share": _group(found.within),
        "burst": _group(found.burst),
    }


def _group(group: Group) -> dict[str, Any]:
    plain = asdict(group)
    return {**{key: value for key, value in plain.items() if key != "waits"}, **plain["waits"]}


def print_summary(console: Console, found: Figures, burst: Member) -> None:
    """The table, and what it means."""
    console.print()
    console.print(Text("  The same load, shared fairly and through one line for all (FIFO)", "bold"))
    console.print()
    console.print(_table(found, burst))
    console.print()
    for name, sentence in _sentences(found, burst):
        console.print(named(name, sentence))


def print_next(console: Console) -> None:
    """What to do next."""
    console.print()
    for name, sentence in _next():
        console.print(named(name, sentence, width=25))


_HEADINGS = ("\ndelivered", "wait\np50", "\np99", "FIFO\np50", "\np99", "share\ngot", "\ndue")


def _table(found: Figures, burst: Member) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column("\n  tenants", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, group in found.tiers.items():
        table.add_row(*_row(f"{group.tenants:>4} {name}", group), style=COLOURS.get(name))
    table.add_row(*_row(f"   1 {burst.tenant} (burst)", found.burst), style=BURST, end_section=True)
    table.add_row(*_row(f"{found.within.tenants:>4} below share", found.within), style="bold")
    return table


def _row(name: str, group: Group) -> Iterable[str]:
    waits = group.waits
    times = (duration(each) for each in (waits.p50, waits.p99, waits.fifo_p50, waits.fifo_p99))
    shares = f"{group.share:.1%}", f"{group.entitled:.1%}"
    return (name, f"{group.delivered:,}", *times, *shares)


def _sentences(found: Figures, burst: Member) -> Iterable[tuple[str, str]]:
    books, within = found.books, found.within
    yield (
        "burst",
        f"{burst.tenant} submitted {BURST_JOBS:,} jobs at once. Over its bound it was refused, and came back "
        f"when it was told to. The {within.tenants} tenants of all tiers that ask for less than their share "
        f"waited {duration(found.before_burst)} (p99) before it and {duration(found.after_burst)} after it; "
        f"in one line for all, {duration(within.waits.fifo_p99)}.",
    )
    yield (
        "tiers",
        "mix tenants that ask for less than their share, who hardly wait, with those that ask for more and "
        "wait for themselves: compare the rows with FIFO and with due, not with each other.",
    )
    yield "shares", _shares(found)
    yield (
        "kept",
        f"{books.accepted:,} accepted, {books.ends.get(JobState.DELIVERED, 0):,} delivered, "
        f"{books.ends.get(JobState.DEAD, 0):,} dead, {books.lost:,} lost, by the store's books; "
        + (f"its audit found {len(books.faults)} faults." if books.faults else "its audit found no fault."),
    )
    yield (
        "FIFO",
        f"is computed, not run: the same arrivals and job lengths through one line over {SLOTS} slots, with "
        "the burst let in, and a queue that costs nothing.",
    )


def _shares(found: Figures) -> str:
    if found.jain is None or found.over_floor is None:
        return "the load was too short to measure shares; try more --seconds."
    return (
        f"of the {found.measured} tenants that had work in line at every moment of the last "
        f"{found.measured_for:.0f} s: Jain index {found.jain:.4f} of share over entitlement (1 is exact), "
        f"smallest share {found.over_floor:.2f} × its floor."
    )


def _next() -> Iterable[tuple[str, str]]:
    yield "next: tenantry up", "the same on this machine, for your own jobs"
    yield "      docs/quickstart.md", "from there to your first delivery"
    yield "      docs/demo.md", "what you have just seen, and how it was measured"


def named(name: str, sentence: str, *, width: int = 8) -> Table:
    """A sentence beside its name."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=width + 1, style="dim", no_wrap=True)
    grid.add_column(overflow="fold", max_width=100)
    grid.add_row(f"  {name}"[: width + 2], sentence)
    return grid
