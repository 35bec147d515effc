"""The demo's API, in a process of its own, as many would run it: a burst of requests costs the planner
nothing. It reads :class:`Open` from standard input, and says what it accepts and refuses."""

import asyncio

from tenantry.cli.assembly import assemble
from tenantry.cli.demo.messages import In, Open, Opened, Out, order, say
from tenantry.cli.eventloop import run
from tenantry.cli.settings import NodeSettings, Role
from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.events import Event
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
        await asyncio.shield(gone)


if __name__ == "__main__":
    run(main())
