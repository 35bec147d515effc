"""A tenant's own dead letters keep the promises of a source, with another tenant's between them."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import asyncpg
import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.postgres import dead_letter_source
from tenantry.postgres.database import Database
from tenantry.postgres.dead_letter_source import DeadLetterSource
from tenantry.postgres.urls import DatabaseUrls
from tenantry.replay.model import Position, SourceAddress
from tenantry.replay.ports import Source
from tenantry.testing.conformance.sources import SourceConformance, payload_of, to_the_end

pytestmark = pytest.mark.needs_postgres

ACME, OTHER = TenantId("acme"), TenantId("other")
_BURY = """INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type,
    submitted_at, died_at, attempts, status, reason, history, headers)
SELECT id, $1, 'https://a.example/x', 0, payload, 'application/json', died_at, died_at, 8, 503,
       'http_503 after 8 attempts',
       '[{"number": 7, "error_class": "timeout"}, {"number": 8, "error_class": "http_503"}]',
       '{"shape": "round"}'
  FROM unnest($2::uuid[], $3::bytea[], $4::timestamptz[]) x (id, payload, died_at)"""


class LettersWorld:
    """Letters die in the order in which they are put, two at the same instant now and then."""

    small_window = 0

    def __init__(self, database: Database, admin: "asyncpg.Connection[asyncpg.Record]") -> None:
        self.database, self._admin, self._count = database, admin, 0

    async def put(self, numbers: Sequence[int]) -> None:
        for tenant in (ACME, OTHER):
            await self.bury(tenant, [payload_of(n if tenant == ACME else -1) for n in numbers])

    async def bury(self, tenant: TenantId, payloads: Sequence[bytes]) -> None:
        ids, instants = [], []
        for _ in payloads:
            self._count += 1
            ids.append(UUID(int=self._count))
            instants.append(await self._admin.fetchval("SELECT to_timestamp($1::float8)", self._count // 2))
        await self._admin.execute(_BURY, tenant, ids, list(payloads), instants)

    async def put_broken(self) -> bool:
        return False

    def source(self, *, small: bool = False) -> Source:
        return DeadLetterSource(self.database, ACME, SourceAddress("dead_letters"))

    async def crash(self, source: Source) -> None:
        """A reader leaves nothing behind."""

    def lost(self) -> Source:
        """The test that asks for it has closed the database."""
        return self.source()


@pytest.fixture
async def letters(shared_database: DatabaseUrls) -> AsyncIterator[LettersWorld]:
    async with await Database.open(shared_database, tenant_connections=4) as database:
        admin = await asyncpg.connect(shared_database.admin)
        await admin.execute("TRUNCATE tenantry.dead_letters")
        yield LettersWorld(database, admin)
        await admin.close()


class TestDeadLetters(SourceConformance):
    @pytest.fixture
    def world(self, letters: LettersWorld) -> LettersWorld:
        return letters

    async def test_what_is_not_there_is_said_and_shows_no_secret(self, letters: LettersWorld) -> None:  # type: ignore[override]
        await letters.database.close()
        await super().test_what_is_not_there_is_said_and_shows_no_secret(letters)


async def test_a_letter_tells_where_it_was_to_go_and_how_it_failed(letters: LettersWorld) -> None:
    await letters.put([1])
    source = letters.source()
    await source.open(await source.survey(), Position(""))
    (message,) = (entry.message for entry in (await source.fetch(10, 0)).messages)
    assert message.letter == message.id
    assert (message.target, message.error_class, message.attempts) == ("https://a.example/x", "http_503", 8)
    assert message.failure == "http_503 after 8 attempts"
    assert (message.failed_at, message.headers) == (0, {"shape": "round"})


async def test_large_letters_come_in_batches_of_bounded_size(letters: LettersWorld) -> None:
    await letters.bury(ACME, [bytes(1_000_000)] * 20)
    source = letters.source()
    await source.open(await source.survey(), Position(""))
    first = await source.fetch(10_000, 0)
    assert len(first.messages) == 17
    assert len(await to_the_end(source)) == 3


@pytest.mark.parametrize("within", [5.0, 0.000_001], ids=["among all", "by time"])
async def test_a_sample_is_drawn_at_random_and_has_as_many_as_were_asked_for(
    letters: LettersWorld, monkeypatch: pytest.MonkeyPatch, within: float
) -> None:
    """Two letters die at each instant, and every second one is alike."""
    monkeypatch.setattr(dead_letter_source, "COUNT_FOR", within)
    await letters.bury(ACME, [b"even", b"odd"] * 250)
    found = [each.message for each in await letters.source().peek(200)]
    assert len({each.id for each in found}) == 200
    assert [each.failed_at for each in found] == sorted(each.failed_at or 0 for each in found)
    assert 60 <= sum(each.payload == b"even" for each in found) <= 140
    assert len(await letters.source().peek(1_000)) == 500


@pytest.mark.parametrize(
    "address",
    [SourceAddress("dead_letters", "other"), SourceAddress("dead_letters", options={"tenant": "other"})],
    ids=["place", "option"],
)
async def test_no_address_leads_to_another_tenant_s_letters(
    letters: LettersWorld, address: SourceAddress
) -> None:
    with pytest.raises(InvalidValue, match=r"source\."):
        DeadLetterSource(letters.database, ACME, address)


async def test_letters_that_take_long_to_count_are_estimated(
    letters: LettersWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await letters.put([1])
    exact = await letters.source().survey()
    monkeypatch.setattr(dead_letter_source, "COUNT_FOR", 0)
    estimate = await letters.source().survey()
    assert (exact.count, exact.counted_exactly) == (1, True)
    assert not estimate.counted_exactly
    assert estimate.count is not None
    assert estimate.bound == exact.bound
