"""What every source of messages promises a replay, whatever system it reads.

Derive from :class:`SourceConformance` and give it the fixture ``world``, a :class:`SourceWorld` with nothing
in it. Where systems differ (one reads by position, another forgets what is acknowledged) a test asks the
source's traits, and each of the two has its own claim.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import pytest

from tenantry.kernel.errors import Closed, SourceUnavailable
from tenantry.replay.model import Batch, Fetched, Membership, Position
from tenantry.replay.ports import Source

BEGINNING = Position("")
_WAIT = 0.5
_PATIENCE = 40
"""So many empty answers in a row, each after at most :data:`_WAIT` seconds, end a test."""


def payload_of(number: int) -> bytes:
    """What the ``number``-th message of a test carries."""
    return b'{"number": %d}' % number


def payloads(numbers: Collection[int]) -> list[bytes]:
    return [payload_of(number) for number in numbers]


def seen(entries: Sequence[Fetched]) -> list[bytes]:
    return [entry.message.payload for entry in entries]


class SourceWorld(Protocol):
    """One place of one system, empty at first. ``small_window``: what a source made ``small`` may hold."""

    small_window: int

    async def put(self, numbers: Sequence[int]) -> None:
        """One message for each, behind what is there, with the payloads of :func:`payload_of`, the header
        ``Shape: round`` where the kind has headers, and each with an id of its own."""
        ...

    async def put_broken(self) -> bool:
        """One entry that cannot be a message, behind what is there. False: this kind has none."""
        ...

    def source(self, *, small: bool = False) -> Source:
        """A new session over the place."""
        ...

    async def crash(self, source: Source) -> None:
        """Ends a session as the death of its process would."""
        ...

    def lost(self) -> Source:
        """A session over a place, or a system, that is not there."""
        ...


async def fetched(source: Source, count: int, limit: int = 100) -> list[Fetched]:
    """The next ``count`` entries, or fewer where the source is exhausted before."""
    found: list[Fetched] = []
    empty = 0
    while len(found) < count:
        batch = await source.fetch(min(limit, count - len(found)), _WAIT)
        found += batch.messages
        if batch.exhausted:
            break
        empty = 0 if batch.messages else empty + 1
        assert empty < _PATIENCE, f"only {len(found)} of {count} entries came"
    return found


async def to_the_end(source: Source, limit: int = 100) -> list[Fetched]:
    """All that comes until the source says that nothing more will; each acknowledged at once."""
    found: list[Fetched] = []
    empty = 0
    while True:
        batch: Batch = await source.fetch(limit, _WAIT)
        assert len(batch.messages) <= limit
        await source.acknowledge([entry.receipt for entry in batch.messages])
        found += batch.messages
        if batch.exhausted:
            return found
        empty = 0 if batch.messages else empty + 1
        assert empty < _PATIENCE, f"the source never said that it is exhausted, after {len(found)} entries"


async def opened(
    world: SourceWorld, membership: Membership | None = None, after: Position = BEGINNING
) -> Source:
    source = world.source()
    await source.open(membership or await world.source().survey(), after)
    return source


class SourceConformance:
    """One test a promise."""

    async def test_a_survey_counts_and_consumes_nothing(self, world: SourceWorld) -> None:
        await world.put(range(7))
        first, again = await world.source().survey(), await world.source().survey()
        assert first.count == again.count == (7 if world.source().traits.counts else None)
        source = await opened(world, first)
        assert seen(await to_the_end(source)) == payloads(range(7))
        await source.close()

    async def test_an_empty_place_has_none_and_is_exhausted_at_once(self, world: SourceWorld) -> None:
        source = world.source()
        membership = await source.survey()
        assert membership.count in {0, None}
        assert await world.source().peek(5) == []
        await source.open(membership, BEGINNING)
        assert await to_the_end(source) == []
        await source.close()

    async def test_a_peek_shows_what_lies_there_and_leaves_it_there(self, world: SourceWorld) -> None:
        await world.put(range(12))
        for _ in range(2):
            shown = seen(await world.source().peek(5))
            assert 1 <= len(shown) <= 5
            assert len(set(shown)) == len(shown)
            assert set(shown) <= set(payloads(range(12)))
        assert len(await world.source().peek(100)) == 12
        source = await opened(world)
        # some brokers put back at the end what was looked at
        assert sorted(seen(await to_the_end(source))) == sorted(payloads(range(12)))
        await source.close()

    async def test_messages_come_in_order_each_once_in_batches_no_larger_than_asked(
        self, world: SourceWorld
    ) -> None:
        await world.put(range(50))
        source = await opened(world)
        entries = await to_the_end(source, limit=7)
        assert seen(entries) == payloads(range(50))
        assert len({entry.message.id for entry in entries}) == 50
        assert not any(entry.fault for entry in entries)
        await source.close()

    async def test_a_message_brings_its_headers_in_lower_case(self, world: SourceWorld) -> None:
        await world.put([1])
        source = await opened(world)
        (entry,) = await fetched(source, 1)
        assert entry.message.headers.get("shape", "round") == "round"
        assert all(name == name.lower() for name in entry.message.headers)
        await source.close()

    async def test_what_comes_after_the_membership_was_frozen_is_not_in_it_and_is_told_apart(
        self, world: SourceWorld
    ) -> None:
        if not world.source().traits.freezes:
            pytest.skip("this kind of source has no end that could be kept")
        await world.put(range(5))
        membership = await world.source().survey()
        assert await world.source().arrived(membership) in {0, None}
        await world.put(range(5, 8))
        assert await world.source().arrived(membership) in {3, None}
        source = await opened(world, membership)
        assert seen(await to_the_end(source)) == payloads(range(5))
        await source.close()

    async def test_a_message_has_the_same_id_at_every_reading(self, world: SourceWorld) -> None:
        await world.put(range(4))
        membership = await world.source().survey()
        ids = []
        for _ in range(2):
            source = await opened(world, membership)
            ids.append([entry.message.id for entry in await fetched(source, 4)])
            await source.close()
        assert ids[0] == ids[1]
        assert {entry.message.id for entry in await world.source().peek(4)} == set(ids[0])

    async def test_a_later_session_goes_on_behind_a_position(self, world: SourceWorld) -> None:
        await world.put(range(6))
        membership = await world.source().survey()
        source = await opened(world, membership)
        entries = await fetched(source, 6)
        await source.close()
        if world.source().traits.acknowledges:
            assert all(entry.position is None for entry in entries)
            return
        for number, entry in enumerate(entries):
            assert entry.position
            source = await opened(world, membership, entry.position)
            assert seen(await to_the_end(source)) == payloads(range(number + 1, 6))
            await source.close()

    async def test_a_later_session_does_not_see_what_was_acknowledged(self, world: SourceWorld) -> None:
        if not world.source().traits.acknowledges:
            pytest.skip("this kind of source is read by position")
        await world.put(range(10))
        membership = await world.source().survey()
        source = await opened(world, membership)
        entries = await fetched(source, 6)
        await source.acknowledge([entry.receipt for entry in entries[:4]])
        await source.close()
        later = await opened(world, membership)
        assert seen(await to_the_end(later)) == payloads(range(4, 10))
        await later.close()
        empty = await opened(world)
        assert await to_the_end(empty) == []
        await empty.close()

    async def test_what_is_left_stays_and_is_not_fetched_again_in_its_session(
        self, world: SourceWorld
    ) -> None:
        if not world.source().traits.acknowledges:
            pytest.skip("this kind of source is read by position")
        await world.put(range(6))
        membership = await world.source().survey()
        source = await opened(world, membership)
        first = await fetched(source, 3)
        await source.leave([entry.receipt for entry in first[:2]])
        await source.acknowledge([first[2].receipt])
        assert seen(await to_the_end(source)) == payloads(range(3, 6))
        await source.close()
        later = await opened(world, membership)
        assert sorted(seen(await to_the_end(later))) == payloads(range(2))
        await later.close()

    async def test_what_was_in_hand_when_the_process_died_comes_again_and_nothing_else(
        self, world: SourceWorld
    ) -> None:
        await world.put(range(10))
        membership = await world.source().survey()
        source = await opened(world, membership)
        entries = await fetched(source, 8)
        await source.acknowledge([entry.receipt for entry in entries[:3]])
        await world.crash(source)
        position = BEGINNING if source.traits.acknowledges else entries[2].position
        later = await opened(world, membership, position or BEGINNING)
        assert sorted(seen(await to_the_end(later))) == payloads(range(3, 10))
        await later.close()

    async def test_no_more_is_in_hand_than_the_window_holds(self, world: SourceWorld) -> None:
        source = world.source(small=True)
        if not source.traits.acknowledges:
            pytest.skip("this kind of source is read by position: nothing is in hand")
        assert source.traits.window == world.small_window
        await world.put(range(world.small_window * 3))
        await source.open(await world.source().survey(), BEGINNING)
        held = await fetched(source, world.small_window, limit=world.small_window * 3)
        assert len(held) == world.small_window
        full = await source.fetch(10, _WAIT)
        assert (full.messages, full.exhausted) == ((), False)
        await source.acknowledge([held[0].receipt])
        more = await fetched(source, 1)
        assert seen(held + more) == payloads(range(world.small_window + 1))
        await source.close()

    async def test_a_broken_entry_is_one_with_its_fault_and_those_around_it_go_on(
        self, world: SourceWorld
    ) -> None:
        await world.put([0])
        if not await world.put_broken():
            pytest.skip("everything in this kind of source is a message")
        await world.put([1])
        assert [bool(entry.fault) for entry in await world.source().peek(3)] == [False, True, False]
        source = await opened(world)
        entries = await to_the_end(source)
        assert [bool(entry.fault) for entry in entries] == [False, True, False]
        assert entries[1].message.id
        await source.close()

    async def test_a_session_that_is_not_open_gives_nothing_and_closes_twice(
        self, world: SourceWorld
    ) -> None:
        source = world.source()
        with pytest.raises(Closed):
            await source.fetch(1, 0)
        await source.close()
        await world.put([1])
        source = await opened(world)
        await source.close()
        await source.close()
        with pytest.raises(Closed):
            await source.fetch(1, 0)

    async def test_what_is_not_there_is_said_and_shows_no_secret(self, world: SourceWorld) -> None:
        for call in (world.lost().survey(), world.lost().peek(1)):
            with pytest.raises(SourceUnavailable) as raised:
                await call
            assert "s3cret" not in str(raised.value)
