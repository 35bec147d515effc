"""Partitions beside uhashring, clandestined, Kafka's murmur2 partitioner, and the document's own code;
and the consumer that is fair inside one, beside two that are not (:mod:`benchmarks.partition.slow`).

Each figure is taken in a process of its own; the systems take turns. What they are:

- bare blake2b: one ``hashlib.blake2b(data, digest_size=8).digest()`` of the same bytes, and nothing else.
- the document: the program that the product was built from, which ranks all partitions at each call.
- uhashring: its ketama ring (the default), with its default number of virtual nodes; made once.
- clandestined: ``RendezvousHash``, its murmur3 in Python; made once.
- murmur2: aiokafka's ``DefaultPartitioner`` on the encoded key, as a producer calls it.

The peers place a key by itself: they know no tenants, no spread and no time, so they do less.
"""

import asyncio
import json
import sys
from pathlib import Path

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured
from benchmarks.fleet import RunnerFailed
from benchmarks.partition.slow import slow_tenant
from benchmarks.systems import PEERS_PYTHON

SCRIPT = Path(__file__).parents[1] / "peers" / "partition_run.py"
BARE, DOCUMENT, MURMUR = "bare blake2b", "the document", "murmur2"
RING, CLAN = "uhashring", "clandestined"
PEERS = (RING, CLAN, MURMUR)


async def run(context: Context) -> None:
    """Every cell, one after the other. One that fails is told and keeps no other from its figures."""
    for cell in (speed, crowds, balance, movement, slow_tenant):
        if context.wanted(cell.__name__):
            try:
                await cell(context)
            except RunnerFailed as error:
                context.fail(cell.__name__, error)


async def speed(context: Context) -> None:
    """Time a call: known tenants, first sights, many at once."""
    calls = 50_000 if context.quick else 200_000
    known = Measured(
        "an event of a known tenant, k = 8 of 32", "ns", "lower", Goal(at_least=0.4, against=BARE)
    )
    first = Measured(
        "the first event of a tenant, 32 partitions", "µs", "lower", Goal(at_least=1.0, against=DOCUMENT)
    )
    among = Measured(
        "the first event of a tenant, 1,000 partitions", "µs", "lower", Goal(at_least=1.0, against=DOCUMENT)
    )
    many = Measured("an event of a batch over 1,000 tenants", "ns", "lower")
    for _ in range(context.runs):
        for system in (OURS, BARE, MURMUR, RING):
            known.add(system, await figure(system, "single", calls))
        for system in (DOCUMENT, CLAN):
            known.add(system, await figure(system, "single", calls // 50))
        for system in (OURS, DOCUMENT, *PEERS):
            first.add(system, await figure(system, "cold", calls // 40))
        for system in (OURS, DOCUMENT):
            among.add(system, await figure(system, "cold_1000", calls // 1_000))
        many.add(OURS, await figure(OURS, "batch", calls))
    context.judge(known, first, among, many)


async def crowds(context: Context) -> None:
    """A million tenants, each seen once: memory stays what the cache may hold."""
    tenants = 200_000 if context.quick else 1_000_000
    held = Measured(f"memory that {tenants:,} tenants add", "MB", "lower", Goal(at_most=40.0))
    for _ in range(1 if context.quick else context.runs):
        held.add(OURS, await figure(OURS, "memory", tenants))
    context.judge(held)


async def balance(context: Context) -> None:
    """Tenants over partitions as chance would: chi-square, 1 being the edge of its 99.9 % band."""
    tenants = 20_000 if context.quick else 100_000
    for partitions in (32, 48, 1000):
        even = Measured(
            f"{tenants:,} tenants over {partitions:,}: chi-square", "of the band", "lower", Goal(at_most=1.0)
        )
        # clandestined scores every node in Python: at 1,000 of them it would take an hour
        peers = (RING, MURMUR) if context.quick or partitions == 1000 else PEERS
        if context.quick and partitions == 1000:
            peers = (MURMUR,)  # to make the ring takes longer than to use it
        for system in (OURS, *peers):
            even.add(system, await figure(system, "balance", tenants, partitions))
        context.judge(even)


async def movement(context: Context) -> None:
    """What 48 to 64 partitions moves, and how many pairs of tenants stay apart."""
    tenants = 4_000 if context.quick else 20_000
    moved = Measured("first partitions that move from 48 to 64", "%", "lower", Goal(at_most=27.0))
    crossed = Measured("of them between old partitions", "%", "lower", Goal(at_most=0.0))
    for system in (OURS, *PEERS):
        moved.add(system, await figure(system, "growth", tenants))
        crossed.add(system, await figure(system, "between_old", tenants))
    pairs = Measured(
        "pairs that share no partition, 4 of 48: off 69.77 %", "points", "lower", Goal(at_most=1.0)
    )
    pairs.add(OURS, await figure(OURS, "apart", 2_000))
    context.judge(moved, crossed, pairs)


async def figure(system: str, cell: str, *numbers: int) -> float:
    """One process's figure. Raises :class:`RunnerFailed` with what it said."""
    python = sys.executable if system in {OURS, BARE, DOCUMENT} else str(PEERS_PYTHON)
    child = await asyncio.create_subprocess_exec(
        python, str(SCRIPT), system, cell, *map(str, numbers),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await child.communicate()
    if child.returncode:
        raise RunnerFailed(f"{system}, {cell}: {err.decode()[-300:]}")
    return float(json.loads(out))
