"""One request of the client until there is an answer to rely on: attempts, waits, and when to give up."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp

from tenantry.delivery import client_wire as wire
from tenantry.delivery.client_wire import Reply, Retries
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import Closed
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.randomness import Randomness, SystemRandomness
from tenantry.lanes.retry import parse_retry_after

MOST_READ = 64 * 1_048_576
"""Bytes of an answer that are read at most."""

_ACCEPT = f"{wire.JSON}, application/problem+json"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a client takes from outside: time, chance, and how it waits (so that tests need not)."""

    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)
    pause: Callable[[Seconds], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True, slots=True)
class Request:
    """``repeatable``: sending it twice is the same as once, whatever became of the first."""

    method: str
    path: str
    body: bytes | None = field(default=None, repr=False)
    media_type: str = wire.JSON
    repeatable: bool = True


@dataclass(frozen=True, slots=True)
class _Lost:
    """No answer. ``received``: whether the server may have got the request all the same."""

    reason: str
    received: bool


class Exchanger:
    """Owns the connections. For the tasks of one event loop; it opens when it is first used."""

    def __init__(self, base: str, api_key: str, retries: Retries, surroundings: Surroundings) -> None:
        self._base, self._retries, self._surroundings = base, retries, surroundings
        self._headers = {"authorization": f"Bearer {api_key}", "accept": _ACCEPT}
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def exchange(self, request: Request) -> Reply:
        """The answer, whatever its status, after as many attempts as it takes and is allowed.

        Raises :class:`~tenantry.delivery.client_wire.ServiceUnavailable` where there is none, and
        :class:`Closed`. A 429 or 503 that names the queue's rule is an answer when the time is up.
        """
        deadline = Instant(self._surroundings.clock.monotonic() + self._retries.deadline_for)
        failed = 0
        while True:
            answer = await self._attempt(request, deadline)
            failed += 1
            if not _is_worth_another(answer, request):
                break
            wait_for = self._wait_for(answer, failed)
            if (
                failed == self._retries.attempts
                or self._surroundings.clock.monotonic() + wait_for >= deadline
            ):
                break
            await self._surroundings.pause(wait_for)
        return _reliable(answer, failed)

    async def close(self) -> None:
        """Idempotent."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _wait_for(self, answer: "Reply | _Lost", failed: int) -> Seconds:
        hint = wire.hint_of(answer) if isinstance(answer, Reply) else None
        return self._retries.wait_for(failed, hint, self._surroundings.randomness.uniform(0.0, 1.0))

    async def _attempt(self, request: Request, deadline: Instant) -> "Reply | _Lost":
        left = deadline - self._surroundings.clock.monotonic()
        try:
            async with asyncio.timeout(min(left, self._retries.attempt_for)):
                return await self._once(request)
        except aiohttp.ClientConnectorError as error:
            return _Lost(type(error).__name__, received=False)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return _Lost(type(error).__name__, received=True)

    async def _once(self, request: Request) -> Reply:
        headers = {"content-type": request.media_type} if request.body else {}
        async with self._opened().request(
            request.method,
            self._base + request.path,
            data=request.body,
            headers=headers,
            allow_redirects=False,  # the key goes to no other place than the one it was given for
        ) as response:
            body = await _read(response)
            now = self._surroundings.clock.now()
            return Reply(
                response.status, body, parse_retry_after(response.headers.get("retry-after"), now=now)
            )

    def _opened(self) -> aiohttp.ClientSession:
        if self._closed:
            raise Closed("this client is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None),  # one clock times an attempt, and it is not this
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MOST_READ:
            raise wire.ServiceFault(response.status, f"the answer is longer than {MOST_READ:,} bytes")
    return b"".join(parts)


def _is_worth_another(answer: Reply | _Lost, request: Request) -> bool:
    """Whether the same request may go through another time, and sending it again does no harm."""
    if isinstance(answer, _Lost):
        return request.repeatable or not answer.received
    if answer.status not in wire.RETRIED:
        return False
    if answer.status == 429 or wire.refusal_of(answer) is not None:  # refused: surely nothing was done
        return wire.hint_of(answer) is not None or request.repeatable
    return request.repeatable


def _reliable(answer: Reply | _Lost, attempts: int) -> Reply:
    """A refusal by a rule is an answer, however often it came; silence and an unreachable store are not."""
    if isinstance(answer, _Lost):
        raise wire.ServiceUnavailable(answer.reason, attempts)
    if answer.status in wire.RETRIED and wire.refusal_of(answer) is None:
        raise wire.ServiceUnavailable(f"status {answer.status}", attempts)
    return answer
