"""The client of Tenantry's HTTP API, for asyncio.

A submit is retried under one idempotency key (made here unless the job has one), so that a retry never
submits twice. It comes back when it was told to, a little later so that a crowd comes back spread, and
never early.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self
from urllib.parse import quote

import msgspec

from tenantry.config.api_keys import parse_api_key
from tenantry.config.url import check_url
from tenantry.delivery import client_wire as wire
from tenantry.delivery.client_exchange import Exchanger, Request, Surroundings
from tenantry.delivery.client_wire import BulkProgress, Job, Reply, Retries, Ticket, WaitReason
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Seconds
from tenantry.kernel.verdict import Refusal
from tenantry.queue.model import JobState, NewJob

NDJSON = "application/x-ndjson"


class TenantryClient:
    """One tenant's client. Use it as an async context manager, or :meth:`close` it; for the tasks of one
    event loop.

    ``base_url``: ``https://host`` of the server, with a path where it stands behind one. Raises
    :class:`InvalidValue` at once for a URL or key that cannot be one, without showing the key.

    Every call raises :class:`~tenantry.delivery.client_wire.ServiceUnavailable` when the attempts or the
    time ran out, :class:`~tenantry.delivery.client_wire.CredentialRefused` for a key that is not accepted,
    and :class:`~tenantry.delivery.client_wire.ServiceFault` for an answer that is no Tenantry server's.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        retries: Retries | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        check_url(base_url, path="base_url")
        if "?" in base_url:
            raise InvalidValue("base_url", base_url.partition("?")[0], "a URL without a query")
        parse_api_key(api_key)
        self._base, self._surroundings = base_url.rstrip("/"), surroundings or Surroundings()
        self._exchanger = Exchanger(self._base, api_key, retries or Retries(), self._surroundings)

    def __repr__(self) -> str:
        return f"TenantryClient({self._base!r})"

    async def submit(self, job: NewJob) -> Ticket | Refusal:
        """Submit one job. A ticket means durably accepted; a refusal names its rule and when to come back.

        Raises :class:`InvalidValue` with the path of a value that is not accepted.
        """
        keyed = self._keyed(job)
        reply = await self._exchanger.exchange(Request("POST", "/v1/jobs", wire.encode_job(keyed)))
        return wire.decode(reply, Ticket) if reply.status == 202 else _refused(reply)

    async def submit_batch(self, jobs: Sequence[NewJob]) -> tuple[Ticket, ...] | Refusal:
        """Submit many jobs, all or none; tickets in the order given. Raises as :meth:`submit`, naming the
        row."""
        keyed = [self._keyed(job) for job in jobs]
        reply = await self._exchanger.exchange(Request("POST", "/v1/batches", wire.encode_jobs(keyed)))
        if reply.status != 202:
            return _refused(reply)
        return tuple(wire.decode(reply, _Tickets).jobs)

    async def submit_bulk(self, jobs: Sequence[NewJob]) -> BulkProgress | Refusal:
        """Store a set larger than the bound, fed in as that has room. A refusal: the tenant has as much
        stored as it may. Its jobs carry no idempotency keys, so it is tried again only where it surely was
        not received: after an error, look before you repeat it."""
        body = wire.encode_lines(list(jobs))
        reply = await self._exchanger.exchange(Request("POST", "/v1/bulk", body, NDJSON, repeatable=False))
        return wire.decode(reply, BulkProgress) if reply.status == 202 else _refused(reply)

    async def bulk(self, bulk_id: str) -> BulkProgress | None:
        """How far a bulk set is; None where there is none."""
        reply = await self._exchanger.exchange(Request("GET", f"/v1/bulk/{_part(bulk_id)}"))
        return None if wire.is_absent(reply) else wire.decode(_expect(reply, 200), BulkProgress)

    async def job(self, job_id: str) -> Job | None:
        """A job in any state; None where there is none, or none any more."""
        reply = await self._exchanger.exchange(Request("GET", f"/v1/jobs/{_part(job_id)}"))
        return None if wire.is_absent(reply) else wire.decode(_expect(reply, 200), Job)

    async def jobs(self, *, state: JobState | None = None, limit: int = 100) -> tuple[Job, ...]:
        """The newest jobs, at most ``limit`` (1 to 1,000), in one state or any."""
        query = f"?limit={limit}" + (f"&state={state.value}" if state else "")
        reply = await self._exchanger.exchange(Request("GET", f"/v1/jobs{query}"))
        return tuple(wire.decode(_expect(reply, 200), _Jobs).jobs)

    async def explain(self, job_id: str) -> tuple[WaitReason, ...] | None:
        """What a waiting job waits for, most decisive first; None where there is no such job."""
        reply = await self._exchanger.exchange(Request("GET", f"/v1/jobs/{_part(job_id)}/explanation"))
        return None if wire.is_absent(reply) else tuple(wire.decode(_expect(reply, 200), _Reasons).reasons)

    async def cancel(self, job_id: str) -> JobState | None:
        """Cancel a job that has not started. The state found: CANCELLED means done, now or before; any
        other means that nothing was changed. None where there is no such job."""
        reply = await self._exchanger.exchange(Request("POST", f"/v1/jobs/{_part(job_id)}/cancel", b""))
        if wire.is_absent(reply):
            return None
        if reply.status == 409 and (found := wire.found_state(reply)):
            return found
        return wire.decode(_expect(reply, 200), _State).state

    async def wait(self, job_id: str, *, at_most: Seconds = 60.0) -> Job | None:
        """Ask until the job has ended, or for about ``at_most`` seconds: look at :attr:`Job.ended`. None
        where there is no such job. It asks twenty times a second at first and every two seconds in the
        end."""
        surroundings = self._surroundings
        until, step = surroundings.clock.monotonic() + at_most, 0.05
        while True:
            found = await self.job(job_id)
            left = until - surroundings.clock.monotonic()
            if found is None or found.ended or left <= 0:
                return found
            await surroundings.pause(min(left, step * surroundings.randomness.uniform(0.8, 1.2)))
            step = min(2.0, step * 1.5)

    async def close(self) -> None:
        """Give the connections back. Idempotent; a closed client raises :class:`Closed`."""
        await self._exchanger.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _keyed(self, job: NewJob) -> NewJob:
        if job.idempotency_key is not None:
            return job
        return replace(job, idempotency_key=self._surroundings.randomness.time_ordered_id())


class _Tickets(msgspec.Struct):
    jobs: list[Ticket]


class _Jobs(msgspec.Struct):
    jobs: list[Job]


class _Reasons(msgspec.Struct):
    reasons: list[WaitReason]


class _State(msgspec.Struct):
    state: JobState


def _refused(reply: Reply) -> Refusal:
    refusal = wire.refusal_of(reply)
    if refusal is None:
        raise wire.error_of(reply)
    return refusal


def _expect(reply: Reply, status: int) -> Reply:
    if reply.status != status:
        raise wire.error_of(reply)
    return reply


def _part(text: str) -> str:
    """An id as one part of a path, whatever stands in it."""
    return quote(text, safe="")
