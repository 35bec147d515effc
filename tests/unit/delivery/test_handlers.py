"""Python callables as targets."""

import asyncio
import threading
from contextlib import suppress
from functools import partial

import pytest

from tenantry.config.model import TargetSettings
from tenantry.delivery.handlers import Handlers, Reject, RetryLater
from tenantry.delivery.router import Router
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.events import Event
from tenantry.lanes.model import HTTP, Kind
from tenantry.lanes.outcome import Fault, Outcome
from tenantry.lanes.retry import Step, settle_rule
from tenantry.queue.events import HandlerOverran
from tenantry.queue.model import ClaimedJob
from tenantry.testing.clock import ManualClock
from tenantry.testing.jobs import claimed_job

SETTINGS = TargetSettings()
JOB = claimed_job()
TO_HANDLER = claimed_job("handler:work")


async def outcome_of(handler: object, settings: TargetSettings = SETTINGS) -> Outcome:
    handlers = Handlers(threads=2)
    handlers.register("work")(handler)  # type: ignore[type-var]
    try:
        return await Router(handlers).execute(TO_HANDLER, settings)
    finally:
        handlers.close()


async def test_an_async_handler_gets_the_job_and_its_return_is_success() -> None:
    seen: list[ClaimedJob] = []

    async def handler(job: ClaimedJob) -> str:
        seen.append(job)
        return "ignored"

    assert (await outcome_of(handler)).error_class == "ok"
    assert seen == [TO_HANDLER]


async def test_a_plain_handler_runs_in_a_thread_of_its_own() -> None:
    names: list[str] = []

    def handler(job: ClaimedJob) -> None:
        names.append(threading.current_thread().name)

    assert (await outcome_of(handler)).succeeded
    assert names[0].startswith("tenantry-handler")


async def test_partials_and_callable_objects_with_an_async_call_are_awaited() -> None:
    seen: list[str] = []

    async def work(prefix: str, job: ClaimedJob) -> None:
        seen.append(prefix + job.payload.decode())

    class Worker:
        async def __call__(self, job: ClaimedJob) -> None:
            await work("object ", job)

    assert (await outcome_of(partial(work, "partial "))).succeeded
    assert (await outcome_of(Worker())).succeeded
    assert (await outcome_of(lambda job: work("lambda ", job))).succeeded
    assert [text.split()[0] for text in seen] == ["partial", "object", "lambda"]


def raising(error: BaseException) -> object:
    def handler(job: ClaimedJob) -> None:
        raise error

    return handler


def raising_async(error: BaseException) -> object:
    async def handler(job: ClaimedJob) -> None:
        raise error

    return handler


@pytest.mark.parametrize("kind", [raising, raising_async])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such user"),
        StopIteration(),
        SystemExit(3),
        TimeoutError("mine"),
        asyncio.CancelledError(),
    ],
)
async def test_whatever_a_handler_raises_is_its_own_attempts_end(kind: object, error: BaseException) -> None:
    outcome = await outcome_of(kind(error))  # type: ignore[operator]
    assert outcome.error_class == "handler_error"
    assert outcome.fault is Fault.MESSAGE
    assert type(error).__name__ in outcome.excerpt


@pytest.mark.parametrize("kind", [raising, raising_async])
async def test_reject_ends_the_job_at_once(kind: object) -> None:
    outcome = await outcome_of(kind(Reject("no such user")))  # type: ignore[operator]
    assert (outcome.error_class, outcome.excerpt) == ("rejected", "no such user")
    assert settle_rule(1, outcome, SETTINGS, 0.5).step is Step.DEAD


@pytest.mark.parametrize("kind", [raising, raising_async])
async def test_retry_later_names_when_to_come_back(kind: object) -> None:
    outcome = await outcome_of(kind(RetryLater(90)))  # type: ignore[operator]
    assert (outcome.error_class, outcome.retry_after) == ("retry_later", 90.0)
    assert settle_rule(1, outcome, SETTINGS, 0.5).retry_for >= 90.0


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_retry_later_takes_no_meaningless_wait(seconds: float) -> None:
    with pytest.raises(InvalidValue, match=r"RetryLater\.seconds"):
        RetryLater(seconds)


async def test_an_async_handler_is_cancelled_at_its_timeout() -> None:
    cancelled = asyncio.Event()

    async def handler(job: ClaimedJob) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    outcome = await outcome_of(handler, TargetSettings(timeout_for=0.01))
    assert outcome.error_class == "timeout"
    assert cancelled.is_set()


async def test_an_async_handler_that_swallows_its_cancellation_has_timed_out_all_the_same() -> None:
    async def handler(job: ClaimedJob) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()  # and returns as if it had succeeded

    assert (await outcome_of(handler, TargetSettings(timeout_for=0.01))).error_class == "timeout"


@pytest.mark.parametrize("error", [RetryLater(1), Reject("no"), ValueError("x"), TimeoutError()])
async def test_what_a_handler_raises_after_its_time_is_a_timeout(error: Exception) -> None:
    async def handler(job: ClaimedJob) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise error

    assert (await outcome_of(handler, TargetSettings(timeout_for=0.01))).error_class == "timeout"


async def test_a_handler_that_goes_on_after_its_cancellation_is_told_of_and_keeps_its_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its job must not run elsewhere beside it, and its slot must not be given away while it is used."""
    monkeypatch.setattr("tenantry.delivery.handlers._PATIENCE", 0.01)
    told: list[Event] = []
    heard, go = asyncio.Event(), asyncio.Event()

    def events(event: Event) -> None:
        told.append(event)
        heard.set()

    handlers = Handlers(events=events)

    @handlers.register("work")
    async def stubborn(job: ClaimedJob) -> None:
        while not go.is_set():
            with suppress(asyncio.CancelledError):
                await go.wait()

    running = asyncio.create_task(Router(handlers).execute(TO_HANDLER, TargetSettings(timeout_for=0.01)))
    async with asyncio.timeout(5):
        await heard.wait()
    assert told == [HandlerOverran("work", TO_HANDLER.id, TO_HANDLER.tenant, 0.01)]
    assert not running.done()
    go.set()
    outcome = await running
    assert (outcome.error_class, outcome.busy_for > 0.01, len(told)) == ("timeout", True, 1)
    handlers.close()


async def test_a_handler_that_ends_when_it_is_cancelled_is_not_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tenantry.delivery.handlers._PATIENCE", 0.0)
    told: list[Event] = []
    handlers = Handlers(events=told.append)

    @handlers.register("work")
    async def obedient(job: ClaimedJob) -> None:
        await asyncio.Event().wait()

    await Router(handlers).execute(TO_HANDLER, TargetSettings(timeout_for=0.01))
    await asyncio.wait([asyncio.create_task(asyncio.sleep(0))])
    assert told == []
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "the cancellation was the limit's own"
    handlers.close()


async def test_a_plain_handler_keeps_its_slot_past_its_timeout_rather_than_run_twice() -> None:
    release = threading.Event()
    handlers = Handlers(threads=1)

    @handlers.register("work")
    def handler(job: ClaimedJob) -> None:
        release.wait(10)

    running = asyncio.create_task(Router(handlers).execute(TO_HANDLER, TargetSettings(timeout_for=0.001)))
    done, _ = await asyncio.wait({running}, timeout=0.05)
    assert not done
    release.set()
    assert (await running).succeeded
    handlers.close()


async def test_cancelling_the_worker_is_not_taken_for_the_handlers_failure() -> None:
    started = asyncio.Event()

    async def handler(job: ClaimedJob) -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(outcome_of(handler))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_unknown_handler_is_ours_and_retried() -> None:
    outcome = await Router(Handlers()).execute(TO_HANDLER, SETTINGS)
    assert (outcome.error_class, outcome.fault) == ("unknown_handler", Fault.OURS)
    assert settle_rule(1, outcome, SETTINGS, 0.5).step is Step.RETRY


def test_names_are_registered_once_and_must_be_identifiers() -> None:
    handlers = Handlers()
    handlers.register("work")(print)
    with pytest.raises(InvalidValue, match="handler name"):
        handlers.register("work")
    with pytest.raises(InvalidValue, match="handler name"):
        handlers.register("")
    with pytest.raises(InvalidValue, match="callable"):
        handlers.register("other")(7)  # type: ignore[type-var]
    with pytest.raises(InvalidValue, match="threads"):
        Handlers(threads=0)


class Elsewhere:
    """A stand-in for HTTP that takes two seconds, or fails as we should not."""

    def __init__(self, clock: ManualClock, error: Exception | None = None) -> None:
        self.clock, self.error = clock, error

    async def deliver(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        self.clock.advance(2.0)
        if self.error is not None:
            raise self.error
        return Outcome("ok", 200)


async def test_the_router_sends_the_rest_over_http_and_times_it() -> None:
    clock = ManualClock()
    outcome = await Router(http=Elsewhere(clock), clock=clock).execute(JOB, SETTINGS)
    assert outcome == Outcome("ok", 200, busy_for=2.0)


async def test_a_set_url_may_lead_to_a_handler() -> None:
    outcome = await Router(Handlers()).execute(JOB, TargetSettings(url="handler:gone"))
    assert "gone" in outcome.excerpt


async def test_our_own_bug_is_an_outcome_that_blames_us_and_shows_no_secret() -> None:
    clock = ManualClock()
    outcome = await Router(http=Elsewhere(clock, KeyError("hunter2"))).execute(JOB, SETTINGS)
    assert (outcome.error_class, outcome.fault, outcome.excerpt) == ("internal", Fault.OURS, "KeyError")


def test_a_node_announces_what_it_can_run() -> None:
    handlers = Handlers()
    handlers.register("work")(print)
    assert Router(handlers, Elsewhere(ManualClock())).kinds == {HTTP, Kind("handler:work")}
    assert Router(handlers).kinds == {Kind("handler:work")}
    assert Router().kinds == frozenset()
