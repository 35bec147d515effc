"""Looking at replays: the list, one's progress, and its progress as it goes."""

import sys
from asyncio import sleep as wait_for
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenantry.cli.desk_runs import at_desk
from tenantry.cli.options import OnDatabase, command
from tenantry.cli.output import Output, moment
from tenantry.cli.replay_app import OneReplay, app, service, with_replays
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from tenantry.cli.desk import Desk
    from tenantry.kernel.tenant import TenantId
    from tenantry.replay.desk import ReplayService
    from tenantry.replay.model import HoldRule, ReplayState
    from tenantry.replay.progress import Progress


@dataclass(frozen=True, kw_only=True)
class ListOptions(OnDatabase):
    """Which replays."""

    tenant: Annotated[str | None, typer.Option("--tenant", "-t", help="Only this tenant's.")] = None
    state: Annotated[list[str] | None, typer.Option(help="Only those in this state; again for more.")] = None
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="At most so many, the newest first.")] = 50


@dataclass(frozen=True, kw_only=True)
class WatchOptions(OneReplay):
    """How often."""

    every: Annotated[float, typer.Option(min=0.2, max=3_600, help="Seconds between two looks.")] = 1.0


@command(app, "list", ListOptions)
def list_replays(options: ListOptions) -> None:
    """Replays and plans, the newest first: state, progress, rate and what is left."""
    states = _states(options.state)

    async def look(desk: "Desk") -> "list[Progress]":
        replays = service(desk, None)
        tenant = None if options.tenant is None else desk.known(options.tenant)
        found = await replays.replays(tenant, states=states, limit=options.limit)
        return [replays.progress_of(each) for each in found]

    output, found = Output.of(options), at_desk(options, look)
    output.data([record_out(each) for each in found])
    output.table(("replay", "tenant", "phase", "done", "of", "done/s", "left"), map(_cells, found))
    if not found:
        output.line("None. `tenantry replay plan -t TENANT` makes one of the tenant's dead letters.")
    elif len(found) == options.limit:
        output.note(f"The newest {options.limit}.")


@command(app, "status", OneReplay)
def status(options: OneReplay) -> None:
    """Where one replay is: phase, counts that add up, rate and its trend, what is left as a range."""
    output, record = Output.of(options), _record(options)
    output.data(record_out(record))
    show_record(output, record)


@command(app, "watch", WatchOptions)
def watch(options: WatchOptions) -> None:
    """The progress of one replay, until it has ended; with --json a line each time."""
    follow(options, every=options.every)


def check_watchable(output: Output) -> None:
    """Raises :class:`~tenantry.kernel.errors.UsageError` where nobody could see what changes."""
    if not output.json and not sys.stdout.isatty():
        raise UsageError("watching needs a terminal; with --json it prints a line of JSON each time instead")


def follow(options: OneReplay, *, every: float = 1.0, until_held: bool = False) -> None:
    """Show it until it has ended, or, with ``until_held``, is held and waits for a person."""
    from tenantry.replay.progress import Phase

    output = Output.of(options)
    check_watchable(output)

    def is_over(record: "Progress") -> bool:
        waits = record.phase is Phase.HELD and record.hold is not None and record.hold.frees_at is None
        return record.phase in {Phase.FINISHED, Phase.CANCELLED} or (until_held and waits)

    async def look(replays: "ReplayService", tenant: "TenantId") -> "Progress":
        from tenantry.replay.model import ReplayId

        with _screen(output) as show:
            while True:
                record = await replays.progress(tenant, ReplayId(options.replay))
                show(record)
                if is_over(record):
                    return record
                await wait_for(every)

    record = with_replays(options, look)
    if not output.json:
        show_record(output, record)


def show_record(output: Output, record: "Progress") -> None:
    """The record in lines of text, and what can be done next."""
    from tenantry.replay.progress import lines

    for number, line in enumerate(lines(record)):
        output.line(output.styled(line, "bold") if number == 0 else line)
    following = _next(record)
    if following:
        output.note(following)


def record_out(record: "Progress") -> Any:
    """The record as JSON has it: the same that the API sends."""
    import msgspec

    return msgspec.to_builtins(record)


def _next(record: "Progress") -> str:
    from tenantry.replay.progress import Phase

    named = f"-t {record.tenant} {record.replay}"
    if record.phase is Phase.PLANNING:
        return f"To run it: tenantry replay start {named}"
    if record.phase is Phase.PAUSED:
        return f"To go on: tenantry replay resume {named}"
    if record.phase is Phase.HELD and record.hold is not None and record.hold.frees_at is None:
        return _freeing(record.hold.rule, record, named)
    if record.counts.parked:
        which = f"-t {record.tenant} --replay {record.replay}"
        return f"To look at what is parked: tenantry replay parked list {which}"
    return ""


def _freeing(rule: "HoldRule", record: "Progress", named: str) -> str:
    from tenantry.replay.model import HoldRule

    if rule is HoldRule.BUDGET:  # after `continue` alone it would be held again at once
        return f"To go on: tenantry replay budget {named} --messages N (--failures, --running, --until)"
    if rule is HoldRule.CONCURRENCY:
        return f"It starts by itself. What is before it: tenantry replay list -t {record.tenant}"
    return f"To go on: tenantry replay continue {named}"


def _record(options: OneReplay) -> "Progress":
    from tenantry.replay.model import ReplayId

    async def look(replays: "ReplayService", tenant: "TenantId") -> "Progress":
        return await replays.progress(tenant, ReplayId(options.replay))

    return with_replays(options, look)


def _states(given: list[str] | None) -> "frozenset[ReplayState] | None":
    from tenantry.replay.model import ReplayState

    if not given:
        return None
    for each in given:
        if each not in set(ReplayState):
            raise InvalidValue("--state", each, ", ".join(ReplayState))
    return frozenset(map(ReplayState, given))


def _cells(record: "Progress") -> tuple[object, ...]:
    from tenantry.replay.progress import span

    of = "" if record.total is None else f"{'' if record.counted_exactly else '~'}{record.total:,}"
    left = f"{span(record.eta.low)} to {span(record.eta.high)}" if record.eta else ""
    rate = f"{record.rate:,.1f}" if record.rate else ""
    return record.replay, record.tenant, record.phase.value, record.done, of, rate, left


@contextmanager
def _screen(output: Output) -> "Iterator[Callable[[Progress], None]]":
    """Yields what shows a record: a bar and its lines on a terminal, a line of JSON for machines."""
    if output.json:
        yield lambda record: output.data(record_out(record))
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    from tenantry.replay.progress import lines

    console = Console(no_color=not output.colour)
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def show(record: "Progress") -> None:
            text = lines(record)
            bar = ProgressBar(total=record.total, completed=record.done, pulse=record.total is None)
            seen = Text(f"as it was at {moment(record.at)}", "dim")
            live.update(Group(Text(text[0], "bold"), bar, *map(Text, text[1:]), seen), refresh=True)

        yield show
