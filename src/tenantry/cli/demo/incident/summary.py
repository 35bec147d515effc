"""The second act's last words: a table for people, the same figures for machines."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tenantry.cli.demo.incident.cast import SLOTS, Kind
from tenantry.cli.demo.incident.figures import Drained, Found, Live, Odd
from tenantry.cli.demo.screen import COLOURS, duration
from tenantry.cli.demo.summary import named
from tenantry.queue.model import JobState


def incident_document(found: Found) -> dict[str, Any]:
    """The figures as a JSON object; durations in seconds, shares in [0, 1]. Pure."""
    account = found.account
    return {
        "dead_letters": found.died,
        "accepted": account.accepted,
        "delivered": account.ends.get(JobState.DELIVERED, 0),
        "dead": account.ends.get(JobState.DEAD, 0),
        "parked": account.parked,
        "lost": account.lost,
        "faults_in_the_books": account.faults,
        "delivered_twice": found.twice,
        "tiers": {name: asdict(each) for name, each in found.tiers.items()},
        **{kind.name.lower(): asdict(each) for kind, each in found.odd.items()},
        "smallest_share_over_floor": found.over_floor,
        "live_p99": {name: asdict(each) for name, each in found.live.items()},
        "replayed_for": found.replayed_for,
        "ran_for": found.ran_for,
        "promises": {promise.law: promise.kept for promise in found.promises},
    }


def print_incident(console: Console, found: Found) -> None:
    """The table, what it means, and which promises held."""
    console.print()
    console.print(Text("  Fifty replays at once, after what they all depend on had failed", "bold"))
    console.print()
    console.print(_table(found))
    console.print()
    for name, sentence in _sentences(found):
        console.print(named(name, sentence))
    console.print()
    for promise in found.promises:
        sign, style = ("kept", "green") if promise.kept else ("BROKEN", "bold red")
        console.print(named(sign, promise.law), style=style)


_HEADINGS = (
    *("dead\nletters", "drained\nin", "\nslowest", "target's\nown limit", "fluid\nschedule"),
    *("share\ngot", "\ndue"),
)


def _table(found: Found) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column("\n  tenants", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, group in found.tiers.items():
        table.add_row(*_row(f"{group.tenants:>4} {name}", group), style=COLOURS.get(name))
    return table


def _row(name: str, group: Drained) -> Iterable[str]:
    times = (duration(each) for each in (group.took, group.slowest, group.alone, group.fluid))
    return (name, f"{group.letters:,}", *times, f"{group.share:.1%}", f"{group.due:.1%}")


def _sentences(found: Found) -> Iterable[tuple[str, str]]:
    account, odd = found.account, found.odd
    yield (
        "drained",
        "medians, from the start of a replay to its end; beside what the backlog takes at its target's own "
        "limit, and when it would end if slots and targets were a fluid that is shared without any delay.",
    )
    if found.over_floor is not None:
        yield (
            "shares",
            f"of {SLOTS} slots, until the first replay ended, what lanes took to find out how much their "
            f"targets can do included; the smallest was {found.over_floor:.2f} × its floor.",
        )
    yield "large", _large(odd[Kind.LARGE], found.replayed_for)
    yield "hole", _hole(odd[Kind.HOLE])
    yield "poison", _poison(odd[Kind.POISON])
    yield "live", _live(found)
    yield (
        "books",
        f"{account.accepted:,} accepted; {account.ends.get(JobState.DELIVERED, 0):,} delivered, "
        f"{found.twice:,} of them twice, {account.ends.get(JobState.DEAD, 0):,} dead letters again or still, "
        f"{account.parked:,} parked, {account.lost:,} lost, by the store's books; "
        + (
            f"its audit found {len(account.faults)} faults."
            if account.faults
            else "its audit found no fault."
        ),
    )


def _large(odd: Odd, lasted: float) -> str:
    return (
        f"{odd.tenant} has {odd.letters:,} dead letters. It had {odd.share:.1%} of the slots and was "
        f"{odd.stopped} when all others had ended: {odd.delivered:,} delivered in {lasted:.1f} s. The demo "
        f"cancelled it; {odd.kept:,} are dead letters again or still, to be replayed another time."
    )


def _hole(odd: Odd) -> str:
    return (
        f"{odd.tenant}'s target takes calls and never answers. It held {odd.share:.1%} of the slots, where "
        f"{odd.due:.1%} would be its share; {odd.delivered} delivered, {odd.kept} of {odd.letters} are kept."
    )


def _poison(odd: Odd) -> str:
    why = f"it says: {odd.why}" if odd.why else "it gave no reason"
    return (
        f"{odd.tenant}'s replay was {odd.stopped}; {why}. {odd.parked} are parked, {odd.kept} were not tried."
    )


def _live(found: Found) -> str:
    by, own = found.live["bystanders"], found.live["with_a_replay"]
    return (
        f"p99 wait for a slot, of bystanders {_pair(by)}; of tenants with a replay of their own {_pair(own)}."
    )


def _pair(live: Live) -> str:
    return (
        f"{duration(live.before)} before ({live.jobs_before:,} jobs) and {duration(live.during)} while "
        f"replays ran ({live.jobs_during:,})"
    )
