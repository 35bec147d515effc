"""The demo's API, in a process of its own, as many would run it: a burst of requests costs the planner
nothing. It reads :class:`Open` from standard input, and says what it accepts and refuses."""

import asyncio
import os
import shutil
from pathlib import Path

from tenantry.cli.assembly import assemble
from tenantry.cli.demo.messages import In, Open, Opened, Out, order, say
from tenantry.cli.eventloop import run
from tenantry.cli.settings import NodeSettings, Role
from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.events import Event
from tenantry.postgres.processes import end_servers_in
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.events import JobsAccepted, SubmitRefused


def tell(event: Event) -> None:
    """An event sink: what entered and what did not."""
    if isinstance(event, JobsAccepted):
        say(In(event.tenant, event.count - event.existing))
    elif isinstance(event, SubmitRefused):
        say(Out(event.tenant, event.count))


async def main() -> None:
    opening, gone = await order(Open)
    if opening is None:
        return
    urls = DatabaseUrls.derived(opening.admin)
    settings = NodeSettings(database=urls, roles=frozenset({Role.API}), name="demo-api")
    async with assemble(settings, events=tell) as node:
        if node.api_url is None:
            raise InvariantBroken("a node with the role api serves none")
        say(Opened(node.api_url))
        await gone
    if await is_orphaned(opening.demo):
        await asyncio.to_thread(clean_up, Path(opening.home))


async def is_orphaned(demo: int) -> bool:
    """Whether the demo, which closed its end of our pipe, was killed. Of a process that dies the pipes are
    closed before its children have another parent: that is waited for a moment."""
    for _ in range(20):
        if os.getppid() != demo:
            return True
        await asyncio.sleep(0.01)
    return False


def clean_up(home: Path) -> None:
    """What a demo that was killed could not: end its server, remove its directory."""
    cluster = home / "data" / "cluster"
    recorded = cluster / "postmaster.pid"
    if recorded.exists():
        end_servers_in(cluster, first=int(recorded.read_text().splitlines()[0]))
    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    run(main())
