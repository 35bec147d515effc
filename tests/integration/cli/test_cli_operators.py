"""``tenantry operators``, and what its keys open on a node: lanes and orders on real PostgreSQL."""

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from cli_commands import Command, said

from tenantry.cli.assembly import assemble
from tenantry.cli.settings import Address, NodeSettings, Role
from tenantry.postgres.urls import DatabaseUrls

pytestmark = pytest.mark.needs_postgres

PAUSE = {"action": "pause", "target": "handler:x", "reason": "why"}


def test_a_key_is_shown_once_listed_by_its_name_and_revoked_by_its_id(registered: Command) -> None:
    made = said(registered("operators", "create", "ada", "--json"))
    assert made["operator_key"].startswith("tk_")
    [listed] = said(registered("operators", "list", "--json"))
    assert (listed["name"], listed["key_id"], listed["revoked_at"]) == ("ada", made["key_id"], None)
    assert made["operator_key"] not in registered("operators", "list")
    assert registered("operators", "revoke", made["key_id"]) == "Revoked.\n"
    assert said(registered("operators", "list", "--json"))[0]["revoked_at"] is not None


def test_a_key_that_is_not_there_and_a_name_that_cannot_be_are_refused(registered: Command) -> None:
    assert "operators list" in registered("operators", "revoke", "nothing", code=2)
    assert "NAME: ''" in registered("operators", "create", "", code=2)
    assert "None." in registered("operators", "list")


async def test_what_is_ordered_over_http_stands_under_the_keys_name(
    registered: Command, database_urls: DatabaseUrls
) -> None:
    made = [
        said(await in_thread(registered, "operators", "create", name, "--json")) for name in ("ada", "eve")
    ]
    await in_thread(registered, "operators", "revoke", made[1]["key_id"])
    ada, eve = (each["operator_key"] for each in made)
    settings = NodeSettings(
        database=database_urls, roles=frozenset({Role.API, Role.PLANNER}), metrics=Address()
    )
    async with assemble(settings) as node:
        assert node.metrics_url is not None
        given = await ask(f"{node.metrics_url}/v1/orders", ada, PAUSE)
        assert (given["by"], given["target"]) == ("ada", "handler:x")
        assert (await ask(f"{node.metrics_url}/v1/orders", ada))["orders"] == [given]
        assert await ask(f"{node.metrics_url}/v1/orders", eve, PAUSE) == 401
        assert (await ask(f"{node.metrics_url}/v1/lanes", ada))["lanes"] == []
    [kept] = said(await in_thread(registered, "lanes", "orders", "--json"))
    assert kept == given


async def in_thread(command: Command, *words: str) -> str:
    """A command runs an event loop of its own."""
    return await asyncio.to_thread(command, *words)


async def ask(url: str, key: str, body: object = None) -> Any:
    """The answer's JSON, or the status of a refusal."""
    return await asyncio.to_thread(_ask, url, key, body)


def _ask(url: str, key: str, body: object) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30.0) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code
