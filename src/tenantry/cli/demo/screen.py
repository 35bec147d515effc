"""What is seen while it runs: a live table on a terminal, plain lines anywhere else."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tenantry.cli.demo.figures import percentile
from tenantry.cli.demo.scenario import BURST_JOBS, SLOTS, Member, Timeline
from tenantry.cli.demo.tally import RECENT, Account, Tally
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.instant import Seconds

if TYPE_CHECKING:
    from tenantry.cli.demo import DemoOptions

COLOURS = {"critical": "magenta", "enterprise": "blue", "standard": "cyan", "free": "green"}
BURST = "red"

_FRAME_EVERY: Seconds = 0.2
_LINE_EVERY: Seconds = 5.0
_BAR = 48


@dataclass(frozen=True, slots=True)
class View:
    """One moment: ``elapsed`` seconds of the load."""

    tally: Tally
    timeline: Timeline
    elapsed: Seconds
    burst: Member

    def groups(self) -> list[tuple[str, str, list[Account]]]:
        """Name, colour, accounts: the tiers from the heaviest down, without the burster, then the burster."""
        accounts = self.tally.accounts.values()
        found = [
            (tier, colour, [a for a in accounts if a.member.tier == tier and a.member is not self.burst])
            for tier, colour in COLOURS.items()
        ]
        return [*found, (self.burst.tenant, BURST, [self.tally.accounts[self.burst.tenant]])]

    def frame(self) -> RenderableType:
        return frame(self)

    def line(self) -> str:
        return line(self)

    @property
    def bursting(self) -> bool:
        return self.tally.burst_at is not None

    @property
    def seconds(self) -> str:
        return f"{min(self.elapsed, self.timeline.seconds):.0f} s of {self.timeline.seconds:.0f} s"

    def story(self) -> str:
        """What is going on, in a sentence."""
        if self.elapsed >= self.timeline.seconds:
            return f"the clients have stopped; {self.tally.unended():,} accepted jobs are still to deliver"
        if self.bursting:
            return f"{self.burst.tenant} has submitted {BURST_JOBS:,} jobs at once; its bound is 200"
        return "ordinary load: the largest tenants want more than their share"


class Picture(Protocol):
    """One moment of one act, ``elapsed`` seconds after its beginning."""

    @property
    def elapsed(self) -> Seconds: ...

    def frame(self) -> RenderableType: ...

    def line(self) -> str: ...


class Screen(Protocol):
    """Where the demo is seen."""

    def note(self, text: str) -> None: ...

    def show(self, view: Picture) -> None: ...


@contextmanager
def screen(options: "DemoOptions") -> Iterator[Screen]:
    """The live table where standard output is a terminal, else lines."""
    found = console(options)
    if not found.is_terminal or found.is_dumb_terminal:
        yield Lines()
        return
    with Live(console=found, auto_refresh=False, transient=True) as live:
        yield Frames(live)


def console(options: "DemoOptions") -> Console:
    """Standard output, coloured where nobody said no (https://no-color.org)."""
    plain = options.no_color or bool(os.environ.get("NO_COLOR"))
    return Console(file=sys.stdout, no_color=plain, highlight=False)


class Frames:
    """The live table, five times a second."""

    def __init__(self, live: Live) -> None:
        self._live, self._clock, self._next = live, SystemClock(), 0.0

    def note(self, text: str) -> None:
        self._live.update(Text(f"\n  {text} …\n", "dim"), refresh=True)

    def show(self, view: Picture) -> None:
        if self._clock.monotonic() >= self._next:
            self._next = self._clock.monotonic() + _FRAME_EVERY
            self._live.update(view.frame(), refresh=True)


class Lines:
    """A line every five seconds."""

    def __init__(self) -> None:
        self._next = 0.0

    def note(self, text: str) -> None:
        print(f"{text} …", flush=True)

    def show(self, view: Picture) -> None:
        if view.elapsed >= self._next:
            self._next += _LINE_EVERY
            print(view.line(), flush=True)


def frame(view: View) -> RenderableType:
    """The whole picture of one moment."""
    parts: list[RenderableType] = [
        Text(),
        _title(),
        _bar(view),
        Text(),
        _slots(view),
        Text(),
        _table(view),
        Text(),
        _foot(view),
    ]
    return Group(*parts, Text())


def line(view: View) -> str:
    """One moment for a log."""
    told = (f"{name} {_p99(accounts)}" for name, _, accounts in view.groups())
    accounts = view.tally.accounts.values()
    waiting, rate = sum(a.waiting for a in accounts), _rate(accounts)
    return f"{view.seconds}: {waiting:,} waiting, {rate:,.0f} delivered/s; p99 wait: {', '.join(told)}"


def duration(seconds: Seconds | None) -> str:
    """Three digits: ``24 ms``, ``1.31 s``, ``48.2 s``, ``131 s``."""
    if seconds is None:
        return "–"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    digits = 2 if seconds < 9.995 else 1 if seconds < 99.95 else 0
    return f"{seconds:,.{digits}f} s"


def _title() -> Text:
    text = Text("  Tenantry  ", "bold")
    return text.append(f"50 tenants · {SLOTS} slots · PostgreSQL · signed webhooks to loopback", "dim")


def _bar(view: View) -> Text:
    done = min(_BAR, int(_BAR * view.elapsed / view.timeline.seconds))
    burst = int(_BAR * view.timeline.burst_at / view.timeline.seconds)
    text = Text("  ")
    for place in range(_BAR):
        sign = "▲" if place == burst else "━"
        text.append(sign, BURST if place == burst else "bold" if place < done else "dim")
    return text.append(f"  {view.seconds}")


def _slots(view: View) -> Text:
    """Who holds the slots now, one sign each."""
    text, left = Text("  slots  "), SLOTS
    for name, colour, accounts in view.groups():
        held = min(left, sum(a.running for a in accounts))
        sign = "!" if name == view.burst.tenant else name[0]
        text.append(f"{sign} " * held, f"bold {colour}")
        left -= held
    return text.append("· " * left, "dim")


def _table(view: View) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column("  tenants", no_wrap=True, min_width=18)
    for heading in ("waiting", "running", "delivered/s", "p99 wait", "refusals"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=7)
    for name, colour, accounts in view.groups():
        label = f"{name} (burst)" if name == view.burst.tenant else name
        table.add_row(*_row(f"{len(accounts):>4} {label}", accounts), style=colour)
    below = [a for a in view.tally.accounts.values() if a.member.within and a.member is not view.burst]
    table.add_row()
    table.add_row(*_row(f"{len(below):>4} below share", below), style="bold")
    return table


def _row(name: str, accounts: list[Account]) -> Iterable[str]:
    return (
        name,
        f"{sum(a.waiting for a in accounts):,}",
        f"{sum(a.running for a in accounts):,}",
        f"{_rate(accounts):,.1f}",
        _p99(accounts),
        f"{sum(a.refused for a in accounts):,}",
    )


def _foot(view: View) -> Text:
    text = Text(f"  {view.story()}\n", BURST if view.bursting else "")
    return text.append("  below share: tenants of all tiers that ask for less than their share", "dim")


def _rate(accounts: Iterable[Account]) -> float:
    return sum(len(a.recent_ends) for a in accounts) / RECENT


def _p99(accounts: Iterable[Account]) -> str:
    return duration(percentile([wait for a in accounts for _, wait in a.recent_waits], 99))
