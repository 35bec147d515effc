"""Which changes are still to be heard. Ids are given in order and commit out of order: what is asked for is
above all that was heard, but for those that are missing below it. Pure."""

from collections.abc import Collection

SWEEP_EVERY = 20
"""Rounds between two looks at everything: what stayed away too long to be waited for is found by it."""

WAITED_FOR = 100
"""Rounds, half a second where there is much to do, after which a missing id is taken for one that was rolled
back. An older one commits so late that a sweep's delay is nothing to it."""

_MOST_MISSING = 1_000  # more at once is a jump of the sequence, not changes that are on their way


class ChangeIds:
    """Of one term. O(changes heard), amortised."""

    __slots__ = ("_highest", "_missing", "_rounds")

    def __init__(self) -> None:
        self._highest = self._rounds = 0
        self._missing: dict[int, int] = {}  # since which round; both rise from the first to the last

    def above(self) -> int:
        """The id above which the next round asks; each :data:`SWEEP_EVERY` rounds it asks for everything.

        A submit waits for the disk with its id given, and settles that need not wait overtake it: without the
        missing ones it would be heard at the next sweep, a twentieth of a second late."""
        self._rounds += 1
        lowest = next(iter(self._missing), None)
        while lowest is not None and self._missing[lowest] + WAITED_FOR <= self._rounds:
            del self._missing[lowest]
            lowest = next(iter(self._missing), None)
        if self._rounds % SWEEP_EVERY == 0:
            return 0
        return self._highest if lowest is None else lowest - 1

    def heard(self, ids: Collection[int]) -> None:
        """These have come, in any order."""
        if not ids:
            return
        for each in ids:
            self._missing.pop(each, None)
        before, self._highest = self._highest, max(self._highest, *ids)
        if before and self._highest - before <= _MOST_MISSING:
            came = set(ids)
            for each in range(before + 1, self._highest):
                if each not in came:
                    self._missing[each] = self._rounds
