"""What everybody depends on, in a process of its own: it is down, and then it is back.

It reads :class:`Serve` and then :class:`Now` from standard input, a line each, and answers each of them. When
standard input closes it ends; after a demo that was killed it ends the server and removes the directory.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from tenantry.cli.demo.door import clean_up, is_orphaned
from tenantry.cli.demo.incident.cast import SERVICE, Kind, shared_path
from tenantry.cli.demo.messages import orders, say
from tenantry.cli.eventloop import run
from tenantry.kernel.instant import Seconds
from tenantry.testing.target import Target

_LIVE_TAKES: Seconds = 0.02


class Place(msgspec.Struct, frozen=True):
    """A tenant's part of it: see :class:`tenantry.cli.demo.incident.cast.Party`."""

    tenant: str
    kind: Kind
    strength: int


class Serve(msgspec.Struct, frozen=True):
    """``home``, ``demo``: as in :class:`tenantry.cli.demo.messages.Open`."""

    home: str
    demo: int
    places: list[Place]


class Now(msgspec.Struct, frozen=True):
    """``back``: from now on it answers, each part in its way; ``count``: nothing changes."""

    what: Literal["back", "count"]


class Serving(msgspec.Struct, frozen=True, tag="serving"):
    """It is there, at ``url``, and down."""

    url: str


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """The requests so far, by path."""

    requests: dict[str, int]


SAID: "msgspec.json.Decoder[Serving | Counted]" = msgspec.json.Decoder(Serving | Counted)


def fail(target: Target, places: list[Place]) -> None:
    """Every part answers 503; what is no part of it goes on."""
    target.delays(_LIVE_TAKES)
    for place in places:
        target.at(shared_path(place.tenant)).answers(503)


def come_back(target: Target, places: list[Place]) -> None:
    """Each in its way."""
    for place in places:
        story = target.at(shared_path(place.tenant))
        match place.kind:
            case Kind.HOLE:
                story.hangs()
            case Kind.POISON:
                story.answers(422)
            case _:
                story.answers(200).serves(place.strength, SERVICE)


async def main() -> None:
    lines = await orders()
    first = await lines.readline()
    if not first:
        return
    serve = msgspec.json.decode(first, type=Serve)
    with suppress(BrokenPipeError):  # the demo was killed between its question and the answer
        await attend(serve, lines)
    if await is_orphaned(serve.demo):
        clean_up(Path(serve.home))


async def attend(serve: Serve, lines: asyncio.StreamReader) -> None:
    """Serve, and answer each question, until the demo closes its end."""
    async with Target(remember=0) as target:
        fail(target, serve.places)
        say(Serving(target.url))
        while line := await lines.readline():
            if msgspec.json.decode(line, type=Now).what == "back":
                come_back(target, serve.places)
            say(Counted(dict(target.by_path)))


if __name__ == "__main__":
    run(main())
