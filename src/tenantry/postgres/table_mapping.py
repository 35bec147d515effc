"""What a tenant says of a table, held against what the table is; and the statements that follow. Pure.

No text of a tenant becomes SQL: columns are looked up in the catalogue and quoted, values are parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tenantry.kernel.errors import InvalidValue, UnknownKey
from tenantry.replay import fields
from tenantry.replay.model import SourceAddress

_ACCEPTS: Final[Mapping[str, frozenset[str]]] = {
    "headers_column": frozenset({"json", "jsonb"}),
    "failed_at_column": frozenset({"timestamp with time zone", "timestamp without time zone"}),
    "attempts_column": frozenset({"smallint", "integer", "bigint"}),
    "payload_column": frozenset({"json", "jsonb", "text", "character varying", "bytea"}),
}
"""Types of the columns whose type matters."""

_KEY_TYPES = frozenset({
    "smallint", "integer", "bigint", "numeric", "text", "character varying", "uuid", "date",
    "timestamp with time zone", "timestamp without time zone",
})  # fmt: skip
_MARKS: Final[Mapping[str, tuple[str, str]]] = {
    "boolean": ("true", "IS NOT TRUE"),
    "timestamp with time zone": ("clock_timestamp()", "IS NULL"),
    "timestamp without time zone": ("clock_timestamp() AT TIME ZONE 'UTC'", "IS NULL"),
    "text": ("'replayed'", "IS DISTINCT FROM 'replayed'"),
    "character varying": ("'replayed'", "IS DISTINCT FROM 'replayed'"),
}
"""By the marked column's type: what a done row is given, and how one is told that is not done."""

_TEXTS = ("target_column", "error_class_column", "failure_column", "content_type_column")
_OPTIONAL = ("headers_column", "failed_at_column", "attempts_column", *_TEXTS)
_WHERE = "where."
OPTIONS = ("key_columns", "id_columns", "payload_column", *_OPTIONAL, "done", "mark_column", "where.COLUMN")


class Done(StrEnum):
    """What becomes of a row that was staged."""

    KEEP = "keep"
    DELETE = "delete"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Column:
    """As the catalogue has it."""

    name: str
    type: str
    not_null: bool

    @property
    def quoted(self) -> str:
        return quoted(self.name)


@dataclass(frozen=True, slots=True)
class Asked:
    """A source's address, read: names only, nothing of them checked against a table yet."""

    schema: str
    table: str
    keys: tuple[str, ...]
    ids: tuple[str, ...]
    named: Mapping[str, str]
    done: Done
    where: Mapping[str, str]

    @classmethod
    def of(cls, address: SourceAddress) -> "Asked":
        """Raises :class:`InvalidValue` with the option's path, and :class:`UnknownKey`."""
        options = {key: value for key, value in address.options.items() if not key.startswith(_WHERE)}
        where = {
            key.removeprefix(_WHERE): value for key, value in address.options.items() if key not in options
        }
        fields.refuse_unknown(options, OPTIONS)
        schema, dot, table = address.place.partition(".")
        if not (schema and dot and table):
            raise InvalidValue("source.place", address.place, "SCHEMA.TABLE")
        done = options.get("done", Done.KEEP)
        if done not in set(Done):
            raise InvalidValue("source.options.done", done, " or ".join(Done))
        if ("mark_column" in options) != (done == Done.MARK):
            path, value = "source.options.mark_column", options.get("mark_column", "")
            raise InvalidValue(path, value, "the column to mark, with done=mark and only then")
        keys = _names(options, "key_columns")
        ids = _names(options, "id_columns") if "id_columns" in options else keys
        named = {key: value for key, value in options.items() if key.endswith("_column")}
        if "payload_column" not in named:
            raise InvalidValue("source.options.payload_column", "", "the column with the payload")
        return cls(schema, table, keys, ids, named, Done(done), where)


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements over one table. ``values``: their first parameters, always the same ones."""

    last: str
    count: str
    count_after: str
    sample: str
    oldest: str
    read_first: str
    read: str
    done: str
    values: tuple[str, ...]


def statements(
    asked: Asked,
    columns: Mapping[str, Column],
    unique: list[list[str]],
    *,
    fenced: Mapping[str, str],
) -> Statements:
    """Raises :class:`InvalidValue` for a column that is not there or cannot serve. ``unique``: the columns of
    each unique index. ``fenced``: columns and the values that the operator demands of them."""
    keys = [_found(columns, name, "key_columns", _KEY_TYPES) for name in asked.keys]
    _check_order(asked, keys, unique)
    where, values = _conditions(asked, columns, fenced)
    entry = _entry(asked, columns, keys)
    table = f"{quoted(asked.schema)}.{quoted(asked.table)}"
    order, down = (", ".join(key.quoted + way for key in keys) for way in ("", " DESC"))
    known, each = len(values), len(keys)
    behind = f"{where} AND ({order}) > {_row(keys, known + 1)}"
    size = _bytes(columns[asked.named["payload_column"]])

    def read(condition: str, first: int) -> str:
        """``first``: the number of the parameter with which the end begins; most and bytes follow."""
        most = first + each
        return f"""WITH chosen AS MATERIALIZED (
    SELECT {order}, octet_length({size}) AS tenantry_size FROM {table}
     WHERE {condition} AND ({order}) <= {_row(keys, first)} ORDER BY {order} LIMIT ${most}
), sized AS (
    SELECT {order}, sum(tenantry_size) OVER (ORDER BY {order}) - tenantry_size AS tenantry_before FROM chosen
)
SELECT {entry} FROM sized JOIN {table} USING ({order})
 WHERE coalesce(tenantry_before, 0) < ${most + 1} ORDER BY {order}"""  # noqa: S608

    return Statements(
        last=f"SELECT {_texts(keys)} FROM {table} WHERE {where} ORDER BY {down} LIMIT 1",  # noqa: S608
        count=f"SELECT count(*) FROM {table} WHERE {where}",  # noqa: S608
        count_after=f"SELECT count(*) FROM {table} WHERE {behind}",  # noqa: S608
        sample=_sample(f"{table} WHERE {where}", f"{entry} FROM chosen JOIN {table}", keys, known),
        oldest=f"SELECT {entry} FROM {table} WHERE {where} ORDER BY {order} LIMIT ${known + 1}",  # noqa: S608
        read_first=read(where, known + 1),
        read=read(behind, known + 1 + each),
        done=_done(asked, columns, keys, where, known),
        values=values,
    )


def _sample(those: str, shown: str, keys: list[Column], known: int) -> str:
    """Each row as likely as any other: the first by a hash of the keys. The values, then most and a seed."""
    order = ", ".join(key.quoted for key in keys)
    return f"""WITH chosen AS MATERIALIZED (
    SELECT {order} FROM {those}
     ORDER BY hashtextextended({_texts(keys)}::text, ${known + 2}::bigint) LIMIT ${known + 1}
)
SELECT {shown} USING ({order}) ORDER BY {order}"""  # noqa: S608


def quoted(name: str) -> str:
    """An identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def _names(options: Mapping[str, str], option: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in options.get(option, "").split(","))
    if not all(names) or len(set(names)) < len(names):
        raise InvalidValue(
            f"source.options.{option}", options.get(option, ""), "columns, a comma between two"
        )
    return names


def _found(
    columns: Mapping[str, Column], name: str, option: str, types: frozenset[str] | None = None
) -> Column:
    column = columns.get(name)
    if column is None:
        raise UnknownKey(f"source.options.{option}", name, tuple(columns))
    if types is not None and column.type not in types:
        accepted = "a column of type " + ", ".join(sorted(types))
        raise InvalidValue(f"source.options.{option}", name, accepted, f"It is {column.type}.")
    return column


def _check_order(asked: Asked, keys: list[Column], unique: list[list[str]]) -> None:
    if all(key.not_null for key in keys) and any(set(index) <= set(asked.keys) for index in unique):
        return
    raise InvalidValue(
        "source.options.key_columns",
        ", ".join(asked.keys),
        "columns that are NOT NULL and hold those of a unique index",
        "They order the rows and say how far they were read.",
    )


def _conditions(
    asked: Asked, columns: Mapping[str, Column], fenced: Mapping[str, str]
) -> tuple[str, tuple[str, ...]]:
    pairs = [*fenced.items(), *asked.where.items()]
    found = [_found(columns, name, "where") for name, _ in pairs]
    parts = [f"{column.quoted}::text = ${n}::text" for n, column in enumerate(found, 1)]
    if asked.done is Done.MARK:
        mark = _found(columns, asked.named["mark_column"], "mark_column", frozenset(_MARKS))
        if mark.name in {*fenced, *asked.keys}:
            raise InvalidValue(
                "source.options.mark_column", mark.name, "a column that neither names the tenant nor is a key"
            )
        parts.append(f"{mark.quoted} {_MARKS[mark.type][1]}")
    return " AND ".join(parts) or "true", tuple(value for _, value in pairs)


def _entry(asked: Asked, columns: Mapping[str, Column], keys: list[Column]) -> str:
    """What is selected of one row. A payload over the bound is its beginning."""
    ids = [_found(columns, name, "id_columns") for name in asked.ids]
    payload = _found(columns, asked.named["payload_column"], "payload_column", _ACCEPTS["payload_column"])
    content = _bytes(payload)
    cut = (
        f"CASE WHEN octet_length({content}) <= {fields.LARGEST_PAYLOAD} THEN {content} "
        f"ELSE substring({content} FROM 1 FOR {fields.KEPT_OF_BROKEN}) END"
    )
    parts = [
        f"{_texts(keys)} AS keys",
        f"{_texts(ids)} AS ids",
        f"{cut} AS payload",
        f"octet_length({content}) AS size",
        f"{'true' if payload.type == 'bytea' else 'false'} AS is_bytes",
    ]
    for option in _OPTIONAL:
        field = option.removesuffix("_column")
        if option not in asked.named:
            parts.append(f"NULL AS {field}")
            continue
        column = _found(columns, asked.named[option], option, _ACCEPTS.get(option))
        parts.append(f"{_read(option, column)} AS {field}")
    return ", ".join(parts)


def _read(option: str, column: Column) -> str:
    if option == "failed_at_column":
        zone = "" if column.type == "timestamp with time zone" else " AT TIME ZONE 'UTC'"
        return f"extract(epoch FROM {column.quoted}{zone})::float8"
    return column.quoted if option == "attempts_column" else f"{column.quoted}::text"


def _bytes(column: Column) -> str:
    return column.quoted if column.type == "bytea" else f"convert_to({column.quoted}::text, 'UTF8')"


def _texts(columns: list[Column]) -> str:
    return "ARRAY[" + ", ".join(f"{column.quoted}::text" for column in columns) + "]"


def _row(keys: list[Column], first: int) -> str:
    return "(" + ", ".join(f"${first + n}::text::{key.type}" for n, key in enumerate(keys)) + ")"


def _done(  # noqa: PLR0917
    asked: Asked, columns: Mapping[str, Column], keys: list[Column], where: str, known: int
) -> str:
    """One array of texts a key column, behind the values."""
    table = f"{quoted(asked.schema)}.{quoted(asked.table)}"
    arrays = ", ".join(f"${known + n}::text[]::{key.type}[]" for n, key in enumerate(keys, 1))
    order = ", ".join(key.quoted for key in keys)
    mine = f"WHERE {where} AND ({order}) IN (SELECT * FROM unnest({arrays}))"  # noqa: S608
    if asked.done is Done.DELETE:
        return f"DELETE FROM {table} {mine}"  # noqa: S608
    if asked.done is Done.MARK:
        mark = columns[asked.named["mark_column"]]
        return f"UPDATE {table} SET {mark.quoted} = {_MARKS[mark.type][0]} {mine}"  # noqa: S608
    return ""
