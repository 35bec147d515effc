"""A sample of a stream whose length is not known: Algorithm R (A. Waterman; J. S. Vitter, "Random Sampling
with a Reservoir", ACM Transactions on Mathematical Software 11, 1985).

Every ``size`` of the items are as likely to be the sample as any other, whatever pattern the stream has: what
stands at every k-th place is not seen more often than the rest. Pure but for the chance it is handed."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def sampled(items: Iterable[T], size: int, uniform: Callable[[float, float], float]) -> list[T]:
    """``min(size, number of items)`` of ``items``, in the order in which they came. ``size`` >= 0;
    ``uniform``: a number in [low, high]. O(items) of time, O(size) of memory."""
    kept: list[tuple[int, T]] = []
    if size < 1:
        return []
    for place, item in enumerate(items):
        if place < size:
            kept.append((place, item))
            continue
        chosen = int(uniform(0, place + 1))
        if chosen < size:
            kept[chosen] = (place, item)
    return [item for _, item in sorted(kept, key=lambda each: each[0])]
