"""The command ``tenantry``: the table of commands, and what becomes of errors.

===========  =============================================================================
exit code    means
===========  =============================================================================
0            done
1            what was asked about is not well: a check failed, a job died, a submit was refused
2            the call must be changed: a wrong option, value, file or address
3            a dependency failed: the database or the API cannot be reached; try again later
70           a fault of ours: one line that says where its trace is, and where to report it
128 + n      ended by signal n
===========  =============================================================================

A module of commands is loaded when one of its commands is used, and no earlier.
"""

import os
import sys
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from tenantry.kernel.errors import DependencyError, MissingExtra, PeerError, UsageError


class Entry(NamedTuple):
    """One command or group: the module whose ``app`` it is, and its line in the help."""

    module: str
    help: str


COMMANDS: dict[str, Entry] = {
    "up": Entry("tenantry.cli.up", "Run everything on this machine: API, planner, worker, PostgreSQL."),
    "demo": Entry("tenantry.cli.demo", "Fifty tenants, one burst, one mass incident: watch the fair queue."),
    "worker": Entry("tenantry.cli.worker", "Run a worker on a database that is there already."),
    "api": Entry("tenantry.cli.api", "Serve the tenants' HTTP API on a database that is there already."),
    "submit": Entry("tenantry.cli.submit", "Submit one job, or many from a file of JSON lines."),
    "jobs": Entry("tenantry.cli.jobs", "Look at jobs: list, show, explain, cancel, count, audit."),
    "lanes": Entry("tenantry.cli.lanes", "The live table of lanes; pause, resume, ceilings, resets."),
    "tenants": Entry("tenantry.cli.tenants", "The registry of tenants and tiers, and the tenants' API keys."),
    "operators": Entry("tenantry.cli.operators", "Operators' keys for the API of lanes and orders."),
    "replay": Entry(
        "tenantry.cli.replay", "Dead letters back to their targets: plan, start, watch, pause, park."
    ),
    "partition": Entry("tenantry.cli.partition", "Which partition a tenant's events go to, and what moves."),
    "limits": Entry("tenantry.cli.limits", "How much each tenant may ask for: show, try, watch, reconcile."),
    "rls": Entry(
        "tenantry.cli.rls", "Row policies: plan and apply them, find ways round them, explain them."
    ),
    "simulate": Entry("tenantry.cli.simulate", "The scheduler and the shapers in virtual time, with plots."),
    "migrate": Entry("tenantry.cli.migrate", "Bring the database's schema up to date."),
    "doctor": Entry("tenantry.cli.doctor", "Check everything that Tenantry stands on, and say what to do."),
}
"""One line a command; their order is the help's."""

_EXTRAS = {
    "asyncpg": "server",
    "aiohttp": "server",
    "starlette": "server",
    "uvicorn": "server",
    "httptools": "server",
    "structlog": "server",
    "prometheus_client": "server",
    "yaml": "registry",
    "valkey": "valkey",
}
"""Which extra brings a module that a command needs."""


class LazyGroup(TyperGroup):
    """The commands of :data:`COMMANDS`, each loaded when it is used; the help is written from the table."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else loaded(cmd_name, entry)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


def loaded(name: str, entry: Entry) -> Any:
    """The command of one entry, under its name."""
    command = typer.main.get_command(import_module(entry.module).app)
    command.name = name
    return command


app = typer.Typer(
    cls=LazyGroup,
    help="Tenantry keeps the tenants of a shared system out of each other's way. Start with: tenantry up",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tenantry {version('tenantry')}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Nothing of its own: the commands do the work."""


def main() -> None:
    """The entry point. Turns every error into one clear line and an exit code."""
    try:
        app()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except Exception as error:  # noqa: BLE001 - told, with its trace kept, and the exit code says whose fault
        raise SystemExit(_ended_by(error)) from None


def _ended_by(error: Exception) -> int:
    """Tell of ``error``; the exit code."""
    if isinstance(error, ModuleNotFoundError):
        error = missing_extra(error) or error
    code = exit_code(error)
    if code == 70:
        from tenantry.cli.faults import reported

        _tell(type(error).__name__, reported(error))
    else:
        _tell(type(error).__name__, str(error))
    return code


def exit_code(error: Exception) -> int:
    """Which of the table above. Pure."""
    if isinstance(error, UsageError):
        return 2
    return 3 if isinstance(error, (DependencyError, PeerError)) else 70


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """What to install, where the module that is missing is one of an extra's. Pure."""
    extra = _EXTRAS.get((error.name or "").partition(".")[0])
    return MissingExtra(extra, "this command") if extra else None


def _tell(kind: str, message: str) -> None:
    if "--json" in sys.argv:  # asked of the words themselves: the error may lie in them
        import json

        print(json.dumps({"error": {"kind": kind, "message": message}}), file=sys.stderr)
    else:
        print(f"error: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
