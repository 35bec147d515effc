"""Which messages of a source are meant. Pure.

All conditions of :class:`~tenantry.replay.model.Filters` must hold. What a message does not say matches no
condition about it: one without a time of failure is in no range of times, and a payload that cannot be read
as JSON has no values. A message that is not meant is left in its source.
"""

from collections.abc import Callable, Sequence

from tenantry.kernel.errors import InvalidValue
from tenantry.replay.json_path import JsonPath, json_path
from tenantry.replay.model import Filters, Message
from tenantry.replay.payload import NotJson, equal, read

Condition = Callable[[Message], bool]


class Filter:
    """:class:`Filters`, compiled once; asked for every message. Immutable, safe from any thread.

    Raises :class:`~tenantry.kernel.errors.InvalidValue`, its path starting with ``path``, for a range that
    holds nothing, a path that is none, or a value that is no JSON."""

    def __init__(self, filters: Filters, *, path: str = "filters") -> None:
        check_ranges(filters, path=path)
        self._conditions = _conditions(filters)
        self._values = [
            compiled_value(*each, path=f"{path}.json[{n}]") for n, each in enumerate(filters.json)
        ]

    def __bool__(self) -> bool:
        """Whether it leaves out anything at all."""
        return bool(self._conditions or self._values)

    def matches(self, message: Message) -> bool:
        """Whether the message is meant. O(1), and O(payload) where a JSON path is asked for."""
        if not all(condition(message) for condition in self._conditions):
            return False
        return not self._values or _has(message.payload, self._values)


def matches(message: Message, filters: Filters) -> bool:
    """Whether ``message`` is meant. For many messages compile a :class:`Filter` once. Raises as that does."""
    return Filter(filters).matches(message)


def check_ranges(filters: Filters, *, path: str) -> None:
    """Refuses ranges that hold nothing: a slip, and a replay of nothing looks like one that is done."""
    low, high = filters.failed_from, filters.failed_before
    if low is not None and high is not None and low >= high:
        raise InvalidValue(f"{path}.failed_before", high, f"a time after failed_from, which is {low}")
    least, most = filters.attempts_from, filters.attempts_to
    if least is not None and most is not None and least > most:
        raise InvalidValue(f"{path}.attempts_to", most, f"at least attempts_from, which is {least}")


def _conditions(filters: Filters) -> Sequence[Condition]:
    """The cheap ones, those that are asked for alone."""
    classes, targets, headers = filters.error_classes, filters.targets, filters.headers
    asked: list[tuple[bool, Condition]] = [
        (bool(classes), lambda message: message.error_class in classes),
        (bool(targets), lambda message: message.target in targets),
        (bool(headers), lambda message: headers.items() <= message.headers.items()),
        (filters.failed_from is not None or filters.failed_before is not None, _failed_within(filters)),
        (filters.attempts_from is not None or filters.attempts_to is not None, _tried_within(filters)),
    ]
    return [condition for wanted, condition in asked if wanted]


def _failed_within(filters: Filters) -> Condition:
    low = float("-inf") if filters.failed_from is None else filters.failed_from
    high = float("inf") if filters.failed_before is None else filters.failed_before
    return lambda message: message.failed_at is not None and low <= message.failed_at < high


def _tried_within(filters: Filters) -> Condition:
    low = 0 if filters.attempts_from is None else filters.attempts_from
    high = float("inf") if filters.attempts_to is None else filters.attempts_to
    return lambda message: low <= message.attempts <= high


def compiled_value(text: str, value: str, *, path: str) -> tuple[JsonPath, object]:
    """A JSON path and what must stand there. Raises :class:`~tenantry.kernel.errors.InvalidValue`."""
    compiled = json_path(text, path=f"{path}.path")
    try:
        return compiled, read(value.encode())
    except (NotJson, UnicodeEncodeError) as error:
        raise InvalidValue(f"{path}.equals", value, "JSON text", f"It is not: {error}.") from None


def _has(payload: bytes, wanted: Sequence[tuple[JsonPath, object]]) -> bool:
    try:
        document = read(payload)
        return all(any(equal(found, value) for found in path.values(document)) for path, value in wanted)
    except (NotJson, RecursionError):
        return False
