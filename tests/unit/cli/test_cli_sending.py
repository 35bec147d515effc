"""Many jobs through one door: every refusal is met as it asks to be met."""

from collections.abc import Sequence

import pytest

from tenantry.cli.doors import Sent, Standing
from tenantry.cli.sending import Sender, Tally, until_ended
from tenantry.kernel.errors import InvalidValue, UsageError
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.lanes.model import Target
from tenantry.queue.model import JobState, NewJob

SOON = Refusal(Rule.BOUND, "full", 0.0)
NEVER = Refusal(Rule.BOUND, "more than the bound at once", None)


class StoryDoor:
    """Refuses as the story says, then accepts; never more than ``most`` at once."""

    def __init__(self, *story: Refusal, most: int = 1_000) -> None:
        self.story, self.most = list(story), most
        self.batches: list[list[str]] = []
        self.standings: list[Standing | None] = []

    async def submit(self, jobs: Sequence[NewJob]) -> list[Sent] | Refusal:
        if len(jobs) > self.most:
            return NEVER
        for position, job in enumerate(jobs):
            if job.target == "bad":
                raise InvalidValue(f"jobs[{position}].target", "bad", "a good one", "Mend it.")
        if self.story:
            return self.story.pop(0)
        self.batches.append([str(job.target) for job in jobs])
        return [Sent(str(job.target), existing=job.target == "known") for job in jobs]

    async def standing(self, job: str) -> Standing | None:
        return self.standings.pop(0)


def jobs(*targets: str) -> list[NewJob]:
    return [NewJob(Target(target), b"{}") for target in targets]


def sender(door: StoryDoor, told: list[Refusal | None] | None = None) -> Sender:
    heard = [] if told is None else told
    return Sender(door, lambda position: f"line {position + 1}", lambda tally, refusal: heard.append(refusal))


async def test_jobs_go_in_order_in_batches() -> None:
    door = StoryDoor()
    sending = sender(door)
    await sending.send(jobs("a", "known", "c", "d", "e"), batch=2)
    assert door.batches == [["a", "known"], ["c", "d"], ["e"]]
    assert sending.tally == Tally(accepted=5, existing=1, refused=0, ids=["a", "known", "c", "d", "e"])


async def test_a_refused_batch_comes_back_and_is_told_of() -> None:
    told: list[Refusal | None] = []
    sending = sender(StoryDoor(SOON, SOON), told)
    await sending.send(jobs("a", "b"), batch=2)
    assert told == [SOON, SOON, None]
    assert (sending.tally.accepted, sending.tally.refused) == (2, 2)


async def test_a_batch_that_is_too_large_for_ever_is_halved_and_keeps_its_order() -> None:
    door = StoryDoor(most=2)
    await sender(door).send(jobs("a", "b", "c", "d", "e"), batch=5)
    assert [target for batch in door.batches for target in batch] == ["a", "b", "c", "d", "e"]
    assert max(map(len, door.batches)) <= 2


async def test_one_job_that_is_refused_for_ever_ends_it_by_its_line() -> None:
    with pytest.raises(UsageError, match="line 1: refused by bound: more than the bound at once"):
        await sender(StoryDoor(most=0)).send(jobs("a"), batch=1)


async def test_a_job_that_is_not_accepted_is_named_by_its_line_and_what_came_before_stays() -> None:
    with pytest.raises(InvalidValue) as refused:
        await sender(StoryDoor()).send(jobs("a", "b", "c", "bad"), batch=2)
    assert refused.value.path == "line 4.target"
    assert "2 jobs before it were accepted" in refused.value.hint


async def test_waiting_tells_each_change_once_and_ends_with_the_job() -> None:
    door = StoryDoor()
    waiting, done = Standing(JobState.WAITING, 0), Standing(JobState.DELIVERED, 1)
    door.standings = [waiting, waiting, done]
    assert [each async for each in until_ended(door, "a")] == [waiting, done]


async def test_waiting_for_a_job_that_went_away_says_so() -> None:
    door = StoryDoor()
    door.standings = [None]
    with pytest.raises(UsageError, match="not there any more"):
        async for _ in until_ended(door, "a"):
            pass
