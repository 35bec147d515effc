"""One system's figure for one cell of ``make bench NAME=partition``: ``SYSTEM CELL COUNT`` -> a JSON number.

Standard library only, besides the system itself: it runs in the peers' environment and in ours. What a
peer does is named in ``benchmarks/partition/__init__.py``.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

Place = Callable[[str], Any]
TENANT, AT = "tenant-A", 1_710_000_000.0
HOT = 8


def ours(partitions: int, spread: int = 1) -> Any:
    from tenantry.partition import Layout, Placement

    return Placement(Layout(partitions, {TENANT: spread} if spread > 1 else {}))


def by_tenant(system: str, partitions: int) -> Place:
    """A tenant's (first) partition, as number or name."""
    nodes = [str(each) for each in range(partitions)]
    if system == "ours":
        place = ours(partitions).partition_for
        return lambda tenant: place(tenant, "", AT)
    if system == "the document":
        return lambda tenant: document_ranking(tenant, partitions)[0]
    if system == "uhashring":
        from uhashring import HashRing

        return HashRing(nodes=nodes).get_node
    if system == "clandestined":
        from clandestined import RendezvousHash

        return RendezvousHash(nodes=nodes).find_node
    from aiokafka.partitioner import DefaultPartitioner

    everywhere, partition = list(range(partitions)), DefaultPartitioner()
    return lambda tenant: partition(tenant.encode(), everywhere, everywhere)


def document_hash(*parts: str) -> int:
    data = "\x1f".join(parts).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def document_ranking(tenant: str, partitions: int) -> list[int]:
    return sorted(range(partitions), key=lambda p: document_hash(tenant, str(p)), reverse=True)


def timed(calls: Iterable[Any], one: Callable[[Any], Any]) -> float:
    """Seconds a call, the loop's own time taken off."""
    inputs = list(calls)
    began = time.perf_counter()
    for each in inputs:
        one(each)
    took = time.perf_counter() - began
    began = time.perf_counter()
    for _ in inputs:
        pass
    return (took - (time.perf_counter() - began)) / len(inputs)


def single(system: str, count: int) -> float:
    """Nanoseconds to place one event of a tenant that is known. 32 partitions, a spread of eight."""
    entities = [f"msg-{i}" for i in range(count)]
    if system == "ours":
        place = ours(32, HOT).partition_for
        place(TENANT, "warm", AT)
        return 1e9 * timed(entities, lambda each: place(TENANT, each, AT)) - empty_call(entities)
    if system == "bare blake2b":
        digest, inputs = hashlib.blake2b, [f"{TENANT}\x1f{each}".encode() for each in entities]
        return 1e9 * timed(inputs, lambda each: digest(each, digest_size=8).digest()) - empty_call(inputs)
    if system == "the document":
        return 1e9 * timed(entities, document_key) - empty_call(entities)
    place = by_tenant(system, 32)
    return 1e9 * timed(entities, place) - empty_call(entities)


def document_key(entity: str) -> int:
    return document_ranking(TENANT, 32)[:HOT][document_hash(TENANT, entity) % HOT]


def empty_call(inputs: list[Any]) -> float:
    """Nanoseconds of the lambda around a system; where there is none it is taken off too, in its favour."""
    return 1e9 * timed(inputs, lambda each: each)


def cold(system: str, count: int) -> float:
    """Microseconds to place the first event of a tenant among 32 partitions."""
    return first_sight(system, count, 32)


def cold_1000(system: str, count: int) -> float:
    """The same among 1,000: what ranking them costs."""
    return first_sight(system, count, 1_000)


def first_sight(system: str, count: int, partitions: int) -> float:
    return 1e6 * timed((f"tenant-{i}" for i in range(count)), by_tenant(system, partitions))


def batch(system: str, count: int) -> float:
    """Nanoseconds an event of many in one call, over 1,000 tenants that are known."""
    events = [(f"tenant-{i % 1000}", f"msg-{i}", AT) for i in range(count)]
    placement = ours(32)
    placement.partitions_for(events[:1000])
    began = time.perf_counter()
    placement.partitions_for(events)
    return 1e9 * (time.perf_counter() - began) / count


def memory(system: str, count: int) -> float:
    """Megabytes that a million tenants add to the process, each seen once, as it grows at its highest."""
    import resource

    place = by_tenant(system, 32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(count):
        place(f"tenant-{i}")
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def growth(system: str, count: int) -> float:
    """Per cent of tenants whose first partition changes from 48 to 64."""
    before, after = by_tenant(system, 48), by_tenant(system, 64)
    tenants = [f"tenant-{i}" for i in range(count)]
    return 100 * sum(before(each) != after(each) for each in tenants) / count


def between_old(system: str, count: int) -> float:
    """Per cent of tenants that move from one of the 48 to another of the 48 when there are 64."""
    before, after = by_tenant(system, 48), by_tenant(system, 64)
    pairs = [(str(before(each)), str(after(each))) for each in (f"tenant-{i}" for i in range(count))]
    return 100 * sum(was != then and int(then) < 48 for was, then in pairs) / count


def balance(system: str, count: int, partitions: int) -> float:
    """How far chi-square is from its middle, 1 being the edge of the 99.9 % band (Wilson and Hilferty)."""
    place, counts = by_tenant(system, partitions), dict.fromkeys(map(str, range(partitions)), 0)
    for i in range(count):
        counts[str(place(f"tenant-{i}"))] += 1
    mean, freedom = count / partitions, partitions - 1
    squares = sum((each - mean) ** 2 for each in counts.values()) / mean
    step = 2 / (9 * freedom)
    return abs(((squares / freedom) ** (1 / 3) - (1 - step)) / step**0.5) / 3.2905


def apart(system: str, count: int) -> float:
    """Points between the share of pairs with no partition in common, k = 4 of 48, and 69.77 %."""
    from tenantry.partition import Layout, overlap

    found = overlap(Layout(48, default_spread=4), (f"tenant-{i}" for i in range(count)))
    return abs(100 * found.apart - 69.77)


CELLS: dict[str, Callable[..., float]] = {
    "single": single, "cold": cold, "cold_1000": cold_1000, "batch": batch, "memory": memory,
    "growth": growth, "between_old": between_old, "balance": balance, "apart": apart,
}  # fmt: skip

if __name__ == "__main__":
    name, cell, *numbers = sys.argv[1:]
    print(json.dumps(CELLS[cell](name, *map(int, numbers))))
