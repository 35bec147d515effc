"""The page on the API does what it says."""

import re
from pathlib import Path
from typing import Any

import pytest
from web_world import World

from tenantry.web.problems import KINDS

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", blocks("http"))
async def test_each_request_of_the_page_gets_the_answer_it_names(world: World, block: str) -> None:
    head, body, expected = block.strip().split("\n\n")
    first, *rest = head.replace("$KEY", world.key()).split("\n")
    method, path = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in rest)]
    reply = await world.ask(method, path, headers, body.encode())
    status, *more = expected.split(" ")
    assert reply.status == int(status)
    if more:
        assert [reply.problem, reply.json["errors"][0]["path"]] == more


@pytest.mark.parametrize("block", blocks("python"))
async def test_the_python_of_the_page_runs(world: World, block: str) -> None:
    names: dict[str, Any] = {}
    exec(block, names)
    assert await names["main"](world.server.url, world.key()) == "waiting"


def test_the_table_of_problems_is_the_code_s() -> None:
    rows = [f"| `{kind.name}` | {kind.status} | {kind.title} |" for kind in KINDS.values()]
    told = [line for line in PAGE.splitlines() if re.match(r"\| `[a-z-]+` \| [0-9]{3} \|", line)]
    assert told == rows
