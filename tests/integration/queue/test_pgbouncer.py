"""Case Q20: behind a PgBouncer in transaction mode everything works as without one. Nothing is kept on
a session: no prepared statement, no setting, no LISTEN; polling stands behind every hint."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from queue_world import ACME, GLOBEX, HOOK, Doing, jobs, opened, register_tenants, running, until

from tenantry.kernel.verdict import Refusal
from tenantry.lanes.outcome import Outcome
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.events import LeasesLost, PlannerLost, StoreFailed
from tenantry.queue.model import ClaimedJob, JobState, NewJob
from tenantry.queue.worker import WorkerSettings

pytestmark = pytest.mark.needs_postgres

CONFIG = """
[databases]
{database} = host={host} port={port} dbname={database}
[pgbouncer]
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
listen_addr =
unix_socket_dir = {home}
listen_port = 6432
auth_type = trust
auth_file = {home}/users
logfile = {home}/log
"""


@pytest.fixture
def bouncer(server_home: Path) -> Iterator[Callable[[DatabaseUrls, int], DatabaseUrls]]:
    """``bouncer(urls, size)``: the same database through a PgBouncer of ``size`` connections a login."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        line = "pgbouncer is not installed: as root, apt-get install pgbouncer"
        if os.environ.get("CI") == "true":  # noqa: TID251 - what CI promises is in its environment
            pytest.fail(line)
        pytest.skip(line)
    started: list[subprocess.Popen[bytes]] = []

    def start(urls: DatabaseUrls, size: int) -> DatabaseUrls:
        parts = urlsplit(urls.admin)
        options = parse_qs(parts.query)
        home, database = server_home / "bouncer", parts.path[1:]
        home.mkdir()
        home.chmod(0o777)
        where = {"host": options["host"][0], "port": options["port"][0], "home": home, "size": size}
        (home / "config").write_text(CONFIG.format(database=database, **where))
        (home / "users").write_text('"tenantry_engine" ""\n"tenantry_tenant" ""\n')
        as_nobody = {"user": "nobody"} if os.getuid() == 0 else {}
        started.append(subprocess.Popen([program, "-q", str(home / "config")], **as_nobody))  # type: ignore[call-overload]
        through = f"/{database}?host={home}&port=6432&pgbouncer=true"
        engine, tenant = (
            f"postgresql://{login}@{through}" for login in ("tenantry_engine", "tenantry_tenant")
        )
        return DatabaseUrls.derived(urls.admin, engine=engine, tenant=tenant)

    yield start
    for process in started:
        process.terminate()
        process.wait()


async def test_a_burst_of_two_tenants_is_run_behind_a_pgbouncer_in_transaction_mode(
    database_urls: DatabaseUrls, bouncer: Callable[[DatabaseUrls, int], DatabaseUrls], server_home: Path
) -> None:
    """Few server connections and many callers, so that no two statements in a row meet the same session."""
    await register_tenants(database_urls, ACME, GLOBEX)
    urls = bouncer(database_urls, 2)
    assert urls.pgbouncer
    await until(lambda: _there(server_home / "bouncer" / ".s.PGSQL.6432"))
    tries: dict[str, int] = {}

    async def fails_once(job: ClaimedJob) -> Outcome:
        tries[job.id] = tries.get(job.id, 0) + 1
        if job.seq % 5 == 0 and tries[job.id] == 1:
            return Outcome("http_503", status=503)
        return Outcome("ok", status=200)

    settings = WorkerSettings(lease_for=3.0)
    async with (
        opened(urls, connections=6) as queue,
        running(queue, Doing(fails_once), settings=settings) as node,
    ):

        async def user(number: int) -> None:
            tenant = (ACME, GLOBEX)[number % 2]
            keyed = NewJob(HOOK, b"{}", idempotency_key=f"{number}", ordering_key="k")
            for _ in range(4):
                ids = await queue.submit(tenant, [keyed, *jobs(3)])
                view = await queue.intake.job(tenant, ids[0])
                assert view is not None
                assert await queue.intake.job((GLOBEX, ACME)[number % 2], ids[0]) is None
                assert not isinstance(await queue.intake.submit_bulk(tenant, jobs(2), most=1_000), Refusal)

        await asyncio.gather(*(user(number) for number in range(12)))
        total = 12 * (1 + 4 * (3 + 2))
        await until(lambda: _delivered(queue, total))
        assert node.told.of(StoreFailed, PlannerLost, LeasesLost) == []
        assert await queue.faults() == []


async def _delivered(queue: object, count: int) -> bool:
    return bool((await queue.operator.counts())[JobState.DELIVERED] == count)  # type: ignore[attr-defined]


async def _there(path: Path) -> bool:
    return await asyncio.to_thread(path.exists)
