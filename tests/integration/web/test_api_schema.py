"""An outsider reads the OpenAPI document and tries what it allows and what it forbids."""

from pathlib import Path

import pytest
from schema_run import run_against
from web_world import World

from tenantry.telemetry.http_events import RequestFailed

pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install --group dev")


async def test_schemathesis_finds_no_answer_that_the_document_does_not_allow(
    world: World, tmp_path: Path
) -> None:
    code, told = await run_against(world.server.url, world.key(), tmp_path)
    assert code == 0, told.decode()[-5_000:]
    assert b" passed" in told
    assert world.told(RequestFailed) == []
