"""One attempt over HTTP: prepare the request, exchange it, read what came back.

Preparing and reading are pure; :class:`HttpDelivery` is the loop around them and owns the connections.
"""

import asyncio
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from types import TracebackType
from typing import Self

import aiohttp
from yarl import URL

from tenantry.config.model import TargetSettings
from tenantry.config.url import check_url
from tenantry.delivery.failures import class_of_exception
from tenantry.delivery.guard import AddressRule, gated_sockets
from tenantry.delivery.resolver import GuardedResolver, LookUp, system_look_up
from tenantry.delivery.signature import signature_header, signing_keys
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import Closed, InvalidValue
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.lanes.headers import forwarded
from tenantry.lanes.outcome import Outcome, class_of_status, excerpt_of
from tenantry.lanes.retry import parse_http_date, parse_retry_after
from tenantry.queue.model import ClaimedJob

ANSWER_LIMIT = 64 * 1024
"""Bytes of an answer's body that are read at most; the connection of a longer one is closed."""

_HEADER_SAFE = re.compile(r"[\t\x20-\x7e]{1,255}", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """How a node delivers over HTTP. Durations in seconds.

    ``connections``: most exchanges at once, >= 1; more callers wait, and their waiting is charged to nobody.
    ``connect_share``: the part of a target's timeout in which a connection must stand, in (0, 1].
    ``keepalive_for``: how long an idle connection is kept, >= 0. Below the five seconds after which many
    servers close theirs: a request sent into a closing connection is a failed attempt. ``addresses``: what
    may be connected to. ``tls``: a context that trusts a private authority, or None for the system's.
    """

    connections: int = 256
    connect_share: float = 0.5
    keepalive_for: Seconds = 4.0
    addresses: AddressRule = field(default_factory=AddressRule)
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        if self.connections < 1:
            raise InvalidValue("delivery.connections", self.connections, "an integer >= 1")
        if not 0 < self.connect_share <= 1:
            raise InvalidValue("delivery.connect_share", self.connect_share, "a number in (0, 1]")
        if not 0 <= self.keepalive_for <= 3600:
            raise InvalidValue("delivery.keepalive_for", self.keepalive_for, "seconds from 0 to 3600")


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """What will be sent. ``headers`` carry the signature, so they are not shown."""

    url: URL = field(repr=False)
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


class Unsendable(Exception):
    """The job cannot be sent as it is; ``outcome`` says why. Never leaves this room."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.error_class)


class HttpDelivery:
    """Delivers over HTTP on shared connections. Use as ``async with``; belongs to one event loop.

    :meth:`deliver` may run many times at once. ``look_up`` resolves names (blocking, called in threads).
    """

    def __init__(
        self,
        settings: DeliverySettings | None = None,
        *,
        clock: Clock | None = None,
        look_up: LookUp = system_look_up,
    ) -> None:
        self._settings = settings or DeliverySettings()
        self._look_up = look_up
        self._clock: Clock = clock or SystemClock()
        self._user_agent = f"Tenantry/{version('tenantry')}"
        self._permits = asyncio.Semaphore(self._settings.connections)
        self._session: aiohttp.ClientSession | None = None
        self._resolver: GuardedResolver | None = None

    async def __aenter__(self) -> Self:
        rule = self._settings.addresses
        self._resolver = GuardedResolver(rule, look_up=self._look_up)
        connector = aiohttp.TCPConnector(
            limit=self._settings.connections,
            keepalive_timeout=self._settings.keepalive_for,
            ssl=self._settings.tls or True,
            resolver=self._resolver,
            use_dns_cache=False,
            socket_factory=gated_sockets(rule),
        )
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, trust_env=False
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, resolver = self._session, self._resolver
        self._session = self._resolver = None
        if session is not None:
            await session.close()
        if resolver is not None:
            await resolver.close()

    async def deliver(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        """One attempt of ``job``. Returns how it ended; raises nothing for what the target did.

        Takes at most ``settings.timeout_for`` once a connection permit is free; ``busy_for`` counts from
        then. Cancelling it closes the connection. Raises :class:`Closed` outside ``async with``.
        """
        session = self._session
        if session is None:
            raise Closed("HttpDelivery is used as a context manager: async with HttpDelivery() as delivery")
        async with self._permits:
            began = self._clock.monotonic()
            outcome = await self._attempt(session, job, settings)
            return outcome.lasting(self._clock.monotonic() - began)

    async def _attempt(
        self, session: aiohttp.ClientSession, job: ClaimedJob, settings: TargetSettings
    ) -> Outcome:
        try:
            request = prepare(job, settings, at=self._clock.now(), user_agent=self._user_agent)
        except Unsendable as refused:
            return refused.outcome
        try:
            return await self._exchange(session, request, settings.timeout_for)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return class_of_exception(error)

    async def _exchange(
        self, session: aiohttp.ClientSession, request: PreparedRequest, timeout_for: Seconds
    ) -> Outcome:
        limits = _timeouts(timeout_for, self._settings.connect_share)
        async with session.post(
            request.url, data=request.body, headers=request.headers, timeout=limits, allow_redirects=False
        ) as response:
            body = await _start_of_body(response)
            return read_answer(response.status, response.headers, body, now=self._clock.now())


def prepare(job: ClaimedJob, settings: TargetSettings, *, at: Timestamp, user_agent: str) -> PreparedRequest:
    """The request for one attempt, signed at ``at``. Pure. Raises :class:`Unsendable`."""
    headers = {
        **forwarded(job.headers),
        "User-Agent": user_agent,
        "Content-Type": _content_type(job.content_type),
        "Accept-Encoding": "identity",  # what comes back is cut, not unpacked
        "webhook-id": job.id,
        "webhook-timestamp": str(int(at)),
    }
    if settings.secret is not None:
        headers["webhook-signature"] = _sign(settings.secret, job, int(at))
    # encoded: the target gets the path and query as its tenant wrote them
    return PreparedRequest(URL(_checked_url(job, settings), encoded=True), job.payload, headers)


def read_answer(status: int, headers: Mapping[str, str], body: bytes, *, now: Timestamp) -> Outcome:
    """What an answer means. Pure. The status alone decides: a 2xx with a broken body is a success."""
    error_class = class_of_status(status)
    if error_class == "ok":
        return Outcome("ok", status)
    asked_at = parse_http_date(headers.get("Date"))
    hint = parse_retry_after(headers.get("Retry-After"), now=now if asked_at is None else asked_at)
    return Outcome(error_class, status, hint, excerpt_of(body))


async def _start_of_body(response: aiohttp.ClientResponse) -> bytes:
    """At most the first 64 KiB. The connection lives on only if the body ended by itself within them."""
    kept = bytearray()
    try:
        async for chunk in response.content.iter_any():
            kept += chunk
            if len(kept) > ANSWER_LIMIT:
                response.close()
                break
    except (aiohttp.ClientError, TimeoutError, OSError):
        response.close()  # the status stands: what is missing is only the body's end
    return bytes(kept[:ANSWER_LIMIT])


def _checked_url(job: ClaimedJob, settings: TargetSettings) -> str:
    url = settings.url if settings.url is not None else str(job.target)
    if settings.url is None and ":" not in url:
        raise Unsendable(Outcome("unknown_target", excerpt="the target is a name, and no URL is set for it"))
    try:
        check_url(url)
    except InvalidValue as problem:
        raise Unsendable(Outcome("invalid_url", excerpt=excerpt_of(problem.hint))) from None
    return url


def _content_type(text: str) -> str:
    if _HEADER_SAFE.fullmatch(text):
        return text
    raise Unsendable(
        Outcome("invalid_content_type", excerpt="printable ASCII of 1 to 255 characters is accepted")
    )


def _sign(secret: str, job: ClaimedJob, timestamp: int) -> str:
    try:
        keys = signing_keys(secret)
    except InvalidValue:
        raise Unsendable(Outcome("invalid_secret", excerpt="expected whsec_ and base64")) from None
    return signature_header(keys, message_id=job.id, timestamp=timestamp, body=job.payload)


@lru_cache(maxsize=256)
def _timeouts(timeout_for: Seconds, connect_share: float) -> aiohttp.ClientTimeout:
    # the ceiling would round timeouts above five seconds up to the next whole one
    return aiohttp.ClientTimeout(
        total=timeout_for, connect=timeout_for * connect_share, ceil_threshold=float("inf")
    )
