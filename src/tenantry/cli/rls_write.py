"""``tenantry rls plan`` and ``apply``: row policies from a declaration, written down or carried out."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import command
from tenantry.cli.output import Output, amount
from tenantry.cli.rls_app import OnDeclared, app, declaration_of, url_of
from tenantry.kernel.errors import UsageError

if TYPE_CHECKING:
    from tenantry.rls.apply import Applied, Blocked
    from tenantry.rls.plan import Plan
    from tenantry.rls.render import Step
    from tenantry.rls.script import Bounds

LockTimeout = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="No statement waits longer for a lock that others wait behind."),
]
HoldTimeout = Annotated[
    float, typer.Option(metavar="SECONDS", help="No statement that has such a lock runs longer.")
]
BuildTimeout = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="How long an index may wait for transactions older than itself."),
]
Attempts = Annotated[int, typer.Option(metavar="N", help="How often a step is tried that gets no lock.")]


class Form(StrEnum):
    """What a plan is written as."""

    SQL = "sql"
    ALEMBIC = "alembic"
    DJANGO = "django"


@dataclass(frozen=True, kw_only=True)
class PlanOptions(OnDeclared):
    """How the plan is written."""

    format: Annotated[Form, typer.Option(help="SQL for psql, or a migration.")] = Form.SQL
    down: Annotated[bool, typer.Option("--down", help="Write the way back instead (SQL only).")] = False
    after: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The migration it comes after: a revision, or app_label.name."),
    ] = None
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there.")] = None
    check: Annotated[bool, typer.Option("--check", help="Exit code 1 where anything is missing.")] = False
    lock_timeout: LockTimeout = 2.0
    hold_timeout: HoldTimeout = 5.0
    build_timeout: BuildTimeout = 600.0


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(OnDeclared):
    """How patient it is."""

    down: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="First write the way back there, as SQL; a file that is not yet."),
    ] = None
    lock_timeout: LockTimeout = 2.0
    hold_timeout: HoldTimeout = 5.0
    build_timeout: BuildTimeout = 600.0
    attempts: Attempts = 5


@command(app, "plan", PlanOptions)
def plan(options: PlanOptions) -> None:
    """Write what is missing for the declaration to hold: as SQL to review, or as a migration.

    Compares the declaration with what the database holds, and changes nothing. Once all was carried out the
    plan is empty. Exit code 1 where the declaration cannot be carried out as things stand.
    """
    from tenantry.cli.eventloop import run
    from tenantry.cli.partition_files import write

    bounds = _bounds(options)
    _refuse_idle_options(options)
    found, output = run(_planned(options)), Output.of(options)
    text = _written(found, options, bounds) if found.steps else ""
    output.data(_plan_data(found, text))
    _tell_objections(output, found)
    if found.steps and options.output is not None:
        write(options.output, text)
        output.line(f"Wrote {amount(len(found.steps), 'step')} to {options.output}.")
    elif found.steps:
        output.line(text.rstrip("\n"))
    elif not found.objections:
        output.line("Nothing is missing: the database is as declared.")
    for remark in found.remarks:
        output.note(f"note: {remark}")
    if found.objections or (options.check and found.steps):
        raise typer.Exit(1)


@command(app, "apply", ApplyOptions)
def apply(options: ApplyOptions) -> None:
    """Carry out what is missing, step by step, and never hold others up longer than --lock-timeout.

    A step is whole or not done. One that gets no lock is tried again, --attempts times in all, and then given
    up: exit code 1, with who holds the lock. Run it again at any time, also after it was killed: it plans
    afresh. Needs the login of the tables' owner; where roles are missing, one that may create them.
    """
    from tenantry.cli.eventloop import run

    output, bounds = Output.of(options), _bounds(options, options.attempts)
    if options.down is not None:
        _refuse_no_way_back(options.down)
    ended = run(_applied(options, bounds, output))
    output.data(_applied_data(ended))
    _tell_objections(output, ended.left)
    if ended.blocked is not None:
        _tell_blocked(output, ended.blocked)
    elif not ended.left.objections:
        output.line(f"{amount(len(ended.done), 'step')} carried out: the database is as declared.")
    if options.down is not None and not options.down.exists():
        output.line(f"{options.down} was not written: nothing was done that could be taken back.")
    for remark in ended.left.remarks:
        output.note(f"note: {remark}")
    if not ended.is_whole:
        raise typer.Exit(1)


def _refuse_idle_options(options: PlanOptions) -> None:
    """Options that nothing would read."""
    if options.down and options.format is not Form.SQL:
        raise UsageError(f"--down is for SQL: a migration for {options.format.value} holds both ways")
    if options.after is not None and options.format is Form.SQL:
        raise UsageError("--after is for migrations: give --format alembic or django with it")


def _bounds(options: PlanOptions | ApplyOptions, attempts: int = 1) -> "Bounds":
    from tenantry.rls.script import Bounds

    return Bounds(options.lock_timeout, options.build_timeout, attempts, hold=options.hold_timeout)


async def _planned(options: PlanOptions) -> "Plan":
    from tenantry.postgres.catalogue import PostgresCatalogue
    from tenantry.rls.plan import plan as planned

    declaration = declaration_of(options)
    return planned(declaration, await PostgresCatalogue(url_of(options)).facts())


def _written(found: "Plan", options: PlanOptions, bounds: "Bounds") -> str:
    from tenantry.rls.migrations import alembic_migration, django_migration
    from tenantry.rls.script import sql_file

    if options.format is Form.ALEMBIC:
        return alembic_migration(found, bounds, after=options.after)
    if options.format is Form.DJANGO:
        return django_migration(found, bounds, after=options.after)
    what = "Takes back" if options.down else "Row policies: what is missing for"
    heading = f"{what} {options.declaration.name}. Run it with: psql -v ON_ERROR_STOP=1 -f FILE"
    return sql_file(found.back if options.down else found.steps, bounds, heading=heading)


async def _applied(options: ApplyOptions, bounds: "Bounds", output: Output) -> "Applied":
    import asyncio

    from tenantry.kernel.randomness import SystemRandomness
    from tenantry.postgres.workbench import workbench
    from tenantry.rls.apply import Surroundings
    from tenantry.rls.apply import apply as carried_out

    declaration = declaration_of(options)
    surroundings = Surroundings(
        asyncio.sleep,
        SystemRandomness(),
        planned=lambda plan: _keep_way_back(plan, options, bounds),
        done=lambda step: output.line(f"  {step.title}"),
    )
    async with workbench(url_of(options)) as bench:
        return await carried_out(declaration, bench, bounds, surroundings)


def _refuse_no_way_back(file: Path) -> None:
    """Raises :class:`UsageError` where a way back could not be kept as ``file``, before anything is begun."""
    if file.exists():
        raise UsageError(_is_there_already(file))
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise UsageError(f"{file} cannot be written: {file.parent} is no directory that you may write in")


def _is_there_already(file: Path) -> str:
    return (
        f"{file} is there already. It may be the way back of an earlier run, which this one's does not "
        "include: give --down another file and keep both. To take all back, run the newest first"
    )


def _keep_way_back(plan: "Plan", options: ApplyOptions, bounds: "Bounds") -> None:
    """Raises :class:`UsageError`; nothing was begun then."""
    from tenantry.rls.script import sql_file

    if options.down is None or not plan.steps:
        return
    heading = f"Takes back what `tenantry rls apply` did for {options.declaration.name}"
    text = sql_file(plan.back, bounds, heading=heading)
    try:
        with options.down.open("x", encoding="utf-8") as file:  # another run may have had the turn before us
            file.write(text)
    except FileExistsError:
        raise UsageError(_is_there_already(options.down)) from None
    except OSError as error:
        raise UsageError(f"{options.down} cannot be written: {error.strerror}") from error


def _tell_objections(output: Output, plan: "Plan") -> None:
    if plan.objections:
        output.line(f"Nothing can be done yet, for {amount(len(plan.objections), 'reason')}:")
    for each in plan.objections:
        output.line(f"  {each}")


def _tell_blocked(output: Output, blocked: "Blocked") -> None:
    output.line(f"Gave up after {amount(blocked.attempts, 'attempt')}: {blocked.what}")
    for each in blocked.holders:
        output.line(f"  {each}")
    if not blocked.holders:
        output.line("  who was in the way has gone by now")
    output.line("What was done before stands, and nothing is half done. Run this again when the way is free.")


def _plan_data(plan: "Plan", text: str) -> dict[str, object]:
    return {
        "steps": [_step_data(each) for each in plan.steps],
        "objections": plan.objections,
        "remarks": plan.remarks,
        "text": text,
    }


def _step_data(step: "Step") -> dict[str, object]:
    return {
        "title": step.title,
        "outside_transactions": step.apart,
        "relations": [str(each) for each in step.relations],
        "up": step.up,
        "down": step.down,
    }


def _applied_data(ended: "Applied") -> dict[str, object]:
    return {
        "done": ended.done,
        "left": [each.title for each in ended.left.steps],
        "objections": ended.left.objections,
        "remarks": ended.left.remarks,
        "blocked": ended.blocked,
    }
