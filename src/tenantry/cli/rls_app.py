"""The group ``tenantry rls``, and what its commands have in common: a declaration, and the database it is
of."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import DATABASE_URL, Shown, group
from tenantry.cli.output import Output
from tenantry.kernel.errors import UsageError

if TYPE_CHECKING:
    from tenantry.rls.declaration import Declaration

app = group(
    "Row policies on your own PostgreSQL: write them, prove the ways round them, explain their speed."
)


@dataclass(frozen=True, kw_only=True)
class OnOwnDatabase(Shown):
    """The database whose tables are protected: the team's own, and never an embedded server."""

    database_url: Annotated[
        str | None,
        typer.Option(
            envvar=DATABASE_URL,
            metavar="URL",
            help="postgresql://user:password@host:port/database, straight to the server, not to a pooler.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OnDeclared(OnOwnDatabase):
    """And what was declared about it."""

    declaration: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The declaration, TOML or JSON (.json); - for standard input."),
    ] = Path("rls.toml")


_START = (
    "A declaration names your tables and roles; for a start: roles = ['app_user'], then a line [tables], and "
    "below it one such as invoices = {} for each table with a column tenant_id of type int. See docs/rls.md"
)


def url_of(options: OnOwnDatabase) -> str:
    """The database's URL, checked. Raises :class:`UsageError` where there is none."""
    from tenantry.postgres.urls import DatabaseUrls

    if options.database_url is None:
        raise UsageError(f"which database? Name it with --database-url or {DATABASE_URL}")
    return DatabaseUrls.derived(options.database_url).admin


def remark_on_unread(output: Output) -> None:
    """Where a declaration lies here and nobody named it: that the answer is without it."""
    if Path("rls.toml").is_file():
        output.note("rls.toml is here and was not read: --declaration rls.toml does")


def declaration_of(options: OnDeclared) -> "Declaration":
    """The declaration. Raises :class:`UsageError` with everything that is wrong with it."""
    from tenantry.cli.partition_files import read
    from tenantry.rls.declaration import parse_declaration

    file = options.declaration
    if str(file) != "-" and not file.exists():
        raise UsageError(f"there is no {file}. {_START}")
    return parse_declaration(read(file), format="json" if file.suffix == ".json" else "toml")
