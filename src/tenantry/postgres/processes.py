"""Processes and accounts of this machine, for the embedded server: who runs it, who is left, who has ended.

Linux only: relies on pidfds and ``/proc``.
"""

import os
import pwd
import select
import signal
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypedDict

from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.instant import Seconds

_POSTGRES = ("postgres", "postmaster")


class AccountArguments(TypedDict, total=False):
    """What ``subprocess`` takes to run a program as somebody else."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the server runs as. ``switched`` when that is not whom we run as."""

    uid: int
    gid: int
    switched: bool

    @classmethod
    def own(cls) -> Self:
        return cls(os.geteuid(), os.getegid(), switched=False)

    @property
    def name(self) -> str:
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:  # an id without a name, as containers have
            return str(self.uid)

    def popen(self) -> AccountArguments:
        """The arguments with which a child process becomes this account, dropping every other group."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switched else {}

    def own_path(self, path: Path) -> None:
        """Gives ``path`` itself, not what is in it, to this account."""
        if self.switched:
            os.chown(path, self.uid, self.gid)

    def own_tree(self, path: Path) -> None:
        """Gives ``path`` and all that is in it to this account."""
        self.own_path(path)
        for inner in path.rglob("*"):
            self.own_path(inner)

    def keeps_private(self, directory: Path) -> bool:
        """Whether ``directory`` is one, not a link to one, and nobody else may enter it."""
        try:
            found = directory.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == self.uid and not found.st_mode & 0o077


def account_of(home: Path) -> Account:
    """Who runs the server of ``home``: oneself; for root its owner, or ``nobody`` when root owns it."""
    if os.geteuid() != 0:
        return Account.own()
    owner = home.stat()
    if owner.st_uid != 0:
        return Account(owner.st_uid, owner.st_gid, switched=True)
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid, switched=True)


def barrier(path: Path, account: Account) -> Path | None:
    """The first of ``path`` and what is above it that ``account`` may not enter or run, if any.

    Only asked when the account is not our own, since we find that out by trying.
    """
    real = path.resolve()
    steps = (*reversed(real.parents), real) if account.switched else ()
    return next((step for step in steps if not _may_execute(step, account)), None)


def _may_execute(path: Path, account: Account) -> bool:
    found = path.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def ended(pid: int, *, within: Seconds) -> bool:
    """Whether the process ends within so many seconds; returns at that moment. True if there is none."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(within * 1000))
    finally:
        os.close(descriptor)


def is_server_in(cluster: Path, pid: int) -> bool:
    """Whether ``pid`` is a PostgreSQL process whose working directory is ``cluster``."""
    process = Path("/proc", str(pid))
    try:
        name = (process / "comm").read_text().strip()
        return name in _POSTGRES and (process / "cwd").samefile(cluster)
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # it ended, or it is another's
        return False


def end_servers_in(cluster: Path, *, first: int | None, within: Seconds = 15.0) -> None:
    """Ends all PostgreSQL processes whose working directory is ``cluster``; the postmaster ``first``, gently.

    A killed postmaster leaves children behind that mostly end by themselves; one that does not would hold
    the shared memory and stop the next server. Raises :class:`StoreUnavailable` when one survives.
    """
    left = list(_servers_in(cluster))
    if first in left and first is not None:
        _signal(first, signal.SIGINT)
        ended(first, within=within)
    for pid in _servers_in(cluster):
        _signal(pid, signal.SIGKILL)
        if not ended(pid, within=within):
            raise StoreUnavailable(
                f"process {pid} of an earlier server in {cluster} does not end; end it by hand"
            )


def _servers_in(cluster: Path) -> Iterator[int]:
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return (pid for pid in pids if is_server_in(cluster, pid))


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it was faster
        return
