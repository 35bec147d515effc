"""Plain values (lists, numbers, text) read back with care: what a table row or another process hands in."""

from collections.abc import Container
from itertools import pairwise
from math import inf, isfinite
from typing import TypeAlias

from tenantry.algorithms.sample_window import LAST_BUCKET, Sketch
from tenantry.kernel.errors import InvalidValue

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, int] | None"
"""What JSON can say, as far as it is used here."""

LARGEST = 1 << 53
"""Beyond this a number is not exact in every JSON reader."""


def entries(value: object, length: int, version: int, path: str) -> list[object]:
    """A list of ``length`` whose first entry is ``version``. Raises :class:`InvalidValue`."""
    found = at_most(value, length, path, exactly=True)
    if found[0] != version:
        hint = "It was written by another version of this program; reset the lane's shaper."
        raise InvalidValue(f"{path}[0]", found[0], f"version {version}", hint)
    return found


def at_most(value: object, length: int, path: str, *, exactly: bool = False) -> list[object]:
    """A list of at most (or ``exactly``) ``length`` entries. Raises :class:`InvalidValue`."""
    if isinstance(value, (list, tuple)) and (len(value) == length if exactly else len(value) <= length):
        return list(value)
    raise InvalidValue(path, value, f"a list of {'' if exactly else 'at most '}{length} entries")


def whole(value: object, path: str, *, most: int = LARGEST) -> int:
    """A whole number in [0, most]. Raises :class:`InvalidValue`."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    raise InvalidValue(path, value, f"a whole number from 0 to {most}")


def number(value: object, path: str, *, least: float = 0.0, most: float = 1e15) -> float:
    """A finite number in [least, most]. Raises :class:`InvalidValue`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        found = float(value) if abs(value) <= LARGEST or isinstance(value, float) else inf
        if isfinite(found) and least <= found <= most:
            return found
    raise InvalidValue(path, value, f"a number from {least:g} to {most:g}")


def optional(value: object, path: str, *, least: float = 0.0, most: float = 1e15) -> float | None:
    """None, or a number as :func:`number` has it."""
    return None if value is None else number(value, path, least=least, most=most)


def pairs(found: Sketch) -> list[Plain]:
    """A sketch as ``[bucket, count, bucket, count, …]``. Pure."""
    return [each for pair in found for each in pair]


def sketch(value: object, path: str) -> Sketch:
    """What :func:`pairs` gave. Raises :class:`InvalidValue`."""
    flat = at_most(value, 2 * (LAST_BUCKET + 1), path)
    if len(flat) % 2:
        raise InvalidValue(path, value, "buckets and counts in turn")
    buckets = [whole(each, path, most=LAST_BUCKET) for each in flat[::2]]
    amounts = [whole(each, path) for each in flat[1::2]]
    if 0 in amounts or any(one >= other for one, other in pairwise(buckets)):
        raise InvalidValue(path, value, "rising buckets, each with a count of at least 1")
    return tuple(zip(buckets, amounts, strict=True))


def counts(value: object, path: str, known: Container[str]) -> tuple[tuple[str, int], ...]:
    """Counts by a known name, sorted. Raises :class:`InvalidValue`."""
    if not isinstance(value, dict):
        raise InvalidValue(path, value, "counts by name")
    for name in value:
        if not isinstance(name, str) or name not in known:
            raise InvalidValue(path, name, "an error class that lanes.outcome knows")
    return tuple(sorted((name, whole(count, f"{path}.{name}")) for name, count in value.items()))
