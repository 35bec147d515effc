"""What to write instead of a condition that was held back: each way, the least trouble first. Pure."""

import re
from collections.abc import Iterator

from tenantry.rls.declaration import TableName, TenantTable
from tenantry.rls.explain.clauses import Clause, bare
from tenantry.rls.names import quoted

_PREFIX = re.compile(r"^'([^%_\\']+)%'(::text)?$")


def instead(clause: Clause, function: str, table: TenantTable) -> tuple[str, ...]:
    """Ways to say ``clause`` that the planner may search an index by. ``function``: what held it back."""
    return (*_ways(clause, function, table), *_partial(clause, table), *_marked(function))


def _ways(clause: Clause, function: str, table: TenantTable) -> Iterator[str]:
    column, name, tenant = (
        clause.column[1],
        function.partition("(")[0].rpartition(".")[2],
        quoted(table.column),
    )
    prefix = _PREFIX.match(clause.value) if clause.operator == "~~" else None
    if prefix is not None:
        yield (
            f"{quoted(column)} ^@ '{prefix[1]}': the same rows, and leakproof. It searches an index on "
            f'({tenant}, {quoted(column)}) whose collation is "C"'
        )
    elif clause.operator == "~~" and not clause.value_is_constant:
        yield f"where the pattern is always a prefix: {quoted(column)} ^@ $n, which is leakproof"
    elif name.startswith("enum_"):
        yield _as_column(table.name, column, "text with a CHECK, or smallint,", tenant)
    elif name.startswith("numeric_"):
        cents = f"{column}_units"
        yield (
            f"keep it in its smallest unit as bigint, ask by that, and index ({tenant}, {quoted(cents)}): "
            f"ALTER TABLE {table.name} ADD {quoted(cents)} bigint "
            f"GENERATED ALWAYS AS (({quoted(column)} * 100)::bigint) STORED"
        )
    elif clause.functions or clause.cast:
        yield (
            "keep the result in a column and ask by that: "
            f"GENERATED ALWAYS AS ({bare(clause.operand)}) STORED, indexed after {tenant}"
        )


def _as_column(table: TableName, column: str, kind: str, tenant: str) -> str:
    serves = f"an index on ({tenant}, {quoted(column)}) then serves"
    return f"keep {table}.{quoted(column)} as {kind} whose operators are leakproof: {serves}"


def _partial(clause: Clause, table: TenantTable) -> Iterator[str]:
    """The planner sees from the text alone that the query asks for no more than the index has: no value is
    looked at, so nothing can be revealed."""
    if clause.value_is_constant and clause.operator in {"=", "<", "<=", ">", ">="}:
        condition = _without_alias(clause)
        yield (
            "where this value stands in the query itself: "
            f"CREATE INDEX CONCURRENTLY ON {table.name} ({quoted(table.column)}) WHERE {condition}"
        )


def _without_alias(clause: Clause) -> str:
    alias = clause.column[0]
    return clause.text.replace(f"{quoted(alias)}.", "", 1).replace(f"{alias}.", "", 1)


def _marked(function: str) -> Iterator[str]:
    if "(" in function:
        yield (
            "as a superuser, once you have judged that neither its errors nor its timing reveal a value: "
            f"ALTER FUNCTION {function} LEAKPROOF"
        )
