"""What the executors promise beside fairness: handles, waiting for room, draining, cancelling, errors."""

import asyncio
import threading
from concurrent.futures import CancelledError

import pytest

from tenantry.config.tiers import Tier
from tenantry.kernel.errors import Closed, InvalidValue, UnknownTenant
from tenantry.kernel.tenant import TierName
from tenantry.kernel.verdict import Refusal
from tenantry.queue.executor import FairExecutor, ThreadFairExecutor

ONE = Tier(TierName("one"), bound=1)


async def answer(value: int) -> int:
    return value


async def test_coroutine_functions_and_plain_functions_give_their_results() -> None:
    async with FairExecutor(slots=2) as executor:
        assert await executor.run("a", answer, 1) == 1
        assert await executor.run("a", lambda: threading.current_thread().name.startswith("fair")) is True


async def test_what_a_callable_raises_is_its_handles_and_the_executor_goes_on() -> None:
    async def wrong() -> None:
        raise LookupError("no such thing")

    def stops() -> None:
        raise StopIteration

    async with FairExecutor(slots=1) as executor:
        with pytest.raises(LookupError, match="no such thing"):
            await executor.run("a", wrong)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await executor.run("a", stops)
        assert await executor.run("a", answer, 2) == 2
        assert executor.stats().finished >= 2


async def test_submit_wait_waits_for_room_first_come_first_served() -> None:
    gate, order = asyncio.Event(), []

    async def work(n: int) -> None:
        order.append(n)
        await gate.wait()

    async with FairExecutor(slots=1, tiers=ONE) as executor:
        executor.submit("a", work, 0)
        executor.submit("a", work, 1)
        assert isinstance(executor.submit("a", work, 2), Refusal)
        waiting = [asyncio.create_task(executor.submit_wait("a", work, n)) for n in (3, 4, 5)]
        gate.set()
        await asyncio.gather(*waiting)
    assert order == [0, 1, 3, 4, 5]


async def test_a_cancelled_handle_withdraws_what_waits_and_cancels_what_runs() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def forever() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with FairExecutor(slots=1) as executor:
        running, waiting = executor.submit("a", forever), executor.submit("a", answer, 1)
        assert not isinstance(running, Refusal)
        assert not isinstance(waiting, Refusal)
        await started.wait()
        waiting.cancel()
        running.cancel()
        await ended.wait()
        assert await executor.run("b", answer, 3) == 3
    assert executor.stats().cancelled == 1
    assert executor.stats().running == 0


async def test_a_handle_cancelled_in_the_moment_that_its_slot_falls_free_keeps_no_slot() -> None:
    release, ran = asyncio.Event(), []

    async def never() -> None:
        ran.append(1)

    async with asyncio.timeout(30), FairExecutor(slots=1) as executor:
        executor.submit("a", release.wait)
        waiting = executor.submit("a", never)
        assert not isinstance(waiting, Refusal)
        await asyncio.sleep(0)
        release.set()  # the running one ends, and starts the waiting one, before the cancellation is heard
        waiting.cancel()
        await asyncio.wait([waiting])
        await asyncio.sleep(0)
        assert await executor.run("b", answer, 3) == 3
    assert ran == []
    assert executor.stats().running == 0


async def test_a_function_in_a_thread_keeps_its_slot_until_it_ends_though_its_handle_was_cancelled() -> None:
    started, release = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        release.wait(30)

    async with FairExecutor(slots=1) as executor:
        handle = executor.submit("a", work)
        assert not isinstance(handle, Refusal)
        await asyncio.to_thread(started.wait, 30)
        handle.cancel()
        other = executor.submit("b", answer, 1)
        assert not isinstance(other, Refusal)
        await asyncio.to_thread(lambda: None)
        assert executor.stats().running == 1
        assert not other.done()
        release.set()
        assert await other == 1


async def test_leaving_with_an_error_cancels_and_leaving_without_drains() -> None:
    ran: list[int] = []

    async def work(n: int) -> None:
        await asyncio.sleep(0)
        ran.append(n)

    async with FairExecutor(slots=1) as executor:
        for n in range(5):
            executor.submit("a", work, n)
    assert ran == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError):
        async with FairExecutor(slots=1) as executor:
            for n in range(5):
                executor.submit("a", work, n + 10)
            raise KeyError
    assert max(ran) < 10
    assert executor.stats().waiting == executor.stats().running == 0


async def test_the_words_of_deficit_round_robin_can_be_seen() -> None:
    gate = asyncio.Event()
    async with FairExecutor(slots=1, quantum=0.5) as executor:
        assert executor.quantum == 0.5
        executor.submit("a", gate.wait)
        executor.submit("b", gate.wait)
        assert list(executor.active()) == ["b"]
        assert executor.deficit("a") < executor.deficit("b")
        assert 0 <= executor.deficit("b") <= 0.5
        gate.set()


async def test_a_dispatch_rate_is_kept_and_wakes_the_executor_by_itself() -> None:
    slow = Tier(TierName("slow"), dispatch_rate=50.0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with FairExecutor(slots=100, tiers=slow) as executor:
        for n in range(60):
            executor.submit("a", answer, n)
    assert loop.time() - began >= 0.15


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"slots": 0}, "slots"),
        ({"slots": 1.5}, "slots"),
        ({"slots": 1, "floor": 2.0}, "floor"),
        ({"slots": 1, "quantum": 0.0}, "quantum"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(settings: dict[str, float], words: str) -> None:
    for face in (FairExecutor, ThreadFairExecutor):
        with pytest.raises(InvalidValue, match=words):
            face(**settings)  # type: ignore[arg-type]


async def test_wrong_calls_are_refused_by_name() -> None:
    with pytest.raises(Closed):
        FairExecutor(slots=1).submit("a", answer, 1)
    async with FairExecutor(slots=1, tiers={"known": ONE}.get) as executor:
        with pytest.raises(UnknownTenant):
            executor.submit("stranger", answer, 1)
        with pytest.raises(InvalidValue, match="tenant"):
            executor.submit("no spaces", answer, 1)
        with pytest.raises(InvalidValue, match="cost"):
            executor.submit("known", answer, 1, cost=-1.0)
    with pytest.raises(Closed):
        await executor.submit_wait("known", answer, 1)


def test_threads_give_results_errors_and_room() -> None:
    release = threading.Event()
    with ThreadFairExecutor(slots=1, tiers=ONE) as executor:
        assert executor.run("a", pow, 2, 3) == 8
        with pytest.raises(ZeroDivisionError):
            executor.run("a", divmod, 1, 0)
        executor.submit("a", release.wait, 30)
        waiting = executor.submit("a", pow, 2, 2)
        assert isinstance(executor.submit("a", pow, 2, 2), Refusal)
        assert not isinstance(waiting, Refusal)
        assert waiting.cancel()
        last = executor.submit("a", pow, 3, 3)
        release.set()
        assert not isinstance(last, Refusal)
        assert last.result(30) == 27
    with pytest.raises(Closed):
        executor.submit("a", pow, 2, 2)


def test_leaving_threads_with_an_error_withdraws_what_waits() -> None:
    release = threading.Event()
    with pytest.raises(KeyError), ThreadFairExecutor(slots=1) as executor:
        running = executor.submit("a", release.wait, 30)
        waiting = executor.submit("a", pow, 2, 2)
        release.set()
        executor.shutdown(wait=False, cancel_futures=True)
        raise KeyError
    assert not isinstance(running, Refusal)
    assert not isinstance(waiting, Refusal)
    assert running.result() is True
    with pytest.raises(CancelledError):
        waiting.result(30)
