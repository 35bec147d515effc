"""The one drawer of random numbers. Everything else is handed a :class:`Randomness`."""

import random
import secrets
import threading
import time
from typing import Protocol
from uuid import UUID


class Randomness(Protocol):
    """Where chance comes from. Implementations are safe to call from any thread."""

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high]."""
        ...

    def token(self, size: int) -> bytes:
        """``size`` unguessable bytes."""
        ...

    def time_ordered_id(self) -> str:
        """A UUIDv7 (RFC 9562, section 5.7) in its canonical text: ids sort as they were made."""
        ...


class SystemRandomness:
    """The operating system's generator; ids from the wall clock, rising even within a millisecond."""

    def __init__(self) -> None:
        self._random = random.Random()
        self._turn = threading.Lock()
        self._last = 0  # milliseconds << 12 | counter (RFC 9562, section 6.2, method 1)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def token(self, size: int) -> bytes:
        return secrets.token_bytes(size)

    def time_ordered_id(self) -> str:
        entropy = int.from_bytes(secrets.token_bytes(8), "big")
        with self._turn:
            self._last = max(self._last + 1, time.time_ns() // 1_000_000 << 12)
            last = self._last
        return uuid7(last >> 12, (last & 0xFFF) << 68 | entropy)


class SeededRandomness:
    """The same sequence for the same seed, for tests and simulation. Not for secrets."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._millis = 0

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def token(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def time_ordered_id(self) -> str:
        self._millis += 1
        return uuid7(self._millis, self._random.getrandbits(80))


def uuid7(millis: int, entropy: int) -> str:
    """A UUIDv7 from milliseconds since 1970 and 80 bits, of which 74 are used. Pure."""
    value = (millis & (1 << 48) - 1) << 80
    value |= 0x7 << 76 | (entropy >> 68 & 0xFFF) << 64
    value |= 0b10 << 62 | entropy & (1 << 62) - 1
    return str(UUID(int=value))
