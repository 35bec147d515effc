"""Values of columns for rows that are planted: as text that PostgreSQL reads as the column's type. Pure."""

import re
from dataclasses import dataclass

_INTEGERS = {"smallint", "integer", "bigint", "numeric", "oid", "real", "double precision", "money"}
_TEXTS = {"text", "citext", "name", "character varying", "character", '"char"'}
_LENGTH = re.compile(r"^(character varying|character|bit|bit varying)\((\d+)\)")
_PLAIN = {
    "boolean": "true",
    "date": "today",
    "timestamp without time zone": "now",  # as the server reads it: when the transaction began
    "timestamp with time zone": "now",
    "time without time zone": "04:05:06",
    "time with time zone": "04:05:06+00",
    "interval": "1 hour",
    "json": "{}",
    "jsonb": "{}",
    "bytea": "\\x01",
    "inet": "192.0.2.1",
    "cidr": "192.0.2.1/32",
    "macaddr": "08:00:2b:01:02:03",
    "macaddr8": "08:00:2b:01:02:03:04:05",
    "point": "(1,1)",
    "box": "(2,2),(1,1)",
    "circle": "<(1,1),1>",
    "tsvector": "one",
    "tsquery": "one",
    "xml": "<a/>",
    "pg_lsn": "0/1",
    "hstore": "",
}
_NUMBERED_RANGES = {"int4range", "int8range", "numrange"}
_LITERAL = re.compile(r"'((?:[^']|'')*)'|(?<![\w.])(-?\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Kind:
    """What the catalogue says of a type of the database's own: of a domain its ``base``, of an enum its
    ``labels``."""

    base: str = ""
    labels: tuple[str, ...] = ()


def value(kind: str, number: int, word: str) -> str | None:
    """A value of type ``kind`` that ``number`` and ``word`` tell from others; None where none is known."""
    bare = re.sub(r"\(.*?\)", "", kind)
    if kind.endswith("[]") or bare.endswith("multirange"):
        return "{}"
    if bare in _INTEGERS:
        return str(number % 997 + 31000 if bare == "smallint" else number)
    if bare in _TEXTS:
        return _cut(kind, f"{word}-{number}")
    if bare in {"bit", "bit varying"}:
        return _cut(kind, "1" * 64) if _LENGTH.match(kind) else "1"
    return _odd(bare, number)


def _cut(kind: str, text: str) -> str:
    length = _LENGTH.match(kind)
    return text[-int(length[2]) :] if length else text


def _odd(kind: str, number: int) -> str | None:
    if kind == "uuid":
        return f"ffffffff-ffff-4fff-8fff-{number:012d}"
    if kind in _NUMBERED_RANGES:
        return f"[{number},{number + 1})"
    return "empty" if kind.endswith("range") else _PLAIN.get(kind)


def likely(definition: str) -> list[str]:
    """What a check of this text may want: its literals, and the numbers beside them."""
    found: list[str] = []
    for text, number in _LITERAL.findall(definition):
        if number and "." not in number:
            found += [number, str(int(number) + 1), str(int(number) - 1)]
        else:
            found.append(number or text.replace("''", "'"))
    return list(dict.fromkeys(found))


def literal(text: str | None) -> str:
    """``text`` as an SQL literal without a type."""
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"
