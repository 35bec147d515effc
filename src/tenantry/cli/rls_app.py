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
    from collections.abc import Mapping

    from tenantry.rls import Declared
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


@dataclass(frozen=True, kw_only=True)
class OnAudited(OnOwnDatabase):
    """And what of it is looked at, declared or guessed."""

    declaration: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The declaration; without one, what is a tenant's is guessed."),
    ] = None
    own: Annotated[
        bool, typer.Option("--own", help="Tenantry's own tables, with what it declares and accepts of them.")
    ] = False
    role: Annotated[
        list[str] | None, typer.Option(metavar="ROLE", help="As whom tenants' requests run. May be repeated.")
    ] = None
    schema: Annotated[
        list[str] | None, typer.Option(metavar="SCHEMA", help="Only tables there. May be repeated.")
    ] = None


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
    file = options.declaration
    if str(file) != "-" and not file.exists():
        raise UsageError(f"there is no {file}. {_START}")
    return _parsed(file)


def declared(options: OnAudited, services: "Mapping[str, str]") -> "Declared":
    """What an audit goes by: the product's own, the file's, or what the options say. Raises
    :class:`UsageError` for a file that cannot be read, or with everything that is wrong with it."""
    from dataclasses import replace

    from tenantry.rls import Declared
    from tenantry.rls.scope import declared_by

    if options.own:
        from tenantry.postgres.own_policies import OWN

        return OWN
    schemas = tuple(options.schema or ())
    if options.declaration is None:
        roles = tuple(options.role or ())
        return Declared(application_roles=roles, service_roles=services, schemas=schemas)
    return replace(declared_by(_parsed(options.declaration)), schemas=schemas)


def baseline(options: OnAudited, file: Path | None) -> "Mapping[str, str]":
    """The findings that are accepted, each with its reason: the product's own, or the file's."""
    from tenantry.cli.partition_files import read
    from tenantry.rls.baseline import parse_baseline

    if options.own:
        from tenantry.postgres.own_policies import accepted

        return accepted()
    return {} if file is None else parse_baseline(read(file))


def _parsed(file: Path) -> "Declaration":
    from tenantry.cli.partition_files import read
    from tenantry.rls.declaration import parse_declaration

    return parse_declaration(read(file), format="json" if file.suffix == ".json" else "toml")
