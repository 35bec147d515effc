"""An outsider reads the OpenAPI document and tries what it allows and what it forbids."""

import asyncio
import sys
from pathlib import Path

import pytest
from web_world import World

from tenantry.telemetry.http_events import RequestFailed

pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install --group dev")


async def test_schemathesis_finds_no_answer_that_the_document_does_not_allow(
    world: World, tmp_path: Path
) -> None:
    # What is valid by the schema may still be refused (a target must exist, one credential and not two).
    arguments = [
        *("run", f"{world.server.url}/v1/openapi.json", "--header", f"Authorization: Bearer {world.key()}"),
        *("--exclude-checks", "positive_data_acceptance", "--suppress-health-check", "all"),
        *("--phases", "coverage", "--seed", "1"),
    ]
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("schemathesis")), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
        env={"NO_COLOR": "1", "HOME": str(tmp_path)},
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()[-5_000:]
    assert b" passed" in told
    assert world.told(RequestFailed) == []
