"""From bytes to jobs. Pure.

Each fault is named where it stands: text that is not JSON by line and column, a value by its path
(``jobs[3].cost``). A key that stands twice in a job is refused: readers disagree about which one counts.
Inside ``payload`` nothing is looked at but that it is JSON, since its bytes go to the target as they are.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from typing import TypeVar

import msgspec
from msgspec import Raw, UnsetType

from tenantry.config.rules import one_of
from tenantry.config.validation import Described
from tenantry.config.validation import refused as refused_value
from tenantry.kernel.errors import InvalidValue, UnknownKey
from tenantry.lanes.model import Target
from tenantry.queue.model import JobClass, NewJob
from tenantry.web import wire
from tenantry.web.problems import Refused, refused

T = TypeVar("T")

JOB_KEYS = tuple(field.encode_name for field in msgspec.structs.fields(wire.NewJob))
JOBS_KEYS = ("jobs",)
ORDER_KEYS = tuple(field.encode_name for field in msgspec.structs.fields(wire.NewOrder))

_job = msgspec.json.Decoder(wire.NewJob)
_jobs = msgspec.json.Decoder(wire.NewJobs)
_order = msgspec.json.Decoder(wire.NewOrder)
_any = msgspec.json.Decoder(Raw)

_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*?)`(?: - at `\$\.?(.*)`)?")
_TYPE = re.compile(r"Expected `(.*?)`, got `(.*?)`(?: - at `\$\.?(.*)`)?")
_AT = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
_BYTE = re.compile(r" \(byte (\d+)\)$")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONGEST_KEY = 80
_REREAD = 2 * 1_048_576
_WORDS = {
    "str": "text",
    "float": "a number",
    "int": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_class_name = one_of(wire.CLASSES)


def read_job(body: bytes) -> NewJob:
    """The one job of a body. Raises :class:`Refused` (400) for what is not JSON, :class:`InvalidValue`
    else."""
    _check_text(body)
    return job_of(body, "")


def check_json(text: bytes) -> None:
    """Whether ``text`` may be a payload as JSON: what the API asks of one. Raises :class:`Refused` (400)."""
    _check_text(text)
    _decoded(_any, text, "", ())


def read_rows(body: bytes) -> list[Raw]:
    """The rows of ``{"jobs": […]}``, each still to be read by :func:`job_of`. Raises as :func:`read_job`."""
    _check_text(body)
    rows = _decoded(_jobs, body, "", JOBS_KEYS)
    _check_jobs_once(body, rows.jobs)
    return rows.jobs


def row_path(position: int) -> str:
    return f"jobs[{position}]"


def job_of(row: bytes, path: str) -> NewJob:
    """The job that ``row`` is; ``path`` is where it stands, ``jobs[3]``, or empty for the whole body.

    Raises :class:`InvalidValue` naming the value, and :class:`Refused` (400) for what is not JSON.
    """
    found = _decoded(_job, row, path, JOB_KEYS)
    _check_each_once(row, found, path)
    payload, content_type = _payload(found, path)
    return NewJob(
        target=Target(found.target),
        payload=payload,
        job_class=JobClass[_class_name(_at(path, "class"), found.job_class).upper()],
        delay_for=found.delay_for,
        cost=found.cost,
        ordering_key=found.ordering_key,
        idempotency_key=found.idempotency_key,
        content_type=content_type,
    )


def read_order(body: bytes) -> wire.NewOrder:
    """The one order of a body. Raises as :func:`read_job`."""
    _check_text(body)
    found = _decoded(_order, body, "", ORDER_KEYS)
    _check_keys_once(body, "")
    return found


def lines(pending: bytes, chunk: bytes) -> tuple[list[bytes], bytes]:
    """The whole lines of NDJSON in ``pending + chunk``, without their ends, and what is left over."""
    *whole, rest = (pending + chunk).split(b"\n")
    return whole, rest


def read_line(line: bytes, position: int) -> NewJob:
    """The job of one NDJSON line; ``position`` is its row, from 0. Raises as :func:`job_of`."""
    _check_text(line)
    return job_of(line, row_path(position))


def _check_text(body: bytes) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise refused("malformed-request", f"The body is not UTF-8 at byte {error.start + 1}.") from None
    if not body.strip():
        raise refused("malformed-request", "The body is empty; JSON is expected.")


def _decoded(decoder: msgspec.json.Decoder[T], text: bytes, path: str, known: tuple[str, ...]) -> T:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), path, known) from None
    except msgspec.DecodeError as error:
        raise _malformed(text, path, str(error)) from None
    except RecursionError:
        raise refused("malformed-request", _sentence(path, "the JSON is nested too deeply")) from None


def _invalid(message: str, path: str, known: tuple[str, ...]) -> InvalidValue:
    if found := _UNKNOWN.fullmatch(message):
        return UnknownKey(_at(path, found[2] or ""), found[1][:_LONGEST_KEY], known)
    if found := _MISSING.fullmatch(message):
        where = _at(_at(path, found[2] or ""), found[1])
        return InvalidValue(where, Described("a missing value"), "a value; this field is required")
    if found := _TYPE.fullmatch(message):
        return InvalidValue(_at(path, found[3] or ""), Described(_words(found[2])), _words(found[1]))
    found = _AT.fullmatch(message)
    what, where = (found[1], found[2] or "") if found else (message, "")
    return InvalidValue(_at(path, where), Described("this value"), "a value in range", f"{what}.")


def _words(types: str) -> str:
    return " or ".join(_WORDS.get(each, each) for each in types.split(" | "))


def _malformed(text: bytes, path: str, message: str) -> Refused:
    found = _BYTE.search(message)
    what = _BYTE.sub("", message).removeprefix("JSON is malformed: ")
    if found is None and _is_json_to_others(text):
        detail = "not JSON text: a \\u escape is half of a surrogate pair, which is no character"
        return refused("malformed-request", _sentence(path, detail))
    line, column = _place(text, int(found[1]) if found else len(text))
    members = {} if path else {"line": line, "column": column}
    detail = f"not JSON at line {line}, column {column}: {what[:1].lower()}{what[1:]}"
    return refused("malformed-request", _sentence(path, detail), **members)


def _place(text: bytes, index: int) -> tuple[int, int]:
    """Line and column of a byte; both count from 1."""
    return text.count(b"\n", 0, index) + 1, index - text.rfind(b"\n", 0, index)


def _is_json_to_others(text: bytes) -> bool:
    """Whether a reader that lets lone surrogates pass accepts the text."""
    if len(text) > _REREAD or not _SURROGATE.search(text):
        return False
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _check_jobs_once(body: bytes, rows: list[Raw]) -> None:
    """Outside its rows the text has one string, the key ``jobs``; anything else is a second one. O(bytes)."""
    keys, escapes = body.count(b'"jobs"'), body.count(b"\\")
    for row in rows:
        text = bytes(row)
        keys, escapes = keys - text.count(b'"jobs"'), escapes - text.count(b"\\")
    if keys != 1 or escapes:
        raise refused(
            "malformed-request", "The key jobs must stand once in the body, written without escapes."
        )


def _check_each_once(row: bytes, found: wire.NewJob, path: str) -> None:
    """Counting finds nearly every row innocent; the few others are read again by a reader that sees pairs."""
    payload = b"" if isinstance(found.payload, UnsetType) else bytes(found.payload)
    suspicious = row.count(b"\\") > payload.count(b"\\") or any(
        row.count(quoted) - payload.count(quoted) > 1 for quoted in _QUOTED
    )
    if suspicious:
        _check_keys_once(row, path)


_QUOTED = tuple(f'"{key}"'.encode() for key in JOB_KEYS)


def _check_keys_once(text: bytes, path: str) -> None:
    pairs: list[tuple[str, object]] = []

    def remember(found: list[tuple[str, object]]) -> dict[str, object]:
        pairs[:] = found  # the outermost object is closed last
        return {}

    try:
        json.loads(text, object_pairs_hook=remember, parse_int=str, parse_float=str)
    except RecursionError:
        raise refused("malformed-request", _sentence(path, "the JSON is nested too deeply")) from None
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            where = f"{_at(path, key)} stands twice in its object; give each key once."
            raise refused("malformed-request", where)
        seen.add(key)


def _payload(found: wire.NewJob, path: str) -> tuple[bytes, str]:
    raw, encoded = found.payload, found.payload_base64
    default = "application/json" if isinstance(encoded, UnsetType) else "application/octet-stream"
    content_type = default if isinstance(found.content_type, UnsetType) else found.content_type
    if not isinstance(raw, UnsetType) and isinstance(encoded, UnsetType):
        return bytes(raw), content_type
    if isinstance(encoded, str) and isinstance(raw, UnsetType):
        return _from_base64(encoded, _at(path, "payload_base64")), content_type
    what = "a missing value" if isinstance(raw, UnsetType) else "payload beside payload_base64"
    raise InvalidValue(_at(path, "payload"), Described(what), "one of payload and payload_base64")


def _from_base64(text: str, path: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise refused_value(
            path, Described("this text"), "base64 with padding (RFC 4648, section 4)"
        ) from None


def _at(path: str, inner: str) -> str:
    return f"{path}.{inner}" if path and inner else path or inner


def _sentence(path: str, text: str) -> str:
    start = f"{path}: {text}" if path else text[:1].upper() + text[1:]
    return start if start.endswith(".") else f"{start}."


def each(rows: list[Raw], start: int, stop: int) -> Iterator[NewJob]:
    """The jobs of rows ``start`` to ``stop``. Raises as :func:`job_of`."""
    for position in range(start, min(stop, len(rows))):
        yield job_of(bytes(rows[position]), row_path(position))
