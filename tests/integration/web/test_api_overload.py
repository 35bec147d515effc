"""Under overload the API refuses what is shed, with 503: it is not the tenant's doing."""

from math import ceil

import pytest
from web_world import URL, World

from tenantry.algorithms.shedding import Level
from tenantry.queue.model import PoolLevel

TOP = PoolLevel("shared", Level.STANDARD, 9.0, 1.0, 45.0)
JOB = {"target": URL, "payload": 1}


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/jobs", JOB), ("/v1/batches", {"jobs": [JOB]}), ("/v1/bulk", {"jobs": [JOB]})]
)
async def test_what_is_shed_is_refused_with_503_the_rule_and_when_to_come_back(
    world: World, path: str, body: object
) -> None:
    world.level = TOP
    reply = await world.post(path, body)
    assert (reply.status, reply.problem) == (503, "overloaded")
    assert reply.json["rule"] == "overload"
    assert 45.0 <= reply.json["retry_after"] <= 90.0
    assert reply.header("retry-after") == str(ceil(reply.json["retry_after"]))
    assert "'shared' is overloaded" in reply.json["detail"]


async def test_when_it_is_over_the_same_submit_is_accepted(world: World) -> None:
    world.level = TOP
    assert (await world.post_job()).status == 503
    world.level = None
    assert (await world.post_job()).status == 202


async def test_live_work_goes_on_while_only_background_work_is_shed(world: World) -> None:
    world.level = PoolLevel("shared", Level.BACKGROUND, 9.0, 1.0, 15.0)
    assert (await world.post_job()).status == 202
