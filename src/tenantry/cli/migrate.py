"""``tenantry migrate``: the schema, brought up to date."""

from dataclasses import dataclass
from typing import Annotated

import typer

from tenantry.cli.options import OnDatabase, command, group

app = group()


@dataclass(frozen=True, kw_only=True)
class MigrateOptions(OnDatabase):
    """Where, and whether to look only."""

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only name what would be applied.")] = False


@command(app, "migrate", MigrateOptions)
def migrate(options: MigrateOptions) -> None:
    """Bring the database's schema up to date. Safe to run from many machines at once, and again.

    Uses the operator's login, which must own the database's schema tenantry or be allowed to make it.
    Passwords in --engine-url and --tenant-url (or, without them, in --database-url) become those of the two
    logins.
    """
    from tenantry.cli.eventloop import run
    from tenantry.cli.output import Output, amount

    output = Output.of(options)
    names = run(_lacking(options) if options.dry_run else _migrated(options))
    output.data({"pending" if options.dry_run else "applied": names})
    for name in names:
        output.line(f"  {name}")
    if options.dry_run:
        output.line(f"{amount(len(names), 'migration')} to apply." if names else "Nothing to apply.")
    else:
        output.line(f"Applied {amount(len(names), 'migration')}." if names else "The schema was up to date.")


async def _migrated(options: OnDatabase) -> list[str]:
    from tenantry.cli.desk import reached
    from tenantry.postgres.migrate import migrate as bring_up_to_date

    async with reached(options) as urls:
        applied = await bring_up_to_date(
            urls.admin, engine_password=urls.engine_password, tenant_password=urls.tenant_password
        )
    return [str(each) for each in applied]


async def _lacking(options: OnDatabase) -> list[str]:
    from tenantry.cli.desk import reached
    from tenantry.postgres.database import connect_once
    from tenantry.postgres.migrate import pending

    async with reached(options) as urls:
        connection = await connect_once(urls.admin)
        try:
            return [str(each) for each in await pending(connection)]
        finally:
            await connection.close()
