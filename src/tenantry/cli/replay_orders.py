"""Orders for replays: start, pause, resume, continue, cancel, budget."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import command
from tenantry.cli.output import Output
from tenantry.cli.replay_app import OneReplay, app, with_replays
from tenantry.cli.replay_looks import check_watchable, follow, record_out, show_record
from tenantry.kernel.errors import UsageError

if TYPE_CHECKING:
    from tenantry.kernel.tenant import TenantId
    from tenantry.replay.desk import ReplayService
    from tenantry.replay.model import ReplayId, ReplayView
    from tenantry.replay.progress import Progress


@dataclass(frozen=True, kw_only=True)
class StartOptions(OneReplay):
    """How."""

    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show its progress until it ends or is held; --json: lines.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class BudgetOptions(OneReplay):
    """What it may use; what is left out stays as it is."""

    messages: Annotated[int | None, typer.Option(min=1, help="Messages taken at most.")] = None
    failures: Annotated[int | None, typer.Option(min=1, help="Dead and parked at most.")] = None
    running: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds of running at most; held and paused time does not count."),
    ] = None
    until: Annotated[str | None, typer.Option(metavar="TIME", help="A deadline: 2026-12-01T06:00:00Z.")] = (
        None
    )
    none: Annotated[bool, typer.Option("--none", help="No budget at all.")] = False


_Order = Callable[["ReplayService", "TenantId", "ReplayId"], "Awaitable[ReplayView]"]


@command(app, "start", StartOptions)
def start(options: StartOptions) -> None:
    """Run a plan. Where the tenant has its most replays running already, it waits for a place."""
    if options.watch:
        check_watchable(Output.of(options))  # before anything is started
    _give(options, lambda replays, tenant, replay: replays.start(tenant, replay))
    if options.watch:
        follow(options, until_held=True)


@command(app, "pause", OneReplay)
def pause(options: OneReplay) -> None:
    """Start nothing more of it until it is resumed; what is in flight ends."""
    _give(options, lambda replays, tenant, replay: replays.pause(tenant, replay))


@command(app, "resume", OneReplay)
def resume(options: OneReplay) -> None:
    """End a pause."""
    _give(options, lambda replays, tenant, replay: replays.resume(tenant, replay))


@command(app, "continue", OneReplay)
def proceed(options: OneReplay) -> None:
    """Let a held replay go on: after its sample, after poison was looked at."""
    _give(options, lambda replays, tenant, replay: replays.proceed(tenant, replay))


@command(app, "cancel", OneReplay)
def cancel(options: OneReplay) -> None:
    """Take no more. What waits returns to the tenant's dead letters; what is in flight ends."""
    _give(options, lambda replays, tenant, replay: replays.cancel(tenant, replay))


@command(app, "budget", BudgetOptions)
def budget(options: BudgetOptions) -> None:
    """Another budget. One that the old budget held goes on where the new one has room."""
    from tenantry.kernel.instant import Timestamp
    from tenantry.replay.model import Budget
    from tenantry.replay.specs import decode_spec

    given = (options.messages, options.failures, options.running, options.until)
    if options.none == any(each is not None for each in given):
        raise UsageError("say what the budget is: --messages, --failures, --running or --until; or --none")

    async def change(replays: "ReplayService", tenant: "TenantId", replay: "ReplayId") -> "ReplayView":
        old = (await replays.replay(tenant, replay)).spec.budget
        until: Timestamp | None = None
        if options.until is not None:
            asked = {"source": {"kind": "dead_letters"}, "budget": {"until": options.until}}
            until = decode_spec(tenant, asked).budget.until
        new = (
            Budget()
            if options.none
            else replace(
                old,
                messages=options.messages if options.messages is not None else old.messages,
                failures=options.failures if options.failures is not None else old.failures,
                running_for=options.running if options.running is not None else old.running_for,
                until=until if until is not None else old.until,
            )
        )
        return await replays.rebudget(tenant, replay, new)

    _give(options, change)


def _give(options: OneReplay, order: _Order) -> None:
    from tenantry.replay.model import ReplayId

    async def do(replays: "ReplayService", tenant: "TenantId") -> "Progress":
        return replays.progress_of(await order(replays, tenant, ReplayId(options.replay)))

    output, record = Output.of(options), with_replays(options, do)
    output.data(record_out(record))
    show_record(output, record)
