"""Turns: mutual exclusion for sections of a microsecond, without a convoy.

A turn is a list that holds one token; whoever pops it has the turn, and appends it when done. ``list.pop``
and ``list.append`` are atomic, on the free-threaded interpreter too, so the two together are a lock. Unlike
:class:`threading.Lock` a turn is never handed to a thread that sleeps: with a lock, as soon as two threads
meet each decision wakes the next thread, and 16 threads decide ten times slower than one. Here the others let
the processor go until the holder, which was interrupted once in its 5 ms, is done."""

import time
from typing import Final

Turn = list[None]

STRIPES: Final = 64
"""Buckets share so many turns: a bucket needs no lock of its own, and few pairs of threads meet."""


def stripes() -> tuple[Turn, ...]:
    """A set of turns, all free."""
    return tuple([None] for _ in range(STRIPES))


def take_turn(turn: Turn) -> None:
    """Take the turn, waiting for it where another has it. The caller appends to it afterwards."""
    try:
        turn.pop()
    except IndexError:
        wait_for_turn(turn)


def wait_for_turn(turn: Turn) -> None:
    """Take the turn when its holder has ended. The caller appends to it afterwards."""
    while True:
        # Not waiting for time: this lets the holder run, which is within a microsecond of its end.
        time.sleep(0)  # noqa: TID251
        try:
            return turn.pop()
        except IndexError:
            continue
