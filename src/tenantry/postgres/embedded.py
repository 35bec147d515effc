"""A real PostgreSQL on this machine, owned by one process: a small supervisor of the server's own binaries.

Layout of a data directory, all of it mode 0700::

    owner.lock     flock'ed by the starter for as long as it lives; holds its process id
    cluster/       PGDATA; made under another name and renamed, so half of one is never seen
    socket/        the Unix socket; where its path would not fit in a socket address, the directory is
                   tenantry-<hash of the path> among the temporary files instead
    binaries/      a copy of the binaries, only where the server's account cannot reach the originals
    server.log     what the server says

Who may connect. There is no TCP port; whoever can enter the socket's directory is trusted. That is this
account and root.

Who owns. The process that holds ``owner.lock`` is the starter. A second start on the same directory attaches:
it waits until the server answers, and its ``stop`` does nothing. The lock dies with the starter, however it
dies; a server that outlives its starter is shut down by the next start, which then begins afresh, so that
settings are always the starter's. The socket keeps its name: clients reconnect to the same URL.

Linux only: relies on pidfds and ``/proc``.
"""

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Literal, Self
from urllib.parse import quote

from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import Closed, InvalidValue, StoreUnavailable
from tenantry.kernel.instant import Instant, Seconds
from tenantry.postgres.binaries import checked, copied, packaged
from tenantry.postgres.processes import Account, account_of, barrier, end_servers_in, ended, is_server_in

StopMode = Literal["smart", "fast", "immediate"]

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "listen_addresses": "",
        "port": "5432",
        "max_connections": "200",
        "shared_buffers": "128MB",
        "dynamic_shared_memory_type": "mmap",  # what a kill leaves goes with the directory
        "min_dynamic_shared_memory": "8MB",  # taken first, in memory
        "fsync": "on",
        "synchronous_commit": "on",
        "max_wal_size": "1GB",
        "wal_compression": "on",
        "autovacuum_naptime": "1s",  # queue tables die at the head of their indexes: sweep eagerly
        "jit": "off",
        "TimeZone": "UTC",
        "log_timezone": "UTC",
        "log_checkpoints": "off",
    }
)
"""What the server runs with; ``settings`` overrides by name."""

_OURS = ("data_directory", "unix_socket_directories", "unix_socket_permissions", "external_pid_file")
_SIGNALS: Mapping[StopMode, signal.Signals] = MappingProxyType(
    {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
)
_SOCKET_PATH_BYTES = 107  # sun_path is 108 bytes with its NUL; see unix(7)
_LOG_BYTES = 16 << 20
_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/bin:/bin"}
_STEP: Seconds = 0.02


class EmbeddedServer:
    """One PostgreSQL server on ``data_dir``. Use from one task or thread at a time.

    ``data_dir`` is new, empty, or was made by this class. ``binaries`` is a directory with ``postgres`` and
    ``initdb`` of PostgreSQL >= 15 (default: those of the ``embedded`` extra). ``settings`` are PostgreSQL's
    own, added to :data:`SETTINGS`.

    As root the server runs as the directory's owner, or as ``nobody`` when root owns it; else as oneself.

    Raises :class:`InvalidValue` for a directory or setting that cannot be used and :class:`MissingExtra` when
    there are no binaries.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        *,
        binaries: str | os.PathLike[str] | None = None,
        settings: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.data_dir = Path(data_dir).absolute()
        self._cluster = self.data_dir / "cluster"
        self._log = self.data_dir / "server.log"
        self._packaged = binaries is None
        self._binaries = packaged() if binaries is None else checked(Path(binaries))
        self._settings = {**SETTINGS, **_checked_settings(settings or {})}
        self._clock = clock or SystemClock()
        self._account = Account.own()
        self._lock: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._attached = False

    # -- life ---------------------------------------------------------------------------------------------

    def start(self, *, within: Seconds = 120.0) -> None:
        """Returns when the server accepts connections. Does nothing when it already runs.

        The first start of a directory takes one to two seconds, later ones a fraction of one; after a crash
        recovery may take longer, hence ``within`` (seconds). Raises :class:`StoreUnavailable` with the
        server's last words when it does not come up.
        """
        if self.running:
            return
        self._forget()
        deadline = Instant(self._clock.monotonic() + within)
        self._prepare_home()
        while not self._take_ownership():
            if self._attach():
                return
            self._check(deadline, "another process is starting it")
            ended(self._owner(), within=_STEP)  # or its step is over: look again
        try:
            self._launch(deadline)
        except BaseException:
            self.kill()
            raise

    def stop(self, mode: StopMode = "fast", *, within: Seconds = 30.0) -> None:
        """Shuts the server down if this object started it; does nothing otherwise. Safe to call twice.

        ``fast`` rolls back what is open and writes a checkpoint, ``smart`` waits for clients to leave,
        ``immediate`` leaves recovery to the next start. After ``within`` seconds harder means follow.
        """
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(_SIGNALS[mode])
            if not ended(process.pid, within=within):
                process.send_signal(signal.SIGQUIT)
                ended(process.pid, within=5.0)
        self.kill()
        if not _fits_socket(self.data_dir / "socket"):
            with suppress(OSError):  # another server's, or already gone
                self._short_directory().rmdir()

    def kill(self) -> None:
        """SIGKILL to the postmaster if this object started it, for crash tests. Its children follow."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._forget()

    @property
    def running(self) -> bool:
        """Whether the server that this object started or attached to is alive."""
        if self._process is not None:
            return self._process.poll() is None
        return self._attached and self._postmaster() is not None

    @property
    def pid(self) -> int:
        """The postmaster's process id. Raises :class:`Closed` when the server is not running."""
        pid = self._postmaster() if self.running else None
        if pid is None:
            raise Closed(f"the PostgreSQL server in {self.data_dir} is not running; call start() first")
        return pid

    @property
    def started_here(self) -> bool:
        """True for the starter, false for one that attached to a server started by another."""
        return self._process is not None

    def url(self, user: str = "postgres", database: str = "postgres") -> str:
        """The URL of ``database`` for ``user``, over the Unix socket. Raises :class:`Closed` if down."""
        if not self.running:
            raise Closed(f"the PostgreSQL server in {self.data_dir} is not running; call start() first")
        lines = self._pid_file()
        host, port = quote(lines[4], safe="/"), lines[3]
        return f"postgresql://{quote(user, safe='')}@/{quote(database, safe='')}?host={host}&port={port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- owning -------------------------------------------------------------------------------------------

    def _prepare_home(self) -> None:
        home = self.data_dir
        try:
            _check_home(home)
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._account = account_of(home)
            self._check_reachable()
            self._account.own_path(home)
            home.chmod(0o700)
        except OSError as error:
            hint = f"{error.strerror}. It must belong to the account that starts the server."
            raise InvalidValue(
                "data_dir", str(home), "a directory that can be made and written", hint
            ) from error

    def _check_reachable(self) -> None:
        blocked = barrier(self.data_dir.parent, self._account)
        if blocked is not None:
            raise InvalidValue(
                "data_dir",
                str(self.data_dir),
                f"a directory that the account {self._account.name!r} can reach",
                f"PostgreSQL refuses to run as root, so it runs as {self._account.name!r}, who may not enter "
                f"{blocked}. Choose another place, such as /var/lib/tenantry, or do not run as root.",
            )

    def _take_ownership(self) -> bool:
        lock = (self.data_dir / "owner.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._account.own_path(self.data_dir / "owner.lock")
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock
        return True

    def _owner(self) -> int:
        """Whom to wait for: the starter, or ourselves while it has not written its name."""
        text = (self.data_dir / "owner.lock").read_text()
        alive = text.isdigit() and Path("/proc", text).exists()
        return int(text) if alive else os.getpid()

    def _attach(self) -> bool:
        self._attached = self._postmaster() is not None and self._answers()
        return self._attached

    def _forget(self) -> None:
        self._process, self._attached = None, False
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- launching ----------------------------------------------------------------------------------------

    def _launch(self, deadline: Instant) -> None:
        end_servers_in(self._cluster, first=self._recorded_pid())
        (self._cluster / "postmaster.pid").unlink(missing_ok=True)
        self._use_reachable_binaries()
        if not (self._cluster / "PG_VERSION").exists():
            self._create_cluster()
        sockets = self._socket_dir()
        for stale in sockets.glob(".s.PGSQL.*"):  # a reused process id in one would stop the server
            stale.unlink()
        said_before = self._spawn(sockets)
        self._await_answer(deadline, said_before)

    def _use_reachable_binaries(self) -> None:
        blocked = barrier(self._binaries / "postgres", self._account)
        if blocked is None:
            return
        if not self._packaged:
            hint = f"{self._account.name!r} may not enter {blocked}."
            raise InvalidValue("binaries", str(self._binaries), f"readable by {self._account.name!r}", hint)
        self._binaries = copied(self._binaries, self.data_dir / "binaries")
        self._account.own_tree(self.data_dir / "binaries")

    def _create_cluster(self) -> None:
        new = self.data_dir / "cluster.new"
        shutil.rmtree(new, ignore_errors=True)
        locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=libc"]
        access = ["--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256"]
        done = subprocess.run(  # noqa: S603 - our own binaries, no shell
            [str(self._binaries / "initdb"), "-D", str(new), "--no-instructions", *locale, *access],
            cwd=self.data_dir,
            env=_ENVIRONMENT,
            capture_output=True,
            check=False,
            **self._account.popen(),
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise StoreUnavailable(f"initdb could not make a cluster in {self.data_dir}: {said}")
        new.rename(self._cluster)

    def _socket_dir(self) -> Path:
        near = self.data_dir / "socket"
        directory = near if _fits_socket(near) else self._short_directory()
        directory.mkdir(mode=0o700, exist_ok=True)
        if self._account.switched and directory.lstat().st_uid == 0:
            self._account.own_path(directory)
        if not self._account.keeps_private(directory):  # somebody else made it, in a place open to all
            raise StoreUnavailable(
                f"{directory} is not private to {self._account.name!r}; remove it and try again"
            )
        return directory

    def _short_directory(self) -> Path:
        name = "tenantry-" + hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]
        usual = Path(tempfile.gettempdir(), name)
        return usual if _fits_socket(usual) else Path("/tmp", name)  # noqa: S108 - checked to be private

    def _spawn(self, sockets: Path) -> int:
        """Starts the postmaster; returns the length of the log before it said anything."""
        settings = {
            **self._settings,
            "unix_socket_directories": str(sockets),
            "unix_socket_permissions": "0700",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        if self._log.exists() and self._log.stat().st_size > _LOG_BYTES:
            self._log.replace(self._log.with_suffix(".log.old"))
        with self._log.open("ab") as log:
            said_before = log.tell()
            self._account.own_path(self._log)
            self._process = subprocess.Popen(  # noqa: S603 - our own binaries, no shell
                [str(self._binaries / "postgres"), "-D", str(self._cluster), *options],
                cwd=self.data_dir,
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us; we decide when the server ends
                **self._account.popen(),
            )
        return said_before

    def _await_answer(self, deadline: Instant, said_before: int) -> None:
        process = self._process
        while process is not None and not (self._recorded_pid() == process.pid and self._answers()):
            if process.poll() is not None:
                raise StoreUnavailable(f"PostgreSQL did not start: {self._last_words(said_before)}")
            self._check(deadline, f"it has not said more than: {self._last_words(said_before)}")
            ended(process.pid, within=_STEP)

    def _check(self, deadline: Instant, why: str) -> None:
        if self._clock.monotonic() > deadline:
            raise StoreUnavailable(
                f"the PostgreSQL server in {self.data_dir} does not accept connections: {why}"
            )

    def _last_words(self, said_before: int) -> str:
        with self._log.open("rb") as log:
            log.seek(said_before)
            said = log.read().decode(errors="replace").strip()
        return said[-2000:] or "nothing in its log"

    # -- the server's own pid file (see storage/file layout: miscinit.c, AddToDataDirLockFile) ------------

    def _pid_file(self) -> list[str]:
        try:
            return (self._cluster / "postmaster.pid").read_text().split("\n")
        except FileNotFoundError:
            return []

    def _recorded_pid(self) -> int | None:
        lines = self._pid_file()
        return int(lines[0]) if lines and lines[0].isdigit() else None

    def _answers(self) -> bool:
        lines = self._pid_file()
        return len(lines) > 7 and lines[7].strip() == "ready"

    def _postmaster(self) -> int | None:
        pid = self._recorded_pid()
        return pid if pid is not None and is_server_in(self._cluster, pid) else None


def _check_home(home: Path) -> None:
    if home.exists() and not home.is_dir():
        raise InvalidValue("data_dir", str(home), "a directory")
    if home.exists() and any(home.iterdir()) and not (home / "owner.lock").exists():
        hint = "It holds files that are not ours; a subdirectory of it would do."
        raise InvalidValue(
            "data_dir", str(home), "a new or empty directory, or one made by EmbeddedServer", hint
        )


def _checked_settings(settings: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in settings.items():
        if name in _OURS or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name):
            hint = f"{', '.join(_OURS)} are chosen by the supervisor."
            raise InvalidValue(f"settings.{name}", value, "the name of a PostgreSQL setting", hint)
        if not isinstance(value, str) or "\x00" in value:
            raise InvalidValue(f"settings.{name}", value, "text, as in postgresql.conf")
    return settings


def _fits_socket(directory: Path) -> bool:
    return len(os.fsencode(directory / ".s.PGSQL.65535")) <= _SOCKET_PATH_BYTES
