"""What only a real PostgreSQL shows of the replays' store: rows it cannot take, partitions, rights, and many
sessions at once."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tenantry.kernel.clock import SystemClock
from tenantry.kernel.randomness import SeededRandomness, SystemRandomness
from tenantry.lanes.model import HTTP
from tenantry.postgres.database import Database
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.planner_store import PostgresPlannerStore
from tenantry.postgres.replay_desk import PostgresReplayDesk
from tenantry.postgres.replay_store import PostgresReplayStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.postgres.worker_store import PostgresWorkerStore
from tenantry.queue.model import Ending, Node, NodeId
from tenantry.replay.model import Budget, Fate, Lease, Membership, Quotas, ReplayState
from tenantry.replay.repairs import AS_IT_IS, Repair
from tenantry.testing.conformance.replay_world import end_of, several, spec_of, staged, where, window_of
from tenantry.testing.conformance.world import ACME, GLOBEX, Hand

pytestmark = pytest.mark.needs_postgres
_WAITING_FOR_A_LOCK = """SELECT count(*) FROM pg_stat_activity
                          WHERE datname = current_database() AND wait_event_type = 'Lock'"""


@dataclass(slots=True)
class Rooms:
    """The stores of one process."""

    database: Database
    hints: Hints
    desk: PostgresReplayDesk
    store: PostgresReplayStore

    async def running(self) -> Lease:
        plan = await self.desk.plan(spec_of(), Membership(), "")
        assert await self.desk.start(ACME, plan.id, Quotas()) is not None
        (taken,) = await self.store.take("one", 600.0, limit=1)
        return Lease(taken.id, taken.token)


@pytest.fixture
async def rooms(database_urls: DatabaseUrls) -> AsyncIterator[Rooms]:
    async with await Database.open(database_urls) as database:
        hints = Hints(database)
        desk = PostgresReplayDesk(database, hints, SystemRandomness())
        yield Rooms(database, hints, desk, PostgresReplayStore(database, hints))
        await hints.close()


# -- rows that the database cannot take (case R2) -----------------------------------------------------------


async def test_r2_rows_that_cannot_be_stored_are_found_and_the_others_are_staged(rooms: Rooms) -> None:
    lease = await rooms.running()
    messages = several(20)
    messages[3] = replace(messages[3], headers={"x": "a\x00b"})
    messages[11] = replace(messages[11], target=replace(messages[11]).target + "\x00")  # type: ignore[arg-type]
    messages[12] = replace(messages[12], origin="\ud800")
    fed = await rooms.store.feed(lease, window_of(*messages, position="20", left=2))
    assert fed is not None
    assert [at for at, fate in enumerate(fed.fates) if fate is Fate.BROKEN] == [3, 11, 12]
    assert sum(fate is Fate.STAGED for fate in fed.fates) == 17
    view = await rooms.desk.replay(ACME, lease.replay)
    assert view is not None
    assert (view.position, view.counts.left, where(view.counts)) == ("", 0, {"waiting": 17})
    marked = [
        replace(each, broken="the store cannot take it") if fate is Fate.BROKEN else each
        for each, fate in zip(messages, fed.fates, strict=True)
    ]
    fed = await rooms.store.feed(lease, window_of(*marked, position="20", left=2))
    assert fed is not None
    assert [fed.fates.count(fate) for fate in (Fate.AGAIN, Fate.PARKED)] == [17, 3]
    view = await rooms.desk.replay(ACME, lease.replay)
    assert view is not None
    assert (view.position, view.counts.left, where(view.counts)) == ("20", 2, {"waiting": 17, "parked": 3})
    headers = [each.headers for each in await rooms.desk.parked(ACME, lease.replay, limit=9)]
    assert {"x": "a\ufffdb"} in headers


# -- generations --------------------------------------------------------------------------------------------


async def test_a_feed_makes_its_generation_where_nobody_has_tidied(
    rooms: Rooms, database_urls: DatabaseUrls
) -> None:
    assert await _generations(database_urls) == 0
    lease = await rooms.running()
    assert await rooms.store.feed(lease, window_of(staged("a"))) is not None
    assert await _generations(database_urls) == 2 * 8, "today's and tomorrow's, for each hash"


async def test_what_expired_is_dropped_by_the_partition_and_no_row_of_it_is_touched(
    rooms: Rooms, database_urls: DatabaseUrls
) -> None:
    lease = await rooms.running()
    await rooms.store.feed(lease, window_of(*several(50), lifetime_for=86_400.0))
    admin = await asyncpg.connect(database_urls.admin)
    old = (datetime.now(UTC) - timedelta(days=3)).date()  # noqa: TID251 - as the database has it
    await admin.execute("SELECT tenantry.roll_keys($1::date, $1::date + 4)", old)
    await admin.execute("UPDATE tenantry.replay_keys SET seen_at = seen_at - interval '3 days'")
    await admin.execute("UPDATE tenantry.replay_generations SET day = day - 3")
    await admin.execute("SELECT pg_stat_reset()")
    before = await _generations(database_urls)
    await rooms.store.tidy(now_kept_for=86_400.0)
    assert before - await _generations(database_urls) == 2 * 8
    assert await admin.fetchval("SELECT count(*) FROM tenantry.replay_keys") == 0
    deleted = "SELECT coalesce(sum(n_tup_del), 0) FROM pg_stat_user_tables WHERE relname LIKE 'replay_keys%'"
    assert await admin.fetchval(deleted) == 0
    await admin.close()


async def _generations(urls: DatabaseUrls) -> int:
    admin = await asyncpg.connect(urls.admin)
    try:
        return int(
            await admin.fetchval("SELECT count(*) FROM pg_class WHERE relname ~ '^replay_keys_\\d_\\d{8}$'")
        )
    finally:
        await admin.close()


# -- rights -------------------------------------------------------------------------------------------------


async def test_a_tenants_login_reads_its_own_replays_and_keys_and_changes_none(
    rooms: Rooms, database_urls: DatabaseUrls
) -> None:
    lease = await rooms.running()
    await rooms.store.feed(lease, window_of(staged("a"), staged("b", broken="bad")))
    tenant = await asyncpg.connect(database_urls.tenant)
    for name, bound, rows in (("acme", ACME, 1), ("globex", GLOBEX, 0), ("", "", 0)):
        await tenant.execute("SELECT set_config('tenantry.tenant_id', $1, false)".replace("$1", f"'{bound}'"))
        for table in ("replays", "replay_tenants", "replay_generations"):
            assert await tenant.fetchval(f"SELECT count(*) FROM tenantry.{table}") == rows, name
        assert await tenant.fetchval("SELECT count(*) FROM tenantry.replay_keys") == 2 * rows
    for change in (
        "UPDATE tenantry.replays SET state = 'running'",
        "UPDATE tenantry.replay_keys SET state = 2",
        "DELETE FROM tenantry.replay_keys",
        "SELECT * FROM tenantry.replay_fed",
        "SELECT tenantry.start_replay('acme', 'x', NULL, 1, '')",
        "SELECT tenantry.send_back('acme', gen_random_uuid(), NULL, NULL, NULL)",
        "SELECT tenantry.roll_keys('2000-01-01', '2000-01-02')",
        "INSERT INTO tenantry.replays (replay_id, tenant_id, state) VALUES ('r', 'acme', 'running')",
        "SELECT * FROM tenantry.replay_keys_0",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await tenant.execute(change)
    await tenant.close()


# -- many sessions at once ----------------------------------------------------------------------------------


async def test_who_waits_for_a_place_and_who_gives_it_never_wait_for_each_other(rooms: Rooms) -> None:
    one = Quotas(replays=1)
    for _ in range(2):
        plan = await rooms.desk.plan(spec_of(), Membership(), "")
        assert await rooms.desk.start(ACME, plan.id, one) is not None
    waiting = next(each for each in await rooms.store.take("one", 600.0, limit=2) if each.hold)
    async with rooms.database.side.acquire() as giver:
        given = giver.transaction()
        await given.start()
        await giver.execute("SELECT tenantry.replay_tenant('acme')")
        await giver.execute("UPDATE tenantry.replay_tenants SET most_running = 2")
        lease = Lease(waiting.id, waiting.token)
        admitting = asyncio.create_task(rooms.store.admit(lease, Quotas(replays=2)))
        while not await rooms.database.engine.fetchval(_WAITING_FOR_A_LOCK):
            assert not admitting.done()
        await giver.execute("SELECT tenantry.place_replays('acme')")
        await given.commit()
    view = await admitting
    assert view is not None
    assert view.state is ReplayState.RUNNING


async def test_the_flows_of_a_forgotten_replay_go_with_it_and_a_planner_that_knew_them_plans_on(
    rooms: Rooms,
) -> None:
    hand = Hand(PostgresPlannerStore(rooms.database, rooms.hints))
    worker = PostgresWorkerStore(rooms.database, rooms.hints)
    node = await worker.register(NodeId("one"), "shared", 100, {HTTP})
    assert isinstance(node, Node)

    async def delivered(count: int) -> Lease:
        lease = await rooms.running()
        await rooms.store.feed(lease, window_of(*(staged(f"{lease.replay}.{n}") for n in range(count))))
        assert await hand.claim(node, 100) == count
        taken = await worker.take(node, 30.0)
        assert await worker.settle(node, [end_of(job, Ending.DELIVERED) for job in taken]) == count
        for state in (ReplayState.DRAINING, ReplayState.FINISHED):
            assert await rooms.store.move(lease, state, running_for=1.0, progress="")
        return lease

    old = await delivered(5)
    kept = "SELECT count(*) FROM tenantry.flows JOIN tenantry.tails USING (flow_id) WHERE replay <> ''"
    await rooms.store.tidy(now_kept_for=0.0)
    assert await rooms.desk.replay(ACME, old.replay) is not None, "the planner has not heard of its ends yet"
    await hand.listen()
    await rooms.store.tidy(now_kept_for=0.0)
    assert await rooms.desk.replay(ACME, old.replay) is None
    assert await rooms.database.side.fetchval(kept) == 0
    new = await delivered(7)
    assert not hand.stale
    assert (await rooms.store.counts([new.replay]))[new.replay].delivered == 7


async def test_counts_add_up_at_every_instant_while_everybody_writes_at_once(
    rooms: Rooms, database_urls: DatabaseUrls
) -> None:
    """A feeder, a worker, a folder and people, each at its own pace; and one who counts all the while. What
    is taken never falls, nothing is negative, and in the end every message is somewhere once."""
    lease, crowd = await rooms.running(), 600
    async with await Database.open(database_urls, application_name="queue") as database:
        queue = Crowd(database, rooms, lease, SeededRandomness(3))
        await queue.join()
        async with asyncio.TaskGroup() as group:
            for part in (queue.feed(crowd), queue.work(), queue.fold(), queue.meddle(), queue.watch()):
                group.create_task(part)
        while await rooms.store.return_waiting(lease, limit=100):
            pass
        ended = await rooms.store.move(lease, ReplayState.CANCELLED, running_for=1.0, progress="")
        assert ended is not None
        assert ended.counts.taken == queue.staged >= 400
        assert set(where(ended.counts)) >= {"delivered", "parked", "dead", "returned"}
        assert sum(where(ended.counts).values()) == ended.counts.taken
        await queue.check_books()


_ENDINGS = tuple(Ending)


class Crowd:
    """Everybody who writes."""

    def __init__(self, database: Database, rooms: Rooms, lease: Lease, chance: SeededRandomness) -> None:
        self._rooms, self._lease, self._chance = rooms, lease, chance
        self._hints = Hints(database)
        self._database = database
        self._hand = Hand(PostgresPlannerStore(database, self._hints))
        self._worker = PostgresWorkerStore(database, self._hints)
        self._intake = PostgresIntakeStore(database, self._hints, SystemClock(), SystemRandomness())
        self._node: Node | None = None
        self._done = asyncio.Event()
        self.staged = 0

    async def join(self) -> None:
        node = await self._worker.register(NodeId("one"), "shared", 1_000, {HTTP})
        assert isinstance(node, Node)
        self._node = node

    async def feed(self, crowd: int) -> None:
        for start in range(0, crowd, 20):
            messages = [staged(f"m{n}") for n in range(start, start + 20)]
            fed = None
            while fed is None and not self._done.is_set():  # paused at this very moment, or cancelled
                fed = await self._rooms.store.feed(self._lease, window_of(*messages))
            self.staged += fed.fates.count(Fate.STAGED) if fed else 0

    async def work(self) -> None:
        """Claim and settle, in every way, until the replay was cancelled and nothing is held."""
        assert self._node is not None
        while not self._done.is_set() or self._hand.running:
            await self._hand.claim(self._node, 15)
            for job in await self._worker.take(self._node, 30.0):
                ending = _ENDINGS[int(self._chance.uniform(0, len(_ENDINGS)))]
                await self._worker.settle(self._node, [end_of(job, ending)])
            await self._hand.listen()

    async def fold(self) -> None:
        while not self._done.is_set():
            assert await self._rooms.store.fold(self._lease) is not None

    async def meddle(self) -> None:
        """A person sends back and drops what is parked, cancels jobs, and at last the replay."""
        desk, replay = self._rooms.desk, self._lease.replay
        while self.staged < 400:
            for aside in await desk.parked(ACME, replay, limit=4):
                await (desk.drop(ACME, aside.job) if self._chance.uniform(0, 1) < 0.3 else
                       desk.send_back(ACME, aside.job, AS_IT_IS))  # fmt: skip
            for view in await self._intake.jobs(ACME, state=None, limit=3):
                await self._intake.cancel(ACME, view.id)
            await desk.pause(ACME, replay)
            await desk.resume(ACME, replay)
        assert await desk.cancel(ACME, replay) is not None
        self._done.set()

    async def watch(self) -> None:
        taken = 0
        while not self._done.is_set():
            counts = (await self._rooms.store.counts([self._lease.replay]))[self._lease.replay]
            assert counts.taken >= taken, counts
            assert min(where(counts).values(), default=0) >= 0, counts
            taken = counts.taken

    async def check_books(self) -> None:
        """What the counters say lies in the tables."""
        row = await self._database.side.fetchrow(
            "SELECT (SELECT count(*) FROM tenantry.jobs) AS jobs, "
            "(SELECT count(*) FROM tenantry.parked) AS parked, "
            "(SELECT count(*) FROM tenantry.replay_fed WHERE parked) AS fed_parked, "
            "(SELECT count(*) FROM tenantry.replay_fed) AS fed, "
            "(SELECT count(*) FROM tenantry.replay_keys WHERE state = 1) AS staged, "
            "(SELECT count(*) FROM tenantry.dead_letters) AS letters"
        )
        assert row is not None
        counts = (await self._rooms.store.counts([self._lease.replay]))[self._lease.replay]
        assert row["jobs"] == row["staged"] == 0
        assert row["parked"] == row["fed_parked"] == row["fed"] == counts.parked - counts.dropped
        assert row["letters"] == counts.dead + counts.returned
        await self._hints.close()


# -- what outlives a crash of the server --------------------------------------------------------------------

_NOTE_HOW_COMMITS_WAIT = """
CREATE TABLE public.commits (waits text);
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN INSERT INTO public.commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
DO $$ DECLARE name regclass; BEGIN
  FOR name IN SELECT oid FROM pg_class WHERE relnamespace = 'tenantry'::regnamespace AND relkind = 'r' AND NOT relispartition
  LOOP EXECUTE format('CREATE CONSTRAINT TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON %s '
                      'DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note()', name); END LOOP;
END $$
"""  # noqa: E501 - one statement


async def test_what_a_source_or_a_person_is_told_of_was_committed_to_the_disk(
    rooms: Rooms, database_urls: DatabaseUrls
) -> None:
    admin = await asyncpg.connect(database_urls.admin)
    await admin.execute(_NOTE_HOW_COMMITS_WAIT)

    async def waited(*of: object) -> set[str]:
        assert all(each is not None and each is not False for each in of)
        return {
            row[0] for row in await admin.fetch("WITH gone AS (DELETE FROM commits RETURNING *) TABLE gone")
        }

    desk = rooms.desk
    plan = await desk.plan(spec_of(), Membership(), "")
    assert await waited(plan) == {"on"}
    assert await waited(await desk.start(ACME, plan.id, Quotas())) == {"on"}
    (taken,) = await rooms.store.take("one", 600.0, limit=1)
    assert await waited(taken) == {"off"}, "the engine's other commits do not wait"
    broken = [replace(each, broken="no JSON", park_rule="broken") for each in several(2)]
    assert await waited(await rooms.store.feed(Lease(taken.id, taken.token), window_of(*broken))) == {"on"}
    one, two = await desk.parked(ACME, plan.id, limit=2)
    assert await waited(await desk.send_back(ACME, one.job, Repair(b"{}", {}))) == {"on"}
    assert await waited(await desk.drop(ACME, two.job)) == {"on"}
    budget = replace(plan.spec, budget=Budget(messages=9))
    assert await waited(await desk.rebudget(ACME, plan.id, budget)) == {"on"}
    for order in (desk.pause, desk.resume, desk.cancel):
        assert await waited(await order(ACME, plan.id)) == {"on"}, order
    await admin.close()
