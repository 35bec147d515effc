"""What a worker says about a lane when it settles: small, and made to be added up.

A summary holds no time of day and nothing of a single job. ``+`` is associative and :data:`EMPTY` neutral: a
worker adds up a batch, a store adds up what waits to be heard, the planner adds up a round trip, and it comes
to the same. (Runs of silence and so the whole are ordered: later goes to the right.)

What is *not* in it: calls sent and in flight. The planner knows both from claims, the truth (law K3).

As a plain value (:func:`encoded`), for a JSON column or a line::

    [1, succeeded, {class: count}, [calls, failed, head, tail, longest], [bucket, count, …],
     [bucket, count, …] lost, [bucket, count, …] limited, retry_after, longest]
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tenantry.algorithms.circuit_breaker import FAILURE, NOTHING, SILENCE, SUCCESS, Runs
from tenantry.algorithms.sample_window import EMPTY as NO_SKETCH
from tenantry.algorithms.sample_window import Sketch, merged, sketch_of
from tenantry.kernel.instant import Seconds
from tenantry.lanes.outcome import CAUSES, Fault, Outcome
from tenantry.lanes.plain import Plain, at_most, counts, entries, number, optional, pairs, sketch, whole
from tenantry.lanes.retry import LONGEST_HINT

VERSION: Final = 1


class Signal(StrEnum):
    """What an ending says to the shaper."""

    ANSWERED = "answered"  # a success: its latency counts
    LOST = "lost"  # no answer, or too busy to give one: it was too much
    LIMITED = "limited"  # refused by rate
    FAILED = "failed"  # the target's fault, but not a matter of how much: for the breaker alone
    NOTHING = "nothing"  # the message's fault, or ours


SILENT: Final = frozenset({"timeout", "connect_timeout", "refused", "unreachable", "reset"})
"""Error classes of calls that got no answer."""

_LOST: Final = SILENT | {"http_503", "http_504", "retry_later"}


def signal_of(error_class: str) -> Signal:
    """What an ending of this class says to the shaper. Pure, O(1). Raises KeyError for an unknown class."""
    match CAUSES[error_class].fault:
        case Fault.NONE:
            return Signal.ANSWERED
        case Fault.TARGET if error_class in _LOST:
            return Signal.LOST
        case Fault.TARGET:
            return Signal.LIMITED if error_class == "http_429" else Signal.FAILED
        case _:
            return Signal.NOTHING


@dataclass(frozen=True, slots=True)
class Summary:
    """Endings of one lane. ``failed``: by error class, sorted. ``runs``: of those that speak of the target.
    ``latency``: of those that succeeded; ``lost`` and ``limited``: how long those took that were (of which
    the calls sent before the last cut can be told apart). ``retry_after``: the longest that the target asked
    for, in seconds. ``longest``: seconds that the slowest of the target's failures took."""

    succeeded: int = 0
    failed: tuple[tuple[str, int], ...] = ()
    runs: Runs = NOTHING
    latency: Sketch = NO_SKETCH
    lost: Sketch = NO_SKETCH
    limited: Sketch = NO_SKETCH
    retry_after: Seconds | None = None
    longest: Seconds = 0.0

    def __add__(self, later: "Summary") -> "Summary":
        hints = [each for each in (self.retry_after, later.retry_after) if each is not None]
        return Summary(
            self.succeeded + later.succeeded,
            _added(self.failed, later.failed),
            self.runs + later.runs,
            merged(self.latency, later.latency),
            merged(self.lost, later.lost),
            merged(self.limited, later.limited),
            max(hints, default=None),
            max(self.longest, later.longest),
        )

    @property
    def ended(self) -> int:
        """All endings, whosever fault they were."""
        return self.succeeded + sum(count for _, count in self.failed)

    @property
    def ignored(self) -> int:
        """Endings that say nothing of the target."""
        return self.ended - self.runs.calls


EMPTY: Final = Summary()


def summary_of(outcomes: Iterable[Outcome]) -> Summary:
    """The summary of endings in the order in which they came. Pure, O(n)."""
    by_signal: dict[Signal, list[Seconds]] = {signal: [] for signal in Signal}
    failed: dict[str, int] = {}
    runs, hint, longest = NOTHING, None, 0.0
    for outcome in outcomes:
        signal = signal_of(outcome.error_class)
        by_signal[signal].append(outcome.busy_for)
        if signal is not Signal.ANSWERED:
            failed[outcome.error_class] = failed.get(outcome.error_class, 0) + 1
        if signal is Signal.NOTHING:
            continue
        runs += _run_of(signal, outcome.error_class)
        if signal is not Signal.ANSWERED:
            longest = max(longest, outcome.busy_for)
            if outcome.retry_after:
                hint = max(hint or 0.0, min(outcome.retry_after, LONGEST_HINT))
    return Summary(
        len(by_signal[Signal.ANSWERED]),
        tuple(sorted(failed.items())),
        runs,
        sketch_of(by_signal[Signal.ANSWERED]),
        sketch_of(by_signal[Signal.LOST]),
        sketch_of(by_signal[Signal.LIMITED]),
        hint,
        longest,
    )


def encoded(summary: Summary) -> list[Plain]:
    """The summary as lists, numbers and text. Pure."""
    runs = summary.runs
    return [
        VERSION,
        summary.succeeded,
        dict(summary.failed),
        [runs.calls, runs.failed, runs.head, runs.tail, runs.longest],
        pairs(summary.latency),
        pairs(summary.lost),
        pairs(summary.limited),
        summary.retry_after,
        summary.longest,
    ]


def decoded(value: object, *, path: str = "summary") -> Summary:
    """What :func:`encoded` gave. Pure. Raises :class:`~tenantry.kernel.errors.InvalidValue`, naming the
    place, for anything else, another version or a number out of bounds included."""
    fields = entries(value, 9, VERSION, path)
    return Summary(
        whole(fields[1], f"{path}[1]"),
        counts(fields[2], f"{path}[2]", CAUSES),
        decoded_runs(fields[3], f"{path}[3]"),
        sketch(fields[4], f"{path}[4]"),
        sketch(fields[5], f"{path}[5]"),
        sketch(fields[6], f"{path}[6]"),
        optional(fields[7], f"{path}[7]", most=LONGEST_HINT),
        number(fields[8], f"{path}[8]"),
    )


def decoded_runs(value: object, path: str) -> Runs:
    """``[calls, failed, head, tail, longest]``; raises InvalidValue for runs that cannot be."""
    calls, failed, head, tail, longest = (
        whole(each, f"{path}[{place}]") for place, each in enumerate(at_most(value, 5, path, exactly=True))
    )
    whole(failed, f"{path}[1]", most=calls)
    whole(longest, f"{path}[4]", most=failed)
    whole(head, f"{path}[2]", most=longest)
    whole(tail, f"{path}[3]", most=longest)
    return Runs(calls, failed, head, tail, longest)


def _run_of(signal: Signal, error_class: str) -> Runs:
    if signal is Signal.ANSWERED:
        return SUCCESS
    return SILENCE if error_class in SILENT else FAILURE


def _added(
    one: tuple[tuple[str, int], ...], other: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    if not one or not other:
        return one or other
    total: dict[str, int] = dict(one)
    for name, count in other:
        total[name] = total.get(name, 0) + count
    return tuple(sorted(total.items()))
