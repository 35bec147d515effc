"""One flow's line, kept as two numbers and the exceptions to them.

The jobs of a flow have seqs 1, 2, 3, … without gaps, so that what waits is ``head..tail`` less the places
skipped, plus the jobs that came back. No job is ever read to know its turn.
"""

from collections import deque

from tenantry.kernel.instant import Timestamp
from tenantry.queue.model import Seq

_COALESCED_FOR = 1.0  # arrivals closer than this share one record of their time

Taken = tuple[Seq, int, bool]
"""A job to start: its seq, the attempts that counted before, and whether it had left the line before."""


class FlowLog:
    """The order of starts in one flow. Pure; every call O(1), ``take`` O(jobs taken + places skipped).

    Start order is submit order. A job put back at the end starts after everything that had been submitted
    by then; one put back at the front starts next.
    """

    __slots__ = ("_arrivals", "_early", "_returned", "_skipped", "head", "tail")

    def __init__(self, head: int = 1, tail: int = 0, waiting_since: Timestamp | None = None) -> None:
        self.head, self.tail = head, tail
        self._skipped: set[int] = set()
        self._early: set[int] = set()  # skipped before their submit was heard of
        self._returned: deque[tuple[int, Seq, int, Timestamp]] = deque()  # (after, seq, attempts, since)
        self._arrivals: deque[tuple[int, Timestamp]] = deque()  # (last seq, when it came)
        if waiting_since is not None:
            self._arrivals.append((tail, waiting_since))

    def append(self, count: int, at: Timestamp) -> int:
        """``count`` jobs were submitted. How many of them are in line: all but those skipped beforehand."""
        self.tail += count
        if self._arrivals and at - self._arrivals[-1][1] < _COALESCED_FOR:
            at = self._arrivals.pop()[1]
        self._arrivals.append((self.tail, at))
        return count - (self._meet_early() if self._early else 0)

    def _meet_early(self) -> int:
        met = {seq for seq in self._early if seq <= self.tail}
        self._early -= met
        self._skipped |= met
        self._pass_skipped()
        return len(met)

    def skip(self, seq: Seq) -> bool:
        """Take ``seq`` out of the line. False when it is not in line here: its place has passed, or is yet to
        come (submits of one flow may be heard of out of order) and will be passed over."""
        if seq > self.tail:
            self._early.add(seq)
            return False
        if self.head <= seq <= self.tail and seq not in self._skipped:
            self._skipped.add(seq)
            self._pass_skipped()
            return True
        return False

    def put_back(self, seq: Seq, attempts: int, *, first: bool, at: Timestamp) -> None:
        """A job that had left the line has been due again since ``at``."""
        if first:
            self._returned.appendleft((0, seq, attempts, at))
        else:
            self._returned.append((self.tail, seq, attempts, at))

    def remove_returned(self, seq: Seq) -> bool:
        """Take a job that came back out again. O(jobs that came back)."""
        for entry in self._returned:
            if entry[1] == seq:
                self._returned.remove(entry)
                return True
        return False

    def take(self, count: int) -> list[Taken]:
        """The next ``count`` jobs in line. Fewer when fewer wait."""
        if not self._returned and not self._skipped:
            return self._take_run(count)
        taken: list[Taken] = []
        while len(taken) < count:
            if self._returned and self._returned[0][0] < self.head:
                _, seq, attempts, _ = self._returned.popleft()
                taken.append((seq, attempts, True))
            elif self.head > self.tail:
                break
            else:
                taken.append((Seq(self.head), 0, False))
                self.head += 1
                self._pass_skipped()
        return taken

    def _take_run(self, count: int) -> list[Taken]:
        """Nothing stands out of line: places that follow each other."""
        end = min(self.head + count, self.tail + 1)
        taken: list[Taken] = [(Seq(seq), 0, False) for seq in range(self.head, end)]
        self.head = end
        self._pass_skipped()
        return taken

    def waiting_since(self) -> Timestamp | None:
        """Since when the job that has waited longest has been due, to within a second; None: nobody waits."""
        since = [entry[3] for entry in self._returned]
        if self._arrivals:
            since.append(self._arrivals[0][1])
        return min(since, default=None)

    def _pass_skipped(self) -> None:
        """The head never stands on an empty place."""
        while self.head in self._skipped:
            self._skipped.discard(self.head)
            self.head += 1
        while self._arrivals and self._arrivals[0][0] < self.head:
            self._arrivals.popleft()

    def waiting(self) -> int:
        """How many jobs are in line."""
        return self.tail - self.head + 1 - len(self._skipped) + len(self._returned)
