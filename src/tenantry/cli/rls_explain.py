"""``tenantry rls explain``: what row policies cost a query, and what to write instead."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import command
from tenantry.cli.output import Output, amount
from tenantry.cli.rls_app import OnDeclared, app, declaration_of, url_of
from tenantry.kernel.errors import UsageError, nearest

if TYPE_CHECKING:
    from tenantry.postgres.plans import PostgresPlanner
    from tenantry.rls.declaration import Declaration
    from tenantry.rls.explain.asking import Asker
    from tenantry.rls.explain.model import Explanation, HeldBack, Reading
    from tenantry.rls.facts import Facts


_SHOWN = 8
"""So many readings are shown to people: a query may read hundreds of partitions."""


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(OnDeclared):
    """Which queries, as whom."""

    sql: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help="One or more statements; parameters as $1, $2.")
    ] = None
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="Statements; - for standard input.")] = (
        None
    )
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=1000,
            help="The N costliest of pg_stat_statements; those that read no tenant table are left out.",
        ),
    ] = None
    tenant: Annotated[
        str | None, typer.Option(metavar="ID", help="The tenant that is bound: its share decides plans.")
    ] = None
    role: Annotated[
        str | None, typer.Option(metavar="NAME", help="The application role; the first of the declaration.")
    ] = None
    no_what_if: Annotated[
        bool, typer.Option("--no-what-if", help="Never plan with functions marked leakproof (and undone).")
    ] = False
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 1 where any is slowed or not planned.")
    ] = False


@command(app, "explain", ExplainOptions)
def explain(options: ExplainOptions) -> None:
    """Plan queries as the application with a tenant bound, and say what the policies cost them.

    Says whether the tenant leads the index that is used, which condition was held back because a function
    in it is not leakproof, and what to write instead. Nothing is run: each query is planned in a
    transaction that is rolled back. With a superuser's login, a query with a condition held back is planned
    a second time with that function marked leakproof, also rolled back.
    """
    from tenantry.cli.eventloop import run

    _check_asked(options)
    output = Output.of(options)
    found = run(_explained(options))
    if options.top is not None:  # the server keeps everything, catalogue queries of drivers too
        found = [each for each in found if each.readings or each.error]
    output.data({"queries": [_data(each) for each in found], "well": all(each.is_well for each in found)})
    for each in found:
        _tell(output, each)
    if not found:
        output.line("There is nothing to explain: no statement was given, or none is held of the roles.")
    refused = sum(bool(each.error) for each in found)
    slowed = sum(not each.is_well for each in found) - refused
    output.line(f"Of {amount(len(found), 'statement')}, {slowed} slowed down and {refused} not planned.")
    if options.check and (slowed or refused):
        raise typer.Exit(1)


def _check_asked(options: ExplainOptions) -> None:
    given = [each is not None for each in (options.sql, options.file, options.top)]
    if sum(given) != 1:
        raise UsageError(
            "which queries? Give one of: the SQL itself, --file, or --top for pg_stat_statements"
        )
    if options.tenant is None:
        raise UsageError("which tenant? --tenant ID binds one: how many rows it has decides the plan")


async def _explained(options: ExplainOptions) -> "list[Explanation]":
    from tenantry.postgres.plans import planner
    from tenantry.rls.explain.asking import explain as explained
    from tenantry.rls.ground import Ground

    declaration = declaration_of(options)
    async with planner(url_of(options)) as plans:
        facts = await plans.facts()
        ground, asker = Ground(declaration, facts), _asker(options, declaration, facts)
        login = facts.roles.get(facts.server.login)
        what_if = not options.no_what_if and login is not None and login.superuser
        asked = _asked(options, declaration, plans)
        return [await explained(each, ground, asker, plans, what_if=what_if) async for each in asked]


def _asker(options: ExplainOptions, declaration: "Declaration", facts: "Facts") -> "Asker":
    from tenantry.rls.explain.asking import Asker

    role = options.role or declaration.roles[0]
    if role not in facts.roles:
        near = nearest(role, tuple(facts.roles))
        hint = f"did you mean {near!r}?" if near else "create it first"
        raise UsageError(f"there is no role {role}: {hint}")
    paths = {each.role: each.value for each in facts.settings if each.name == "search_path"}
    assert options.tenant is not None
    return Asker(role, options.tenant, declaration.setting, paths.get(role, ""))


async def _asked(
    options: ExplainOptions, declaration: "Declaration", plans: "PostgresPlanner"
) -> AsyncIterator[str]:
    from tenantry.cli.partition_files import read
    from tenantry.rls.explain.queries import statements

    if options.top is not None:
        for each in await plans.frequent(options.top, declaration.roles):
            yield each
        return
    text = options.sql if options.file is None else read(options.file).decode("utf-8", "replace")
    for each in statements(text or ""):
        yield each


def _tell(output: Output, told: "Explanation") -> None:
    from tenantry.rls.explain.scans import outline

    output.line(output.styled(" ".join(told.query.split()), "bold"))
    if told.error:
        output.line(f"  not planned: {told.error}")
    for reading in told.readings[:_SHOWN]:
        _tell_reading(output, reading)
    if len(told.readings) > _SHOWN:
        output.line(f"  and {amount(len(told.readings) - _SHOWN, 'more reading')}; --json has them all")
    for held in told.held_back:
        _tell_held(output, held)
    if told.if_leakproof is None and any(each.indexes for each in told.held_back):
        output.line("  no second plan: that takes a superuser's login, and no --no-what-if")
    if told.plan is not None:
        values = ", for any values of its parameters" if told.generic else ""
        output.line(f"  Plan{values}:" if told.if_leakproof is None else f"  Plan as it is{values}:")
        for line in outline(told.plan):
            output.line(f"    {line}")
    if told.if_leakproof is not None:
        marked = dict.fromkeys(each.function for each in told.held_back if each.indexes)
        output.line(f"  Plan were {' and '.join(marked)} leakproof:")
        for line in outline(told.if_leakproof):
            output.line(f"    {line}")
    output.line()


def _tell_reading(output: Output, reading: "Reading") -> None:
    how = f"{reading.node} using {', '.join(reading.indexes)}" if reading.indexes else reading.node
    leads = "; the tenant leads it" if reading.leads and reading.tenant == "searched" else ""
    output.line(f"  {reading.table}: {how}{leads}")
    for each in reading.say:
        output.line(f"    {each}")


def _tell_held(output: Output, held: "HeldBack") -> None:
    output.line(f"  held back: {held.clause.text}")
    output.line(
        f"    {held.function} is not leakproof, so it runs after the policy, on each row of the tenant"
    )
    if held.indexes:
        output.line(f"    {', '.join(held.indexes)} could have been searched by it")
    else:
        output.line("    no index could have been searched by it either")
    for each in held.instead if held.indexes else ():
        output.line(f"    instead: {each}")


def _data(told: "Explanation") -> dict[str, object]:
    return {
        "query": told.query,
        "well": told.is_well,
        "generic": told.generic,
        "error": told.error or None,
        "readings": [
            {
                "table": str(each.table),
                "node": each.node,
                "indexes": each.indexes,
                "tenant": each.tenant,
                "tenant_leads": each.leads,
                "indexes_led_by_tenant": each.led,
                "rows": each.rows,
                "say": each.say,
            }
            for each in told.readings
        ],
        "held_back": [
            {
                "table": str(each.table),
                "condition": each.clause.text,
                "operator": each.clause.operator,
                "function": each.function,
                "indexes": each.indexes,
                "instead": each.instead,
            }
            for each in told.held_back
        ],
        "plan": told.plan,
        "plan_if_leakproof": told.if_leakproof,
    }
