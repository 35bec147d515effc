"""An HTTP target on loopback that misbehaves on cue: answers, delays, hangs, resets, drips, and gets slow,
refuses or goes away under load.

Small and quick rather than complete: HTTP/1.1 with keep-alive and pipelining, bodies by Content-Length. It
keeps what it received (bounded), counts by path, and lets a test wait for the n-th request instead of for
time to pass::

    async with Target() as target:
        target.at("/flaky").answers_in_turn(503, 200)
        target.at("/busy").serves(10, 0.05).limits(100, retry_after=2)
        ...deliver to target.url + "/flaky", twice...
        await target.received_count(2)
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from tenantry.kernel.errors import Closed, InvalidValue
from tenantry.kernel.instant import Seconds
from tenantry.testing.exchange import Connection, Manner, Received, Then, answer
from tenantry.testing.load import Mood, flapping, limiting, serving, slowing


class Story:
    """How requests are met from now on. Every verb returns the story, and replaces what was said before; but
    ``delays``, ``serves``, ``slows``, ``limits`` and ``flaps`` add to it, the last said outermost."""

    def __init__(self) -> None:
        self._manner: Manner | None = None
        self._turns: deque[Manner] = deque()
        self._moods: list[Mood] = []

    def answers(self, status: int = 200, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Self:
        """An answer, with its Content-Length unless ``headers`` has another."""
        return self._is(Manner(answer(status, headers, body)))

    def answers_in_turn(self, *statuses: int) -> Self:
        """One status a request, in this order; afterwards the last one for ever."""
        if not statuses:
            raise InvalidValue("answers_in_turn", statuses, "at least one status")
        self._is(Manner(answer(statuses[-1])))
        self._turns.extend(Manner(answer(status)) for status in statuses)
        return self

    def says(self, raw: bytes) -> Self:
        """These bytes instead of an answer, then the connection closes."""
        return self._is(Manner(raw, Then.CLOSE))

    def delays(self, seconds: Seconds) -> Self:
        """What was said before (200 unless anything was), ``seconds`` later."""
        if not seconds >= 0:
            raise InvalidValue("delays", seconds, "seconds >= 0")
        self._manner = (self._manner or Manner(answer())).after(seconds)
        self._turns = deque(manner.after(seconds) for manner in self._turns)
        return self

    def hangs(self) -> Self:
        """Nothing, ever."""
        return self._is(Manner(b"", Then.HANG))

    def closes(self) -> Self:
        """The connection ends without an answer."""
        return self._is(Manner(b"", Then.CLOSE))

    def resets(self) -> Self:
        """The connection is reset (RST) without an answer."""
        return self._is(Manner(b"", Then.RESET))

    def floods(self, status: int = 200) -> Self:
        """A body without end, as fast as it is read."""
        return self._is(Manner(_endless(status), Then.FLOOD))

    def drips(self, status: int = 200) -> Self:
        """A body that starts and never goes on."""
        return self._is(Manner(_endless(status) + b"drip", Then.HANG))

    def trickles(self, body: bytes, every: Seconds, status: int = 200) -> Self:
        """A slow body: a byte each ``every`` seconds, and all of it in the end."""
        if not body:
            raise InvalidValue("trickles", body, "a body of at least one byte")
        if not every >= 0:
            raise InvalidValue("trickles", every, "seconds >= 0")
        head = answer(status, {"Content-Length": str(len(body))})
        return self._is(Manner(head, Then.TRICKLE, body=body, every=every))

    def serves(self, at_once: int, takes: Seconds, *, line: int | None = None) -> Self:
        """What was said before, but as a server with so much capacity: ``at_once / takes`` a second. Others
        wait in line; where more than ``line`` would wait, 503."""
        return self._under(serving(at_once, takes, line))

    def slows(self, curve: Callable[[int], Seconds]) -> Self:
        """What was said before, but after the seconds that ``curve`` gives for the number in flight."""
        return self._under(slowing(curve))

    def limits(self, rate: float, *, burst: float = 0.0, retry_after: Seconds | None = None) -> Self:
        """What was said before, at most ``rate`` times a second with ``burst`` on top; else 429 with
        ``Retry-After``: what is right, or ``retry_after``."""
        return self._under(limiting(rate, burst, retry_after))

    def flaps(self, up_for: Seconds, down_for: Seconds) -> Self:
        """What was said before for ``up_for`` seconds, then resets for ``down_for``, and so on."""
        return self._under(flapping(up_for, down_for))

    def _under(self, mood: Mood) -> Self:
        self._moods.append(mood)
        return self

    def _is(self, manner: Manner) -> Self:
        self._manner = manner
        self._turns.clear()
        self._moods.clear()
        return self

    def _next(self, now: float) -> Manner | None:
        manner = self._turns.popleft() if self._turns else self._manner
        if not self._moods:
            return manner
        return _mooded(self._moods, now, manner or Manner(answer()))


class Target(Story):
    """A target on loopback. Its own verbs are for all paths, those of :meth:`at` for one. One event loop's.

    ``received``: the newest ``remember`` requests, bodies included. ``total``, ``by_path`` (without the
    query) and ``connections`` count from the start. ``port`` 0 takes a free one.
    """

    def __init__(self, *, port: int = 0, remember: int = 10_000) -> None:
        super().__init__()
        self.received: deque[Received] = deque(maxlen=remember)
        self.by_path: Counter[str] = Counter()
        self.total = 0
        self.connections = 0
        self._port = port
        self._server: asyncio.Server | None = None
        self._open: set[Connection] = set()
        self._at: dict[str, Story] = {}
        self._ok = Manner(answer())
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @classmethod
    async def start(cls, *, port: int = 0, remember: int = 10_000) -> Self:
        """A target that listens already; end it with :meth:`close`."""
        return await cls(port=port, remember=remember).__aenter__()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connected, "127.0.0.1", self._port, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops listening and drops every connection. Calling it again does nothing."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for connection in list(self._open):
            connection.drop()
        await server.wait_closed()

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``, without a slash at the end. Raises :class:`Closed` unless it listens."""
        if self._server is None:
            raise Closed("the target does not listen: async with Target() as target, or await Target.start()")
        return f"http://127.0.0.1:{self._port}"

    def at(self, path: str) -> Story:
        """The story of one path (without its query), which goes before the target's own."""
        return self._at.setdefault(path, Story())

    async def received_count(self, count: int) -> None:
        """Returns once ``count`` requests have come in all. Bound it with ``asyncio.timeout``."""
        if self.total < count:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((count, future))
            await future

    def _connected(self) -> Connection:
        self.connections += 1
        return Connection(self._meets, self._open)

    def _meets(self, request: Received) -> Manner:
        path = request.path.partition("?")[0]
        self.received.append(request)
        self.by_path[path] += 1
        self.total += 1
        if self._waiting:
            self._wake()
        story = self._at.get(path)
        now = asyncio.get_running_loop().time()
        return (story._next(now) if story is not None else None) or self._next(now) or self._ok

    def _wake(self) -> None:
        for count, future in self._waiting:
            if count <= self.total and not future.done():
                future.set_result(None)
        self._waiting = [(count, future) for count, future in self._waiting if not future.done()]


def _mooded(moods: Sequence[Mood], now: float, manner: Manner) -> Manner:
    """The manner under all moods, the last of them outermost."""
    if not moods:
        return manner
    return moods[-1](now, lambda: _mooded(moods[:-1], now, manner))


def _endless(status: int) -> bytes:
    return answer(status, {"Content-Length": str(1 << 40)})


__all__ = ["Received", "Story", "Target"]
