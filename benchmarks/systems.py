"""Who is compared: how each is run, when its work is recorded, and roughly how fast it is.

The rough rates only choose how large a backlog is, so that a run lasts about as long for everybody.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import FLOOR, OURS

HERE = Path(__file__).parent
PEERS_PYTHON = HERE / ".venv-peers" / "bin" / "python"


@dataclass(frozen=True, slots=True)
class System:
    """One system under test.

    ``unrecorded``: SQL that is true while a job waits, runs, or has not been recorded as done. ``rates``:
    jobs a second to expect at a batch of 1, 10 and 100. ``fifo``: it serves in order of arrival, whosever
    the jobs are.
    ``steady``: half the time says as much of it.
    """

    name: str
    python: Path
    unrecorded: str
    rates: Mapping[int, int]
    fifo: bool = True
    script: str = ""
    steady: bool = False

    def command(self, mode: str) -> list[str]:
        """The command line, but for the options."""
        return [str(self.python), str(HERE / "peers" / f"{self.script or self.name}_run.py"), mode]

    def backlog(self, batch: int, seconds: float) -> int:
        """Jobs for about so many seconds."""
        part = 0.5 if self.steady else 1.0
        return max(100, int(self.rates[batch] * seconds * part) // 100 * 100)


OWN = Path(sys.executable)

OURS_SYSTEM = System(
    OURS, OWN, "SELECT EXISTS (SELECT FROM tenantry.jobs)", {1: 1_000, 10: 6_000, 100: 16_000}, fifo=False
)
FLOOR_SYSTEM = System(
    FLOOR, OWN, "SELECT EXISTS (SELECT FROM floor_jobs)", {1: 3_000, 10: 20_000, 100: 70_000}, steady=True
)
PGQUEUER = System(
    "pgqueuer", PEERS_PYTHON, "SELECT EXISTS (SELECT FROM pgqueuer)", {1: 900, 10: 6_000, 100: 15_000}
)
PROCRASTINATE = System(
    "procrastinate",
    PEERS_PYTHON,
    "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
    {1: 500, 10: 900, 100: 900},
    steady=True,
)
AWA = System(
    "awa",
    PEERS_PYTHON,
    "SELECT EXISTS (SELECT FROM awa.jobs WHERE state IN ('available', 'running'))",
    {1: 300, 10: 1_200, 100: 4_000},
)

PEERS = (PGQUEUER, PROCRASTINATE, AWA)
EVERYBODY = (OURS_SYSTEM, FLOOR_SYSTEM, *PEERS)
