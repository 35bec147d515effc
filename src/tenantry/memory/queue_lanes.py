"""What the books know of each lane, for the table of lanes."""

from collections import Counter

from tenantry.lanes.model import Lane
from tenantry.lanes.shaper_state import readable
from tenantry.lanes.table import LaneFacts, LaneQuery, LaneSort, state_of
from tenantry.memory.books import Books
from tenantry.queue.model import JobState


def lanes_of(books: Books, query: LaneQuery) -> list[LaneFacts]:
    """The lanes that ``query`` asks for. O(jobs that have not ended)."""
    counts = _counts(books)
    wanted = (lane for lane in sorted(books.lanes, key=_name) if _is_wanted(lane, query))
    found = [_facts(books, lane, counts) for lane in wanted]
    kept = [facts for facts in found if query.state in (None, state_of(facts))]
    if query.sort is LaneSort.BACKLOG:
        kept.sort(key=lambda facts: -(facts.waiting + facts.delayed))
    elif query.sort is LaneSort.IN_FLIGHT:
        kept.sort(key=lambda facts: -facts.in_flight)
    return kept[: query.limit]


def _name(lane: Lane) -> tuple[bytes, bytes]:
    return lane.tenant.encode(), lane.target.encode()


def _is_wanted(lane: Lane, query: LaneQuery) -> bool:
    if query.tenant not in (None, lane.tenant) or query.target not in (None, lane.target):
        return False
    return query.after is None or _name(lane) > _name(query.after)


def _counts(books: Books) -> Counter[tuple[Lane, JobState]]:
    now = books.now()
    return Counter(
        (Lane(flow.opened.tenant, flow.opened.target), job.state(now))
        for flow in books.flows.values()
        for job in flow.jobs.values()
    )


def _facts(books: Books, lane: Lane, counts: Counter[tuple[Lane, JobState]]) -> LaneFacts:
    now, in_flight, kept = books.now(), counts[lane, JobState.RUNNING], books.shapers.get(lane)
    return LaneFacts(
        lane,
        now,
        waiting=counts[lane, JobState.WAITING],
        delayed=counts[lane, JobState.DELAYED],
        in_flight=in_flight,
        orders=books.orders_over(lane),
        shaper=None if kept is None else readable(kept, in_flight=in_flight, now=now),
    )
