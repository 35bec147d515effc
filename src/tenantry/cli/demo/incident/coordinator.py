"""The coordinator of the replays, in a process of its own, as many would run it: fifty plans at once cost the
planner nothing. It reads :class:`~tenantry.cli.demo.messages.Open` from standard input."""

from tenantry.cli.assembly import assemble
from tenantry.cli.demo.messages import Open, Opened, order, say
from tenantry.cli.eventloop import run
from tenantry.cli.settings import NodeSettings, Role
from tenantry.postgres.urls import DatabaseUrls


async def main() -> None:
    opening, gone = await order(Open)
    if opening is None:
        return
    urls = DatabaseUrls.derived(opening.admin)
    settings = NodeSettings(database=urls, roles=frozenset({Role.REPLAY}), name="demo-coordinator")
    async with assemble(settings):
        say(Opened(""))  # it serves no URL
        await gone


if __name__ == "__main__":
    run(main())
