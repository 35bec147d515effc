"""The client for code without asyncio: the same client, driven in a thread of its own.

Nothing of the protocol is here: each call hands a coroutine of :class:`TenantryClient` to the loop of that
thread and waits for its end.
"""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Self, TypeVar

from tenantry.delivery.client import TenantryClient
from tenantry.delivery.client_exchange import Surroundings
from tenantry.delivery.client_wire import BulkProgress, Job, Retries, Ticket, WaitReason
from tenantry.kernel.errors import Closed
from tenantry.kernel.instant import Seconds
from tenantry.kernel.verdict import Refusal
from tenantry.queue.model import JobState, NewJob

T = TypeVar("T")


class SyncTenantryClient:
    """:class:`~tenantry.delivery.client.TenantryClient` with calls that block. Safe to call from any
    thread, not across a fork. Use it as a context manager, or :meth:`close` it. Parameters and errors are
    those of the other.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        retries: Retries | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._client = TenantryClient(base_url, api_key, retries=retries, surroundings=surroundings)
        self._loop = asyncio.new_event_loop()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="tenantry client", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Sync{self._client!r}"

    def submit(self, job: NewJob) -> Ticket | Refusal:
        """See :meth:`TenantryClient.submit`."""
        return self._run(self._client.submit(job))

    def submit_batch(self, jobs: Sequence[NewJob]) -> tuple[Ticket, ...] | Refusal:
        """See :meth:`TenantryClient.submit_batch`."""
        return self._run(self._client.submit_batch(jobs))

    def submit_bulk(self, jobs: Sequence[NewJob]) -> BulkProgress | Refusal:
        """See :meth:`TenantryClient.submit_bulk`."""
        return self._run(self._client.submit_bulk(jobs))

    def bulk(self, bulk_id: str) -> BulkProgress | None:
        """See :meth:`TenantryClient.bulk`."""
        return self._run(self._client.bulk(bulk_id))

    def job(self, job_id: str) -> Job | None:
        """See :meth:`TenantryClient.job`."""
        return self._run(self._client.job(job_id))

    def jobs(self, *, state: JobState | None = None, limit: int = 100) -> tuple[Job, ...]:
        """See :meth:`TenantryClient.jobs`."""
        return self._run(self._client.jobs(state=state, limit=limit))

    def explain(self, job_id: str) -> tuple[WaitReason, ...] | None:
        """See :meth:`TenantryClient.explain`."""
        return self._run(self._client.explain(job_id))

    def cancel(self, job_id: str) -> JobState | None:
        """See :meth:`TenantryClient.cancel`."""
        return self._run(self._client.cancel(job_id))

    def wait(self, job_id: str, *, at_most: Seconds = 60.0) -> Job | None:
        """See :meth:`TenantryClient.wait`."""
        return self._run(self._client.wait(job_id, at_most=at_most))

    def close(self) -> None:
        """End the thread and give the connections back. Idempotent; calls still running raise
        :class:`Closed`."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._wind_down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        with self._closing:
            if self._closed:
                call.close()
                raise Closed("this client is closed")
            running = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return running.result()
        except CancelledError:
            raise Closed("the client was closed during the call") from None
        except BaseException:  # an interrupt of the thread that waits ends the call too
            running.cancel()
            raise

    async def _wind_down(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close()
