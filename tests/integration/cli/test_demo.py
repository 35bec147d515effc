"""The demo as a newcomer runs it: in a process, short, and gone without a trace however it ends."""

import asyncio
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from cli_processes import TENANTRY, bare_environment

from tenantry.kernel.randomness import SystemRandomness
from tenantry.postgres.database import Database
from tenantry.postgres.inspection import Inspection
from tenantry.postgres.urls import DatabaseUrls

pytestmark = [pytest.mark.needs_postgres, pytest.mark.timeout(180)]

WITHIN = 60.0


class Demo:
    """A running demo whose temporary files are all in ``home``."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.home = home
        environment = {**bare_environment(), "TMPDIR": str(home), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [*TENANTRY, "demo", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def said(self, words: str) -> None:
        """Returns at the first line with ``words``."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if words in line:
                return
        raise AssertionError(f"it ended without saying {words!r}: {self.ended()}")

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=WITHIN)
        return self.process.returncode, out, err

    def leftovers(self) -> tuple[list[str], list[psutil.Process]]:
        """Files, and processes that work in ``home`` or were told of it."""
        return sorted(map(str, self.home.iterdir())), [p for p in psutil.process_iter() if self._is_ours(p)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            told = process.environ().get("TMPDIR") == str(self.home)
            return told or process.cwd().startswith(str(self.home))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False


@pytest.fixture
def start(server_home: Path, postgres_admin_url: str) -> Iterator[type[Demo]]:
    """``start(*arguments)``: a demo, ended with the test. Skipped where there is no embedded server."""
    demos: list[Demo] = []

    def begin(*arguments: str) -> Demo:
        demos.append(Demo(server_home, *arguments))
        return demos[-1]

    yield begin  # type: ignore[misc]
    for demo in demos:
        with stopped(demo):
            demo.process.kill()


@contextmanager
def stopped(demo: Demo) -> Iterator[None]:
    yield
    demo.process.wait(WITHIN)
    for stream in (demo.process.stdout, demo.process.stderr):
        if stream is not None:
            stream.close()


def test_a_short_demo_ends_by_itself_loses_nothing_and_leaves_nothing_behind(start, tmp_path):
    written = tmp_path / "figures.json"
    demo = start("--act", "1", "--seconds", "8", "--json", str(written))
    code, out, err = demo.ended()
    assert (code, err) == (0, "")
    found = json.loads(written.read_bytes())
    assert found["lost"] == 0 and found["faults_in_the_books"] == []
    assert found["accepted"] == found["delivered"] + found["dead"] > 0
    assert (found["dead"], found["parked"]) == (0, 0)
    assert found["refused"] > 10_000, "the burst is far beyond its bound"
    assert list(found["tiers"]) == ["critical", "enterprise", "standard", "free"]
    assert all(tier["p50"] <= tier["p99"] < found["fifo_p99"] for tier in found["tiers"].values())
    assert found["below_share"]["p99"] < found["fifo_p99"] / 10, "the burst delays nobody else"
    assert found["jain"] is None or found["jain"] > 0.95
    assert "tenantry up" in out and "docs/quickstart.md" in out
    assert "\x1b" not in out, "no terminal, no escapes"
    assert demo.leftovers() == ([], [])


def test_a_short_incident_loses_nothing_stops_what_is_poisoned_and_leaves_nothing_behind(start, tmp_path):
    written = tmp_path / "figures.json"
    demo = start("--act", "2", "--seconds", "8", "--json", str(written))
    code, out, err = demo.ended()
    found = json.loads(written.read_bytes())["incident"]
    assert err == ""
    broken = {law for law, kept in found["promises"].items() if not kept}
    assert all("(I3)" in law or "(F1)" in law for law in broken), "waits and shares are a quiet machine's"
    assert code == (1 if any("(I3)" not in law for law in broken) else 0), "waits are only told"
    assert found["lost"] == 0 and found["faults_in_the_books"] == []
    assert found["accepted"] == found["delivered"] + found["dead"] + found["parked"] > found["dead_letters"]
    assert found["dead_letters"] == 47 * 10 + 10 + 200 + 1_000
    assert sum(tier["ended"] for tier in found["tiers"].values()) == 47
    assert found["poison"]["stopped"] == "held" and "parked" in found["poison"]["why"]
    assert found["poison"]["kept"] > found["poison"]["parked"] >= 30, "it stopped long before the end"
    assert (found["hole"]["delivered"], found["hole"]["kept"]) == (0, 10)
    assert 0 < found["large"]["delivered"] < found["large"]["letters"], "it went on while the others ended"
    assert found["dead"] == sum(found[each]["kept"] for each in ("poison", "hole", "large"))
    assert ("promise did not hold" in out) == (code == 1)
    assert demo.leftovers() == ([], [])


@pytest.mark.parametrize(
    ("act", "words"),
    [("1", "starting PostgreSQL"), ("1", "0 s of 600 s"), ("2", "0 s, ordinary live work")],
)
def test_a_signal_ends_it_early_and_leaves_nothing_behind(start, act, words):
    demo = start("--act", act, "--seconds", "600")
    demo.said(words)
    demo.process.send_signal(signal.SIGINT)
    code, out, err = demo.ended()
    assert code == 130 and "Ended early" in out
    assert err == ""
    assert demo.leftovers() == ([], [])


@pytest.mark.parametrize(("act", "words"), [("1", "0 s of 600 s"), ("2", "0 s, ordinary live work")])
def test_the_other_processes_clean_up_after_a_demo_that_was_killed(start, act, words):
    demo = start("--act", act, "--seconds", "600")
    demo.said(words)
    _, processes = demo.leftovers()
    demo.process.kill()
    demo.process.wait(WITHIN)
    _, alive = psutil.wait_procs(processes, timeout=WITHIN)
    assert alive == []
    assert demo.leftovers() == ([], [])


def test_on_a_terminal_it_is_one_table_that_is_drawn_anew_and_no_color_is_kept(server_home: Path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 32, 80, 0, 0))
    environment = {
        **bare_environment(),
        "TMPDIR": str(server_home),
        "TERM": "xterm-256color",
        "NO_COLOR": "1",
    }
    process = subprocess.Popen(
        [*TENANTRY, "demo", "--act", "1", "--seconds", "4"], stdout=theirs, env=environment
    )
    os.close(theirs)
    shown = b"".join(_read(ours)).decode()
    os.close(ours)
    assert process.wait(WITHIN) == 0
    assert shown.count("50 tenants") > 5, "the table is drawn again and again"
    assert "delivered/s" in shown and "below share" in shown and "next: tenantry up" in shown
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7]|38)[;m]", shown), "no colours"


def _read(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            yield os.read(descriptor, 65_536)
        except OSError:  # so a terminal says that nobody writes any more
            return


def test_a_file_that_cannot_be_written_is_refused_before_anything_starts(start, tmp_path):
    demo = start("--json", str(tmp_path / "no" / "such" / "directory.json"))
    code, out, err = demo.ended()
    assert code == 2 and out == ""
    assert "--json" in err and "can be written" in err


async def test_a_job_without_an_end_is_not_counted_as_ended(database_urls: DatabaseUrls):
    async with await Database.open(database_urls) as database:
        ids = [SystemRandomness().time_ordered_id() for _ in range(3)]
        for id_, state in zip(ids, (1, 2), strict=False):
            await database.engine.execute(
                "INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, ended_at) "
                "VALUES ($1, 'acme', $2, 1, clock_timestamp())",
                id_,
                state,
            )
        async with asyncio.timeout(WITHIN):
            ends = await Inspection(database).ends(ids)
        assert {state.value: jobs for state, jobs in ends.items()} == {"delivered": 1, "dead": 1}
