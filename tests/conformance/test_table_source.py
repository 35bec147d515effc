"""Any table keeps the promises of a source, whatever becomes of done rows; nobody reads another's rows."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence

import asyncpg
import pytest

from tenantry.kernel.errors import InvalidValue, SourceUnavailable, UsageError
from tenantry.kernel.tenant import TenantId
from tenantry.postgres import table_source
from tenantry.postgres.table_source import TableSource
from tenantry.replay.connections import Connection
from tenantry.replay.model import Fetched, Position, SourceAddress
from tenantry.replay.ports import Source
from tenantry.testing.conformance.sources import SourceConformance, payload_of, to_the_end

pytestmark = pytest.mark.needs_postgres

ACME = TenantId("acme")
_MADE = '''CREATE TABLE IF NOT EXISTS public."Failed ""jobs""" (
    owner text, at timestamptz NOT NULL, n bigint NOT NULL, "the body" jsonb, raw bytea, words text,
    headers jsonb, goes_to text, why text, tries integer, done_at timestamptz, before integer,
    PRIMARY KEY (n, at));
CREATE UNIQUE INDEX IF NOT EXISTS partly ON public."Failed ""jobs""" (why) WHERE why <> '';
TRUNCATE public."Failed ""jobs"""'''
_PUT = '''INSERT INTO public."Failed ""jobs""" (owner, at, n, "the body", headers, tries)
VALUES ($1, to_timestamp($2::bigint), $2, $3, '{"Shape": "round"}', 3)'''
QUOTED = 'public."Failed ""jobs"""'
PLACE = 'public.Failed "jobs"'
NAMES = {
    "key_columns": "at, n",
    "payload_column": "the body",
    "headers_column": "headers",
    "attempts_column": "tries",
}
KEEP = NAMES
DELETE = NAMES | {"done": "delete", "id_columns": "n"}
MARK = NAMES | {"done": "mark", "mark_column": "done_at"}


class TableWorld:
    """A table with odd names, and another tenant's rows between."""

    small_window = 4

    def __init__(
        self, url: str, session: "asyncpg.Connection[asyncpg.Record]", options: Mapping[str, str]
    ) -> None:
        self._url, self.session, self._options, self._count = url, session, options, 0

    async def put(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            for owner, payload in (("acme", payload_of(number)), ("other", payload_of(-1))):
                self._count += 1
                await self.session.execute(_PUT, owner, self._count, payload.decode())

    async def put_broken(self) -> bool:
        self._count += 1
        await self.session.execute(_PUT, "acme", self._count, None)
        return True

    def source(self, *, small: bool = False) -> Source:
        return self.made(self._options, window=self.small_window if small else 10_000)

    async def crash(self, source: Source) -> None:
        assert isinstance(source, TableSource)
        assert source._session is not None
        source._session.terminate()

    def lost(self) -> Source:
        return self.made(self._options, place="public.absent")

    def made(self, options: Mapping[str, str], place: str = PLACE, window: int = 10_000) -> TableSource:
        connection = Connection(name="app", kind="table", url=self._url, options={"tenant_column": "owner"})
        return TableSource(connection, ACME, SourceAddress("table", place, options=options), window=window)


@pytest.fixture
async def session(postgres_admin_url: str) -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
    session = await asyncpg.connect(postgres_admin_url)
    await session.execute(_MADE)
    yield session
    await session.close()


class TestKeptTable(SourceConformance):
    @pytest.fixture
    def world(self, postgres_admin_url: str, session) -> TableWorld:  # type: ignore[no-untyped-def]
        return TableWorld(postgres_admin_url, session, KEEP)


class TestTableOfWhichRowsAreDeleted(SourceConformance):
    @pytest.fixture
    def world(self, postgres_admin_url: str, session) -> TableWorld:  # type: ignore[no-untyped-def]
        return TableWorld(postgres_admin_url, session, DELETE)


class TestTableOfWhichRowsAreMarked(SourceConformance):
    @pytest.fixture
    def world(self, postgres_admin_url: str, session) -> TableWorld:  # type: ignore[no-untyped-def]
        return TableWorld(postgres_admin_url, session, MARK)


@pytest.fixture
def world(postgres_admin_url: str, session) -> TableWorld:  # type: ignore[no-untyped-def]
    return TableWorld(postgres_admin_url, session, DELETE)


@pytest.mark.parametrize("done", [KEEP, MARK], ids=["kept", "marked"])
async def test_a_sample_is_drawn_at_random_and_has_as_many_as_were_asked_for(
    world: TableWorld, done: Mapping[str, str]
) -> None:
    await world.session.execute(f"""INSERT INTO {QUOTED} (owner, at, n, "the body", tries)
        SELECT 'acme', to_timestamp(n), n, '1', n % 2 FROM generate_series(1, 500) n""")
    found = [each.message for each in await world.made(done).peek(200)]
    assert len({each.id for each in found}) == 200
    assert 70 <= sum(each.attempts == 1 for each in found) <= 130
    assert len(await world.made(done).peek(1_000)) == 500


async def test_a_table_that_takes_too_long_to_draw_from_shows_its_first_rows(
    world: TableWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put(range(50))
    monkeypatch.setattr(table_source, "COUNT_FOR", 0.000_001)
    found = [each.message.payload for each in await world.made(KEEP).peek(5)]
    assert [json.loads(each) for each in found] == [json.loads(payload_of(n)) for n in range(5)]


async def read(source: TableSource) -> list[Fetched]:
    await source.open(await source.survey(), Position(""))
    found = await to_the_end(source)
    await source.close()
    return found


@pytest.mark.parametrize("options", [DELETE, MARK], ids=["delete", "mark"])
async def test_another_tenant_s_rows_are_neither_read_nor_changed(
    world: TableWorld, options: Mapping[str, str]
) -> None:
    await world.put(range(5))
    before = await world.session.fetch(f"SELECT * FROM public.{quoted()} WHERE owner = 'other' ORDER BY n")
    assert len(await read(world.made(options))) == 5
    after = await world.session.fetch(f"SELECT * FROM public.{quoted()} WHERE owner = 'other' ORDER BY n")
    assert before == after
    left = f"SELECT count(*) FROM public.{quoted()} WHERE owner = 'acme' AND done_at IS NULL"
    assert await world.session.fetchval(left) == 0


async def test_only_rows_with_the_values_asked_for_are_read(world: TableWorld) -> None:
    await world.put(range(4))
    await world.session.execute(f"UPDATE public.{quoted()} SET why = n::text WHERE n > 2")
    (entry,) = await read(world.made(KEEP | {"where.why": "5", "where.tries": "3"}))
    assert entry.message.payload == payload_of(2)
    assert await read(world.made(KEEP | {"where.why": "5' OR true --"})) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key_columns": "n"}, "columns that are NOT NULL and hold those of a unique index"),
        ({"key_columns": "why"}, "columns that are NOT NULL and hold those of a unique index"),
        ({"key_columns": "n, at, headers"}, "It is jsonb"),
        ({"key_columns": "n, n"}, "columns, a comma between two"),
        ({"key_columns": ""}, "columns, a comma between two"),
        ({"payload_column": "the bodies"}, "Did you mean 'the body'"),
        ({"payload_column": 'raw" FROM pg_authid; --'}, "unknown key"),
        ({"headers_column": "words"}, "It is text"),
        ({"attempts_column": "words"}, "It is text"),
        ({"failed_at_column": "n"}, "It is bigint"),
        ({"where.nobody": "x"}, "unknown key 'nobody'"),
        ({"done": "drop"}, "keep or delete or mark"),
        ({"done": "mark"}, "source.options.mark_column"),
        ({"mark_column": "done_at"}, "with done=mark and only then"),
        ({"done": "mark", "mark_column": "n"}, "It is bigint"),
        ({"done": "mark", "mark_column": "owner"}, "neither names the tenant nor is a key"),
        ({"done": "mark", "mark_column": "at"}, "neither names the tenant nor is a key"),
        ({"filter": "true"}, "unknown key 'filter'"),
    ],
)
async def test_what_the_table_cannot_serve_is_said_with_its_option(
    world: TableWorld, options: Mapping[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=r"source\.options") as raised:
        await world.made(KEEP | options).survey()
    assert message in str(raised.value)


async def test_a_table_that_takes_long_to_count_is_estimated(
    world: TableWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "SELECT 'acme', to_timestamp(n), n FROM generate_series(1, 50000) n"
    await world.session.execute(f"INSERT INTO public.{quoted()} (owner, at, n) {rows}")
    await world.session.execute(f"ANALYZE public.{quoted()}")
    monkeypatch.setattr(table_source, "COUNT_FOR", 0.0001)
    membership = await world.made(KEEP).survey()
    assert not membership.counted_exactly
    assert membership.count is not None
    assert membership.count > 0
    assert "50000" in membership.bound


@pytest.mark.parametrize("place", ["", "failed", ".failed", "public."])
def test_a_place_is_a_schema_and_a_table(world: TableWorld, place: str) -> None:
    with pytest.raises(InvalidValue, match=r"SCHEMA\.TABLE"):
        world.made(KEEP, place)


@pytest.mark.parametrize(
    ("column", "payload", "content_type"),
    [("raw", b"\x00\xff", "application/octet-stream"), ("words", "ä".encode(), "application/json")],
)
async def test_a_payload_s_bytes_are_the_column_s(
    world: TableWorld, column: str, payload: bytes, content_type: str
) -> None:
    await world.put([1])
    values = "raw = '\\x00ff', words = 'ä', goes_to = 'orders'"
    await world.session.execute(f"UPDATE public.{quoted()} SET {values}")
    (entry,) = await read(world.made(KEEP | {"payload_column": column, "target_column": "goes_to"}))
    assert (entry.message.payload, entry.message.content_type) == (payload, content_type)
    assert (entry.message.target, entry.message.attempts) == ("orders", 3)


async def test_a_row_that_is_too_large_is_a_fault_and_is_read_in_part_only(world: TableWorld) -> None:
    await world.put([1])
    await world.session.execute(f"UPDATE public.{quoted()} SET words = repeat('x', 1048577)")
    (entry,) = await read(world.made(KEEP | {"payload_column": "words"}))
    assert "1,048,577 bytes" in entry.fault
    assert len(entry.message.payload) == 65_536


@pytest.mark.parametrize("url", ["postgresql://u:s3cret@127.0.0.1:1/x", "mysql://u:s3cret@h/x", "::s3cret::"])
async def test_a_server_that_cannot_be_reached_is_said_without_the_password(url: str) -> None:
    connection = Connection(name="app", kind="table", url=url)
    source = TableSource(connection, ACME, SourceAddress("table", PLACE, options=KEEP))
    with pytest.raises(SourceUnavailable, match="'app'") as raised:
        await source.survey()
    assert "s3cret" not in str(raised.value)


def quoted() -> str:
    return '"Failed ""jobs"""'
