"""What is seen of the incident while it runs."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tenantry.cli.demo.figures import percentile
from tenantry.cli.demo.incident.cast import SLOTS, Kind, Party
from tenantry.cli.demo.incident.record import BYSTANDERS, Chapter, Incident
from tenantry.cli.demo.screen import COLOURS, duration
from tenantry.cli.demo.summary import named
from tenantry.kernel.instant import Instant, Seconds
from tenantry.replay.progress import Progress

ODD = {Kind.LARGE: "yellow", Kind.HOLE: "red", Kind.POISON: "bright_red"}

_RECENT: Seconds = 5.0
_BAR = 14
_PHASES = 24
_SHORT = {"waiting for share": "waiting"}
_Row = tuple[str, str, list[Party]]


class Moment:
    """One moment of the incident, as a picture and as a line."""

    def __init__(self, incident: Incident) -> None:
        self._incident, self.elapsed = incident, incident.elapsed

    def frame(self) -> RenderableType:
        parts: list[RenderableType] = [Text(), self._title(), self._story(), Text(), self._slots()]
        return Group(*parts, Text(), self._table(), Text(), self._live(), *self._why(), Text())

    def line(self) -> str:
        """For a log."""
        incident = self._incident
        replays = incident.progress.values()
        ended = sum(incident.all_ended([party]) for party in incident.replaying)
        delivered = sum(each.counts.delivered for each in replays)
        rate = sum(each.rate for each in replays if not incident.all_ended(self._party(each)))
        return (
            f"{self.elapsed:.0f} s, {incident.chapter}: {sum(incident.ledger.dead.values()):,} died, "
            f"{delivered:,} replayed at {rate:,.0f}/s, {ended} of {len(incident.replaying)} replays ended; "
            f"live p99 wait {duration(self._p99())}"
        )

    def _party(self, seen: Progress) -> list[Party]:
        return [party for party in self._incident.parties if party.tenant == seen.tenant]

    def _title(self) -> Text:
        text = Text("  Tenantry  ", "bold")
        return text.append(f"50 tenants · {SLOTS} slots · one dependency · {self.elapsed:.0f} s", "dim")

    def _story(self) -> Text:
        down = self._incident.chapter is Chapter.DOWN
        return Text(f"  {self._incident.chapter}", "bold red" if down else "bold")

    def _slots(self) -> Text:
        """Who holds the slots now, one sign each."""
        text, left = Text("  "), SLOTS
        for name, colour, parties in self._rows():
            held = min(left, sum(self._incident.ledger.running[party.tenant] for party in parties))
            text.append(f"{name[0].upper() if parties[0].kind in ODD else name[0]}" * held, f"bold {colour}")
            left -= held
        return text.append("·" * left, "dim")

    def _rows(self) -> list[_Row]:
        ordinary = self._incident.of(Kind.ORDINARY)
        tiers = [
            (tier, colour, [party for party in ordinary if party.tier == tier])
            for tier, colour in COLOURS.items()
        ]
        return tiers + [(kind.value, colour, self._incident.of(kind)) for kind, colour in ODD.items()]

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
        table.add_column("  tenants", no_wrap=True, min_width=17)
        table.add_column("died", justify="right", no_wrap=True, min_width=6)
        table.add_column("replayed", no_wrap=True, min_width=_BAR)
        table.add_column("", justify="right", no_wrap=True, min_width=5)
        table.add_column("per s", justify="right", no_wrap=True, min_width=5)
        table.add_column("replays", no_wrap=True, min_width=_PHASES)
        for name, colour, parties in self._rows():
            table.add_row(*self._row(name, parties), style=colour)
        return table

    def _row(self, name: str, parties: Sequence[Party]) -> Iterable[str]:
        incident = self._incident
        replays = [incident.progress[p.tenant] for p in parties if p.tenant in incident.progress]
        done = sum(each.counts.delivered for each in replays)
        running = [each for each in replays if each.counts.unended]
        return (
            f"{len(parties):>4} {name}",
            f"{sum(incident.ledger.dead[party.tenant] for party in parties):,}",
            _bar(done, sum(party.letters for party in parties)),
            f"{done:,}",
            f"{sum(each.rate for each in running):,.0f}" if replays else "",
            _phases(replays),
        )

    def _live(self) -> Text:
        incident = self._incident
        before = percentile(incident.live_waits(BYSTANDERS, before=True), 99)
        text = Text("  ten bystanders' live work  ", "dim").append(
            f"p99 wait before {duration(before)}", "bold"
        )
        if Chapter.REPLAYING in incident.marks:
            during = percentile(incident.live_waits(BYSTANDERS, before=False), 99)
            text.append(f"  ·  while replays run {duration(during)}", "bold")
        return text

    def _p99(self) -> Seconds | None:
        """Of late."""
        clock, ledger = self._incident.clock, self._incident.ledger
        waits = ledger.waits(since=Instant(clock.monotonic() - _RECENT))
        return percentile([wait for _, wait in waits], 99)

    def _why(self) -> Iterable[RenderableType]:
        for party in self._incident.of(Kind.POISON):
            seen = self._incident.progress.get(party.tenant)
            if seen is not None and seen.hold is not None:
                yield named("poison", f"{party.tenant} stopped itself: {seen.hold.reason}")


def _bar(done: int, whole: int) -> str:
    full = int(_BAR * done / whole) if whole else 0
    return "━" * full + "┄" * (_BAR - full)


def _phases(replays: Sequence[Progress]) -> str:
    """How many are in which phase, the most first."""
    phases = Counter(_SHORT.get(each.phase.value, each.phase.value) for each in replays)
    if len(replays) == 1:
        return next(iter(phases))
    return ", ".join(f"{count} {phase}" for phase, count in phases.most_common(2))
