"""One slow tenant in a partition, beside ten others: how much longer these wait than without it.

One topic of one partition, on a broker of its own process that speaks Kafka's protocol: noida-db, which
answers a fetch in a tenth of a millisecond, so that little of what is measured is the broker's; or the one
that ``KAFKA_BOOTSTRAP`` names. Ten tenants send 25 records a second each, which take 2 ms to handle. The slow
one sends 200 a second that take 100 ms: 20 slots' worth. All systems have 16 slots, but for the plain one:

- ours: ``FairConsumer``; equal tiers, of which each may hold half of the slots (the default).
- no cap: the same, a tenant may hold them all.
- pool: confluent-kafka's consumer and 16 threads, first come, first served.
- plain: confluent-kafka's consumer, one record after the other.

Each run is a process; idle and slow runs of all systems take turns.
"""

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured
from benchmarks.fleet import RunnerFailed

SCRIPT = Path(__file__).parents[1] / "peers" / "kafka_run.py"
NO_CAP, POOL, PLAIN = "no cap", "pool", "plain"


async def slow_tenant(context: Context) -> None:
    """The others' p99 beside the slow tenant, over their p99 without it; and both."""
    seconds = 1.2 if context.quick else 8.0
    times = Measured("others' p99 beside a slow tenant, over idle", "× idle", "lower", Goal(at_most=2.0))
    idle = Measured("others' p99 of one partition, idle", "ms", "lower")
    beside = Measured("others' p99 of one partition, beside a slow tenant", "ms", "lower")
    async with broker() as bootstrap:
        for run in range(context.runs):
            for system in (OURS, NO_CAP, POOL, PLAIN):
                if context.quick and run and system != OURS:
                    continue  # the others once: 45 seconds in all
                alone = await p99(system, bootstrap, 0, seconds)
                crowded = await p99(system, bootstrap, 1, seconds)
                idle.add(system, alone)
                beside.add(system, crowded)
                times.add(system, crowded / alone)
    context.judge(times, idle, beside)


async def p99(system: str, bootstrap: str, slow: int, seconds: float) -> float:
    """One run. Raises :class:`RunnerFailed` with what it said."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), system, bootstrap, str(slow), str(seconds),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await child.communicate()
    if child.returncode:
        raise RunnerFailed(f"{system}, slow tenant: {err.decode()[-300:]}")
    return float(json.loads(out))


@asynccontextmanager
async def broker() -> AsyncIterator[str]:
    """The address of a broker, which ends with the block. Raises :class:`RunnerFailed` without one."""
    given = os.environ.get("KAFKA_BOOTSTRAP")
    if given:
        yield given
        return
    spec = find_spec("noida_db")
    if spec is None or spec.origin is None:
        raise RunnerFailed("slow tenant: pip install noida-db, or set KAFKA_BOOTSTRAP to a Kafka")
    home = tempfile.mkdtemp(prefix="tnt-")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    child = await asyncio.create_subprocess_exec(
        Path(spec.origin).parent / "noida-db", "start", "--only", "kafka", "--kafka-port", str(port),
        "--data-dir", home, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"127.0.0.1:{port}"  # a client waits until it answers
    finally:
        child.terminate()
        await child.wait()
        shutil.rmtree(home, ignore_errors=True)
