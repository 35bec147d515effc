"""`tenantry up` as a newcomer has it, in processes of its own: a first job, an orderly end, a crash."""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from cli_processes import Up, tenantry, up

from tenantry.kernel.errors import MissingExtra
from tenantry.postgres.binaries import packaged
from tenantry.testing.target import Target

pytestmark = pytest.mark.needs_postgres

LOOPBACK = ("--allow-network", "127.0.0.0/8")


@pytest.fixture(autouse=True)
def with_binaries() -> None:
    try:
        packaged()
    except MissingExtra as missing:
        pytest.skip(str(missing))


async def submitted(process: Up, url: str, *, key: str | None = None) -> str:
    body = {"target": url, "payload": {"hello": "world"}}
    answer = await asyncio.to_thread(process.ask, "/v1/jobs", body, key=key)
    return str(answer["id"])


async def test_from_nothing_to_a_delivered_job_and_down_with_nothing_left(server_home: Path) -> None:
    async with Target() as target:
        with up(server_home / "data", *LOOPBACK) as process:
            job = await submitted(process, target.url + "/hook")
            async with asyncio.timeout(60):
                await target.received_count(1)
            assert target.received[0].headers["webhook-id"] == job
            assert target.received[0].body == b'{"hello": "world"}'
            assert "tenantry_planner_leader 1.0" in await asyncio.to_thread(process.metrics)
            process.signal(signal.SIGTERM)
            assert process.ended() == 0
            assert process.left_behind() == []
        assert tenantry("jobs", "audit", "--data-dir", str(server_home / "data")) == "The books add up.\n"


async def test_killed_with_a_job_waiting_it_comes_back_and_delivers_it(server_home: Path) -> None:
    async with Target() as target:
        with up(server_home / "data", "--allow-private-targets") as process:
            key = process.told["api_key"]
            target.at("/hook").answers(503)
            await submitted(process, target.url + "/hook", key=key)
            async with asyncio.timeout(60):
                await target.received_count(1)
            process.signal(signal.SIGKILL)
            process.ended()
        target.at("/hook").answers(200)
        with up(server_home / "data", "--allow-private-targets") as process:
            assert process.told["api_key"] is None, "the first tenant is made once"
            async with asyncio.timeout(60):
                await target.received_count(2)
            process.signal(signal.SIGINT)
            assert process.ended() == 0
            assert process.left_behind() == []


async def test_running_jobs_hold_the_end_up_until_a_second_signal(server_home: Path) -> None:
    async with Target() as target:
        target.hangs()
        with up(server_home / "data", "--allow-private-targets", "--grace", "600") as process:
            job = await submitted(process, target.url)
            async with asyncio.timeout(60):
                await target.received_count(1)
            process.signal(signal.SIGTERM)
            view = await asyncio.to_thread(process.ask, f"/v1/jobs/{job}")
            assert view["state"] == "running", "while it drains, the API answers"
            process.signal(signal.SIGTERM)
            assert process.ended() == 130
            assert process.left_behind() == []


def test_a_port_in_use_is_told_with_what_to_do(server_home: Path) -> None:
    with up(server_home / "data") as process:
        taken = process.told["api_url"].removeprefix("http://")
        words = ("up", "--data-dir", str(server_home / "data"), "--metrics", "none", "--listen", taken)
        said = tenantry(*words, code=2)
        assert "Is it running already?" in said
        assert "Traceback" not in said
        # the second had joined the first one's server, and left it as it was
        assert process.ask("/v1/jobs") == {"jobs": []}


def test_an_operator_works_beside_it(server_home: Path) -> None:
    place = ("--data-dir", str(server_home / "data"))
    with up(server_home / "data") as process:
        api = {"TENANTRY_URL": process.told["api_url"], "TENANTRY_API_KEY": process.told["api_key"]}
        waited = json.loads(tenantry("submit", "handler:print", "-d", "1", "--wait", "--json", **api))
        assert waited["state"] == "delivered"
        as_operator = json.loads(
            tenantry("submit", "handler:print", "-t", "demo", "--wait", "--json", *place)
        )
        assert as_operator["state"] == "delivered"
        well = json.loads(tenantry("doctor", "--json", *place))
        assert well["well"], well
        assert {check["verdict"] for check in well["checks"]} == {"ok"}
