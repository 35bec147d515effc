"""A thread cannot be stopped: whoever cancels a plain handler waits for it, or it would run twice at once."""

import asyncio
import threading
from collections.abc import Awaitable

import pytest

from tenantry.config.model import TargetSettings
from tenantry.delivery.handlers import Handlers
from tenantry.queue.model import ClaimedJob
from tenantry.testing.jobs import claimed_job

SETTINGS = TargetSettings()
JOB = claimed_job("handler:work")


async def test_a_cancelled_plain_handler_ends_when_its_thread_does_and_with_its_outcome() -> None:
    handlers, begun, go = Handlers(threads=1), threading.Event(), threading.Event()

    @handlers.register("work")
    def work(job: ClaimedJob) -> None:
        begun.set()
        go.wait(10)

    task = asyncio.create_task(handlers.run("work", JOB, SETTINGS))
    await asyncio.to_thread(begun.wait, 10)
    for _ in range(3):
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=0.02)
        assert not done
    go.set()
    assert (await task).succeeded
    handlers.close()


async def test_a_cancelled_plain_handler_that_waits_for_a_thread_never_begins() -> None:
    handlers, begun, go = Handlers(threads=1), threading.Event(), threading.Event()
    seen: list[str] = []

    @handlers.register("work")
    def work(job: ClaimedJob) -> None:
        seen.append(job.id)
        begun.set()
        go.wait(10)

    first = asyncio.create_task(handlers.run("work", JOB, SETTINGS))
    await asyncio.to_thread(begun.wait, 10)
    second = asyncio.create_task(handlers.run("work", JOB, SETTINGS))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(second, 10)
    go.set()
    assert (await first).succeeded
    assert len(seen) == 1
    handlers.close()


async def test_what_a_cancelled_plain_handler_wants_awaited_is_not_begun() -> None:
    handlers, begun, go = Handlers(threads=1), threading.Event(), threading.Event()
    awaited: list[str] = []

    async def rest() -> None:
        awaited.append("begun")

    @handlers.register("work")
    def work(job: ClaimedJob) -> Awaitable[None]:
        begun.set()
        go.wait(10)
        return rest()

    task = asyncio.create_task(handlers.run("work", JOB, SETTINGS))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert awaited == []
    handlers.close()


class Evil(BaseException):
    """What no handler should raise."""


@pytest.mark.parametrize("error", [Evil, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("plain", [False, True])
async def test_whatever_a_handler_raises_ends_its_attempt_and_nothing_else(
    error: type[BaseException], plain: bool
) -> None:
    handlers = Handlers()

    if plain:

        @handlers.register("evil")
        def raises(job: ClaimedJob) -> None:
            raise error("boo")
    else:

        @handlers.register("evil")
        async def raises_too(job: ClaimedJob) -> None:
            raise error("boo")

    outcome = await handlers.run("evil", claimed_job("handler:evil"), TargetSettings())
    assert outcome.error_class == "handler_error"
    handlers.close()
