"""Whether a table keeps two tenants apart, tried door by door as the application's own role.

Two tenants' rows are planted, every door between them is tried, and all of it is rolled back: nothing stays,
whatever the answer, but for what a sequence has counted. The connection is any of DB-API 2.0's to PostgreSQL
(psycopg, psycopg2, Django's ``connection``); a transaction that is open on it stays open.

What this shows is what the given login can do to one table. The ways round it that lie in other objects
(views, functions, roles) are what ``tenantry rls audit`` looks for."""

# ruff: noqa: S608 - names are quoted, values are literals

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

from tenantry.bindings.model import DEFAULT, Binding
from tenantry.bindings.names import literal
from tenantry.bindings.values import tenant_value
from tenantry.kernel.errors import UsageError
from tenantry.kernel.tenant import TenantType
from tenantry.rls.names import quoted

TENANTS: Mapping[TenantType, tuple[str, str]] = {
    "text": ("tenantry-isolation-1", "tenantry-isolation-2"),
    "int": ("2147483646", "2147483647"),
    "bigint": ("9223372036854775806", "9223372036854775807"),
    "uuid": ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"),
}
"""Tenants that nobody has, for tables that ask for no others."""

Values = Mapping[str, object]
Rows = Callable[[str], Values]

_DENIED = "42501"  # no privilege, or a row policy said no

_COLUMNS = """
SELECT a.attname, a.attnotnull, a.atthasdef OR a.attidentity <> '', t.typcategory, t.typname,
       (SELECT min(e.enumlabel::text) FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid),
       pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'INSERT'),
       pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT'),
       EXISTS (SELECT FROM pg_catalog.pg_index i
                WHERE i.indrelid = a.attrelid AND i.indisvalid AND (i.indisunique OR i.indisexclusion)
                  AND (a.attnum = ANY (i.indkey) OR EXISTS (
                       SELECT FROM pg_catalog.pg_depend d
                        WHERE d.classid = k.oid AND d.objid = i.indexrelid
                          AND d.refclassid = k.oid AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum)))
  FROM (SELECT 'pg_catalog.pg_class'::pg_catalog.regclass) k (oid) CROSS JOIN
        pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
 WHERE a.attrelid = {oid}
   AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
 ORDER BY a.attnum
"""


_FOUND = "SELECT c.oid, c.relkind FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass({table})"

_NAMES = """
SELECT CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'f', 'v') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
 ORDER BY 1
"""


class Column(NamedTuple):
    """``default``: the server gives it a value, by a default or as an identity. ``label``: of an enum.
    ``open``: the login may give it a value, also where there is a default. ``unique``: some unique index, or
    an exclusion, looks at it."""

    name: str
    not_null: bool
    default: bool
    category: str
    kind: str
    label: str | None
    open: bool
    readable: bool
    unique: bool

    @property
    def needed(self) -> bool:
        """A row has a value of it: it must, or it could stand in another's way by none but that."""
        return not self.default and (self.not_null or (self.unique and self.open))

    @property
    def chosen(self) -> bool:
        """Whether a login can try values out: not those that the server alone gives, nor UUIDs."""
        return self.open and self.kind != "uuid"


class Cursor(Protocol):
    """As DB-API 2.0 has it."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, sql: Any, /) -> object: ...
    def fetchall(self) -> Sequence[Sequence[Any]]: ...
    def close(self) -> object: ...


class Connection(Protocol):
    """As DB-API 2.0 has it."""

    def cursor(self) -> Any: ...


class Undecided(UsageError):
    """A door could not be tried; the message says which, what the database said, and what to give."""


@dataclass(frozen=True, slots=True)
class Door:
    """One way from a tenant to another's rows: ``sql`` opens it where it changes more than ``allowed`` rows,
    or, for those that must work, fewer than ``at_least``."""

    name: str
    sql: str
    allowed: int = 0
    at_least: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """A door that is open: through which statement, and what came of it."""

    door: str
    sql: str
    came: str

    def __str__(self) -> str:
        return f"{self.door}: {self.came}\n    {self.sql}"


def open_doors(
    connection: Connection,
    table: str,
    *,
    binding: Binding = DEFAULT,
    column: str = "tenant_id",
    row: Values | Rows | None = None,
    tenants: tuple[object, object] | None = None,
) -> list[Opened]:
    """The doors of ``table`` that are open between two tenants; empty for an isolated one.

    ``table``: as SQL writes it. ``column``: the tenant's. ``row``: values for columns that cannot be made up
    (a foreign key, a check), or a function from the tenant's id to them. ``tenants``: two that may be used,
    where a foreign key names them. Raises :class:`Undecided`, and
    :class:`~tenantry.kernel.errors.InvalidValue` for what is no tenant.
    """
    first, second = (tenant_value(each, binding.type) for each in tenants or TENANTS[binding.type])
    with _rolled_back(_Session(connection, binding)) as session:
        trial = _Trial(session, table, column, row)
        trial.plant(first, 1)
        found = list(session.tried(second, trial.conflict(first, second)))
        own = 0 if found else trial.plant(second, 2)
        for door in trial.doors(first, second, own):
            found += session.tried(second, door)
        found += session.tried("", Door("no tenant is bound", f"SELECT FROM {table}"))
        return found + trial.truncate()


class _Session:
    """One DB-API connection, with savepoints around what may fail."""

    def __init__(self, connection: Connection, binding: Binding) -> None:
        self._cursor: Cursor = connection.cursor()
        self._setting = literal(binding.setting)

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        self._cursor.execute(sql)
        return self._cursor.fetchall()

    def run(self, sql: str) -> int:
        self._cursor.execute(sql)
        return self._cursor.rowcount

    def bind(self, tenant: str) -> None:
        self.run(f"SELECT set_config({self._setting}, {literal(tenant)}, true)")

    def close(self) -> None:
        self._cursor.close()

    def attempt(self, sql: str) -> int | Exception:
        """The row count, or the error; what a failure broke is undone, and only that."""
        self.run("SAVEPOINT tenantry_attempt")
        try:
            count = self.run(sql)
        except Exception as error:  # noqa: BLE001 - a driver's own, of which only the code is known
            self.run("ROLLBACK TO SAVEPOINT tenantry_attempt")
            return error
        return count

    def tried(self, tenant: str, door: Door) -> Iterator[Opened]:
        """Try ``door`` as ``tenant``, and undo what it did."""
        self.bind(tenant)
        self.run("SAVEPOINT tenantry_door")
        came = self.attempt(door.sql)
        self.run("ROLLBACK TO SAVEPOINT tenantry_door")
        if isinstance(came, Exception):
            yield from _of_error(door, came)
        elif came > door.allowed:
            yield Opened(door.name, door.sql, f"{came} row(s), where {door.allowed} may be")
        elif came < door.at_least:
            yield Opened(door.name, door.sql, "another tenant's row stands in the way, and so shows itself")


def _of_error(door: Door, error: Exception) -> Iterator[Opened]:
    if door.at_least:
        yield Opened(door.name, door.sql, f"another tenant's row shows itself: {_said(error)}")
    elif sqlstate_of(error) != _DENIED:
        raise Undecided(
            f"{door.name}: neither let through nor refused by a policy: {_said(error)}. It was: {door.sql}. "
            "Give row= values that the table accepts"
        ) from error


class _Trial:
    """One table: how a row of it is made, and the doors to another tenant's."""

    def __init__(self, session: _Session, table: str, column: str, row: Values | Rows | None) -> None:
        self._session, self._table, self._tenant = session, table, quoted(column)
        self._row: Rows = row if callable(row) else lambda tenant: row or {}
        oid, self._kind = _found(session, table)
        every = [Column(*each) for each in session.rows(_COLUMNS.format(oid=oid))]
        self._columns = [each for each in every if each.name != column]
        if len(self._columns) == len(every):
            raise Undecided(f"{table} has no column {column}: name the tenant's with column=")

    def plant(self, tenant: str, number: int) -> int:
        """A row of ``tenant``, by itself; how many it sees then. Raises :class:`Undecided` where none is."""
        self._session.bind(tenant)
        insert = self._insert(tenant, self._values(tenant, number))
        came = self._session.attempt(insert)
        if isinstance(came, Exception):
            raise Undecided(
                f"tenant {tenant} cannot plant a row of its own: {_said(came)}. It was: {insert}. Give row= "
                "values that the table accepts, and tenants= that exist; the login needs INSERT"
            ) from came
        seen = self._session.run(f"SELECT FROM {self._table} WHERE {self._is(tenant)}")
        if seen < 1:
            raise Undecided(
                f"tenant {tenant} does not see the row that it planted: the policies of {self._table} read "
                "another setting than the binding's, or are too strict"
            )
        return seen

    def conflict(self, other: str, own: str) -> Door:
        """A row of ``own`` with the values of the one that ``other`` planted, but for what nobody chooses or
        can guess. A default is no protection: a login may give such a column a value all the same. Of a view
        it is not known which columns the server gives: only those that a row was given count."""
        chosen = {each.name: each for each in self._columns if each.chosen}
        planted = {name: value for name, value in self._values(other, 1).items() if name in chosen}
        read = [each for each in chosen.values() if self._kind != "v" or each.name in planted]
        values = self._values(own, 3) | planted | self._read(other, read)
        insert = f"{self._insert(own, values)} ON CONFLICT DO NOTHING"
        return Door("ON CONFLICT with the other's row", insert, allowed=1, at_least=1)

    def _read(self, tenant: str, columns: Sequence[Column]) -> dict[str, object]:
        """The values of ``tenant``'s first row, as text: of the ``columns`` that the login may read."""
        names = [each.name for each in columns if each.readable]
        self._session.bind(tenant)
        shown = ", ".join(f"{quoted(each)}::text" for each in names)
        (row, *_) = self._session.rows(f"SELECT {shown} FROM {self._table} WHERE {self._is(tenant)}")
        return dict(zip(names, row, strict=True))

    def doors(self, other: str, own: str, kept: int) -> Iterator[Door]:
        """Every door from ``own``, which sees ``kept`` rows, to those of ``other``.

        What changes rows is tried without a WHERE, too: a blind statement needs no right to read."""
        table, theirs, mine = self._table, self._is(other), self._is(own)
        yield Door("SELECT of the other's rows", f"SELECT FROM {table} WHERE {theirs}")
        yield Door("SELECT FOR UPDATE of the other's rows", f"SELECT FROM {table} WHERE {theirs} FOR UPDATE")
        yield Door("INSERT for the other", self._insert(other, self._values(own, 4)))
        yield Door("UPDATE of the other's rows", f"UPDATE {table} SET {mine} WHERE {theirs}")
        yield Door("UPDATE that takes the other's rows over", f"UPDATE {table} SET {mine}", kept)
        yield Door("UPDATE that gives rows to the other", f"UPDATE {table} SET {theirs}")
        yield Door("DELETE of the other's rows", f"DELETE FROM {table} WHERE {theirs}")
        yield Door("DELETE of everything", f"DELETE FROM {table}", kept)

    def truncate(self) -> list[Opened]:
        """TRUNCATE asks no policy; the right to it is enough, and is not used. Views cannot be truncated,
        though the right to it can be granted."""
        if self._kind == "v":
            return []
        sql = f"SELECT pg_catalog.has_table_privilege({literal(self._table)}, 'TRUNCATE')"
        ((may,),) = self._session.rows(sql)
        came = "the login may, and no row policy is asked"
        return [Opened("TRUNCATE", f"TRUNCATE {self._table}", came)] if may else []

    def _is(self, tenant: str) -> str:
        return f"{self._tenant} = {literal(tenant)}"

    def _values(self, tenant: str, number: int) -> dict[str, object]:
        """What a row of ``tenant`` needs: values given, else made up, and others for each ``number``."""
        given = dict(self._row(tenant))
        needed = [each for each in self._columns if each.needed and each.name not in given]
        return {each.name: _made_up(self._table, each, number) for each in needed} | given

    def _insert(self, tenant: str, values: Mapping[str, object]) -> str:
        columns = ", ".join((self._tenant, *(quoted(name) for name in values)))
        shown = ", ".join((literal(tenant), *(_shown(value) for value in values.values())))
        return f"INSERT INTO {self._table} ({columns}) OVERRIDING SYSTEM VALUE VALUES ({shown})"


def _found(session: _Session, table: str) -> tuple[int, str]:
    """The OID and kind of ``table``. Raises :class:`Undecided` where there is none, with one like it."""
    try:
        found = session.rows(_FOUND.format(table=literal(table)))
    except Exception as error:
        raise Undecided(f"{table} cannot be looked up: {_said(error)}") from error
    if not found:
        names = [str(name) for (name,) in session.rows(_NAMES)]
        near = get_close_matches(table, names, 1)
        hint = f"did you mean {near[0]}?" if near else "write it as SQL does, with its schema where need be"
        raise Undecided(f"this database has no table {table}: {hint}")
    ((oid, kind),) = found
    return int(oid), kind if isinstance(kind, str) else bytes(kind).decode()


_BY_TYPE = {
    "uuid": "7041c0de-0000-4000-8000-00000000000{}", "json": "{{}}", "jsonb": "{{}}", "bytea": "\\x0{}",
    "inet": "127.0.0.{}", "varchar": "t{}", "bpchar": "{}",
}  # fmt: skip
_BY_CATEGORY = {"N": "{}", "S": "tenantry {}", "B": "true", "D": "2026-01-0{}", "A": "{{}}", "T": "{} hours"}


def _made_up(table: str, column: Column, number: int) -> str:
    pattern = column.label or _BY_TYPE.get(column.kind) or _BY_CATEGORY.get(column.category)
    if pattern is None:
        raise Undecided(f"no {column.kind} can be made up for {table}.{column.name}: give it with row=")
    return pattern if column.label else pattern.format(number)


def _shown(value: object) -> str:
    return "NULL" if value is None else literal(str(value))


@contextmanager
def _rolled_back(session: _Session) -> Iterator[_Session]:
    """Everything inside is undone; a transaction that is open before stays open."""
    ((inside,),) = session.rows("SELECT transaction_timestamp() <> statement_timestamp()")
    session.run("SAVEPOINT tenantry_isolation" if inside else "BEGIN")
    try:
        yield session
    finally:
        session.run("ROLLBACK TO SAVEPOINT tenantry_isolation" if inside else "ROLLBACK")
        session.close()


def sqlstate_of(error: BaseException | None) -> str | None:
    """The code that PostgreSQL gave, where the driver keeps it: on the error, or on what it was made from."""
    while error is not None:
        code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        if isinstance(code, str):
            return code
        error = error.__cause__
    return None


def _said(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
