"""A shaper's state as a plain value, for the row in which it is kept, and back. About 400 bytes of JSON.

::

    [1, limit, reference, breaker, rate, latency, gathered, cut_at, ended_at, held_until]
    limit      [level, mode, ceiling or null, strikes, rounds, back, known]
    reference  [latency or null, seen, risen_at, probe_at]
    breaker    [state, since, trips, cooled_at, tail, half_at, [calls, failed] × 2, [lease, …], proved]
    rate       [refused or null, since, tokens, at, count, counting_from, achieved]

The window is not kept: it is one round trip, and who reads the state back asks the claims what is in flight
(law K3). Everything is checked when it is read; the version is the first entry.
"""

from enum import StrEnum
from math import inf
from typing import Final, TypeVar

from tenantry.algorithms.circuit_breaker import Breaker, BreakerState
from tenantry.algorithms.concurrency_limit import Limit, Mode
from tenantry.algorithms.reference_latency import Reference
from tenantry.algorithms.sample_window import opened
from tenantry.algorithms.start_rate import StartRate
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp
from tenantry.lanes.plain import Plain, at_most, entries, number, optional, pairs, sketch, whole
from tenantry.lanes.shaper import ShaperState

VERSION: Final = 1

MOST_LEASES: Final = 1_000
_LARGEST_LIMIT: Final = 1e6
_LONGEST: Final = 86_400.0

Choice = TypeVar("Choice", bound=StrEnum)


def encoded(state: ShaperState) -> list[Plain]:
    """The state as lists, numbers and text, as JSON has them. Pure."""
    return [
        VERSION,
        _limit_out(state.limit),
        _reference_out(state.reference),
        _breaker_out(state.breaker),
        _rate_out(state.rate),
        state.latency,
        pairs(state.gathered),
        state.cut_at,
        state.ended_at,
        state.held_until,
    ]


def decoded(value: object, *, in_flight: int, now: Timestamp, path: str = "shaper") -> ShaperState:
    """What :func:`encoded` gave, with a window that opens at ``now`` on what is in flight. Pure.

    Raises :class:`~tenantry.kernel.errors.InvalidValue`, naming the place, for anything else: another
    version, a number out of bounds, an unknown mode.
    """
    fields = entries(value, 10, VERSION, path)
    moments = [Timestamp(number(fields[place], f"{path}[{place}]")) for place in (7, 8, 9)]
    return ShaperState(
        opened(now, in_flight),
        _limit_in(fields[1], f"{path}.limit"),
        _reference_in(fields[2], f"{path}.reference"),
        _breaker_in(fields[3], f"{path}.breaker"),
        _rate_in(fields[4], f"{path}.rate"),
        number(fields[5], f"{path}.latency", most=_LONGEST),
        sketch(fields[6], f"{path}.gathered"),
        (0, 0, 0),
        *moments,
    )


def readable(value: object, *, in_flight: int, now: Timestamp) -> ShaperState | None:
    """As :func:`decoded`; None for what another version wrote, whose lane starts anew. Pure."""
    try:
        return decoded(value, in_flight=in_flight, now=now)
    except InvalidValue:
        return None


def _limit_out(limit: Limit) -> list[Plain]:
    ceiling = None if limit.ceiling == inf else limit.ceiling
    return [
        limit.level, limit.mode.value, ceiling, limit.strikes, limit.rounds, limit.back, limit.known
    ]  # fmt: skip


def _limit_in(value: object, path: str) -> Limit:
    level, mode, ceiling, strikes, rounds, back, known = at_most(value, 7, path, exactly=True)
    top = optional(ceiling, f"{path}.ceiling", most=_LARGEST_LIMIT)
    return Limit(
        number(level, f"{path}.level", least=1e-6, most=_LARGEST_LIMIT),
        _one_of(Mode, mode, f"{path}.mode"),
        inf if top is None else top,
        whole(strikes, f"{path}.strikes"),
        whole(rounds, f"{path}.rounds"),
        number(back, f"{path}.back", most=_LARGEST_LIMIT),
        number(known, f"{path}.known", most=_LARGEST_LIMIT),
    )


def _reference_out(reference: Reference) -> list[Plain]:
    return [reference.latency, reference.seen, reference.risen_at, reference.probe_at]


def _reference_in(value: object, path: str) -> Reference:
    latency, seen, risen_at, probe_at = at_most(value, 4, path, exactly=True)
    return Reference(
        optional(latency, f"{path}.latency", least=1e-9, most=_LONGEST),
        whole(seen, f"{path}.seen"),
        number(risen_at, f"{path}.risen_at"),
        number(probe_at, f"{path}.probe_at"),
    )


def _breaker_out(breaker: Breaker) -> list[Plain]:
    return [
        breaker.state.value,
        breaker.since,
        breaker.trips,
        breaker.cooled_at,
        breaker.tail,
        breaker.half_at,
        list(breaker.recent),
        list(breaker.before),
        list(breaker.leases),
        breaker.proved,
    ]


def _breaker_in(value: object, path: str) -> Breaker:
    fields = at_most(value, 10, path, exactly=True)
    leases = at_most(fields[8], MOST_LEASES, f"{path}.leases")
    return Breaker(
        _one_of(BreakerState, fields[0], f"{path}.state"),
        number(fields[1], f"{path}.since"),
        whole(fields[2], f"{path}.trips"),
        number(fields[3], f"{path}.cooled_at"),
        whole(fields[4], f"{path}.tail"),
        number(fields[5], f"{path}.half_at"),
        _tally(fields[6], f"{path}.recent"),
        _tally(fields[7], f"{path}.before"),
        tuple(number(lease, f"{path}.leases") for lease in leases),
        whole(fields[9], f"{path}.proved"),
    )


def _tally(value: object, path: str) -> tuple[int, int]:
    calls, failed = at_most(value, 2, path, exactly=True)
    total = whole(calls, f"{path}[0]")
    return total, whole(failed, f"{path}[1]", most=total)


def _rate_out(rate: StartRate) -> list[Plain]:
    return [
        rate.refused, rate.since, rate.tokens, rate.at, rate.count, rate.counting_from, rate.achieved
    ]  # fmt: skip


def _rate_in(value: object, path: str) -> StartRate:
    fields = at_most(value, 7, path, exactly=True)
    return StartRate(
        optional(fields[0], f"{path}.refused", least=1e-6, most=_LARGEST_LIMIT),
        number(fields[1], f"{path}.since"),
        number(fields[2], f"{path}.tokens", least=-_LARGEST_LIMIT, most=_LARGEST_LIMIT),
        number(fields[3], f"{path}.at"),
        whole(fields[4], f"{path}.count"),
        number(fields[5], f"{path}.counting_from"),
        number(fields[6], f"{path}.achieved", most=_LARGEST_LIMIT),
    )


def _one_of(kind: type[Choice], value: object, path: str) -> Choice:
    for each in kind:
        if each.value == value:
            return each
    raise InvalidValue(path, value, ", ".join(sorted(kind)))
