"""The planner's side of the store. Every statement is one autocommit that names the term.

Rounds have a connection of their own, so that no burst of anything else can hold them up; the place is kept
over the side pool, so that it is kept while a rebuild holds that connection.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import asyncpg
import msgspec

from tenantry.kernel.errors import InvalidValue, PlaceLost
from tenantry.kernel.instant import Seconds, as_timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Kind, Lane, Target
from tenantry.lanes.orders import Scope
from tenantry.lanes.plain import Plain
from tenantry.lanes.summary import decoded
from tenantry.postgres.change_ids import ChangeIds
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.levels import standing_level
from tenantry.postgres.statements import statement
from tenantry.postgres.whole import whole_tables
from tenantry.queue.changes import (
    Change,
    ClaimPlan,
    Deferred,
    FlowOpened,
    FlowPaused,
    FlowStanding,
    Heard,
    Held,
    Left,
    LiveNode,
    NodesChanged,
    Ordered,
    Round,
    Standing,
    Submitted,
    Withdrawn,
)
from tenantry.queue.lifecycle import NODE_FRESH_FOR, START_LEASE
from tenantry.queue.model import FlowId, JobClass, PoolLevel, Seq

Row: TypeAlias = asyncpg.Record


class PostgresPlannerStore:
    """Implements :class:`tenantry.queue.ports.PlannerStore`."""

    def __init__(self, database: Database, hints: Hints) -> None:
        self._planning, self._side, self._hints = database.planning, database.side, hints
        self._ids = ChangeIds()
        self._known: set[int] = set()
        self._tails: dict[int, int] = {}  # the last place told of each flow that was told of

    async def take_place(self, holder: str, lease_for: Seconds) -> int | None:
        with translated("taking the planner's place"):
            term: int | None = await self._planning.fetchval(
                statement("planner/take_place"), holder, lease_for
            )
        self._hints.planner_here = term is not None
        return term

    async def keep_place(self, term: int, lease_for: Seconds) -> None:
        with translated("keeping the planner's place"):
            kept = await self._side.fetchval(statement("planner/keep_place"), term, lease_for)
        if kept is None:
            self._lost(term)

    async def leave_place(self, term: int) -> None:
        self._hints.planner_here = False
        with translated("leaving the planner's place"):
            await self._side.execute(statement("planner/leave_place"), term)

    async def rebuild(self, term: int) -> Standing:
        """Drains the changes first, so that those which the reading includes are few, then reads all tables
        at one instant and remembers which changes it includes."""
        self._ids = ChangeIds()
        self._known.clear()
        self._tails.clear()
        await self._hear(term, 0, (), {})
        with translated("rebuilding the planner's memory"):
            async with whole_tables(self._planning.connection()) as connection:
                return await self._read(connection, term)

    async def _read(self, connection: Any, term: int) -> Standing:
        now = await connection.fetchval("SELECT clock_timestamp()")
        known = await connection.fetch(statement("planner/rebuild_known"))
        flows = await connection.fetch(statement("planner/rebuild_flows"))
        deferred = await connection.fetch(statement("planner/rebuild_deferred"))
        held = await connection.fetch(statement("planner/rebuild_held"))
        withdrawn = await connection.fetch(statement("planner/rebuild_withdrawn"))
        nodes = await connection.fetch(statement("planner/nodes"), term, NODE_FRESH_FOR)
        orders = await connection.fetch(statement("planner/rebuild_orders"))
        levels = await connection.fetch(statement("inspection/levels"))
        self._known = {row["change_id"] for row in known}
        self._tails = {row["flow_id"]: row["tail"] for row in flows}
        return Standing(
            now=as_timestamp(now),
            flows=tuple(_standing(row) for row in flows),
            deferred=tuple(
                Deferred(r["flow_id"], r["seq"], as_timestamp(r["due_at"]), r["attempts"], r["first"])
                for r in deferred
            ),
            held=tuple(
                Held(r["flow_id"], r["seq"], as_timestamp(r["claimed_at"]), r["node_id"], r["incarnation"])
                for r in held
            ),
            withdrawn=tuple(Withdrawn(r["flow_id"], r["seq"]) for r in withdrawn),
            nodes=self._nodes(nodes, term),
            orders=tuple(map(_ordered, orders)),
            levels=tuple(standing_level(row).level for row in levels),
        )

    async def keep_shapers(self, term: int, states: Mapping[Lane, Sequence[Plain]]) -> None:
        tenants, targets = [lane.tenant for lane in states], [lane.target for lane in states]
        encoded = [msgspec.json.encode(state).decode() for state in states.values()]
        with translated("keeping the shapers"):
            kept = await self._side.fetchval(
                statement("planner/keep_shapers"), term, tenants, targets, encoded
            )
        if kept is None:
            self._lost(term)

    async def keep_levels(self, term: int, levels: Sequence[PoolLevel], fresh_for: Seconds) -> None:
        rows = [(each.pool, int(each.level), each.age, each.used, each.falls_in) for each in levels]
        columns = zip(*rows, strict=True) if rows else ((),) * 5
        with translated("keeping the levels"):
            kept = await self._side.fetchval(
                statement("planner/keep_levels"), term, fresh_for, *map(list, columns)
            )
        if kept is None:
            self._lost(term)

    async def held(self, term: int) -> frozenset[tuple[FlowId, Seq]]:
        with translated("auditing the planner's memory"):
            rows = await self._side.fetch(statement("planner/held"), term)
        if not rows:
            self._lost(term)
        return frozenset((r["flow_id"], r["seq"]) for r in rows if r["flow_id"] is not None)

    async def nodes(self, term: int) -> tuple[LiveNode, ...]:
        with translated("reading the nodes"):
            rows = await self._planning.fetch(statement("planner/nodes"), term, NODE_FRESH_FOR)
        return self._nodes(rows, term)

    async def round(self, term: int, claims: Sequence[ClaimPlan], heads: Mapping[FlowId, int]) -> Round:
        rows = await self._hear(term, self._ids.above(), claims, heads)
        heard = [row for row in rows if row["change_id"] is not None]
        return Round(as_timestamp(rows[0]["moment"]), tuple(await self._changes(term, heard)))

    async def _hear(
        self, term: int, above: int, claims: Sequence[ClaimPlan], heads: Mapping[FlowId, int]
    ) -> Sequence[Row]:
        nodes = [claim.node for claim in claims]
        with translated("planning"):
            rows = await self._planning.fetch(
                statement("planner/round"), term, above, START_LEASE, *_claim_arrays(claims), *_heads(heads),
                self._hints.payload(nodes),
            )  # fmt: skip
        if not rows:
            self._lost(term)
        self._hints.claimed(nodes)
        return rows

    async def wait(self, at_most: Seconds) -> None:
        await self._hints.changes.wait(at_most)

    # ---------------------------------------------------------------------------------------------------

    def _lost(self, term: int) -> None:
        self._hints.planner_here = False
        raise PlaceLost(f"the planner's place is no longer held under term {term}")

    def _nodes(self, rows: Sequence[Row], term: int) -> tuple[LiveNode, ...]:
        if not rows:
            self._lost(term)
        return tuple(
            LiveNode(r["node_id"], r["incarnation"], r["pool"], r["slots"], frozenset(map(Kind, r["kinds"])))
            for r in rows
            if r["node_id"] is not None
        )

    async def _changes(self, term: int, rows: Sequence[Row]) -> list[Change]:
        if not rows:
            return []
        fresh = self._fresh(rows)
        changes = await self._opened(fresh)
        if not self._in_order(fresh):
            # Who waited for the tail's lock has the higher id and was heard first, since ids above the
            # highest were asked for. What is missing had committed by then: one look at everything finds it.
            late = await self._hear(term, 0, (), {})
            missed = self._fresh([row for row in late if row["change_id"] is not None])
            changes += await self._opened(missed)
            fresh = sorted([*fresh, *missed], key=lambda row: int(row["change_id"]))
        changes += await self._orders([row["order_id"] for row in fresh if row["order_id"] is not None])
        for row in fresh:
            if row["first_seq"] is not None:
                self._tails[row["flow_id"]] = row["first_seq"] + row["count"] - 1
            changes += _CHANGES[row["kind"]](row)
        return changes

    def _fresh(self, rows: Sequence[Row]) -> list[Row]:
        """Those that the last rebuild did not include."""
        self._ids.heard([row["change_id"] for row in rows])
        fresh = [row for row in rows if row["change_id"] not in self._known]
        self._known.difference_update(row["change_id"] for row in rows)
        return fresh

    def _in_order(self, rows: Sequence[Row]) -> bool:
        tails: dict[int, int] = {}
        for row in rows:
            if row["first_seq"] is not None:
                flow = row["flow_id"]
                if row["first_seq"] != tails.get(flow, self._tails[flow]) + 1:
                    return False
                tails[flow] = row["first_seq"] + row["count"] - 1
        return True

    async def _opened(self, rows: Sequence[Row]) -> list[Change]:
        unknown = {row["flow_id"] for row in rows if row["flow_id"] is not None} - self._tails.keys()
        if not unknown:
            return []
        with translated("reading flows"):
            found = await self._planning.fetch(statement("planner/flows_by_id"), list(unknown))
        self._tails |= {row["flow_id"]: row["head"] - 1 for row in found}
        return [_opened(row) for row in found]

    async def _orders(self, numbers: list[int]) -> list[Change]:
        """What stands by now for the scopes of these orders, whichever of them came first."""
        if not numbers:
            return []
        with translated("reading orders"):
            rows = await self._planning.fetch(statement("planner/orders_by_number"), numbers)
        return [_ordered(row) for row in rows]


def _claim_arrays(claims: Sequence[ClaimPlan]) -> tuple[list[Any], ...]:
    """Claims as parallel arrays: node, incarnation, first and last position, and the jobs of all of them."""
    lows, highs, end = [], [], 0
    deferred: list[tuple[int, int]] = []
    for claim in claims:
        lows.append(end + 1)
        end += len(claim.seqs)
        highs.append(end)
        deferred += ((claim.flows[at], claim.seqs[at]) for at in claim.returned)
    return (
        [claim.node for claim in claims],
        [claim.incarnation for claim in claims],
        lows,
        highs,
        [flow for claim in claims for flow in claim.flows],
        [seq for claim in claims for seq in claim.seqs],
        [attempts for claim in claims for attempts in claim.attempts],
        [flow for flow, _ in deferred],
        [seq for _, seq in deferred],
    )


def _heads(heads: Mapping[FlowId, int]) -> tuple[list[int], list[int]]:
    ordered = sorted(heads.items())  # rows are locked in key order
    return [flow for flow, _ in ordered], [head for _, head in ordered]


def _opened(row: Row) -> FlowOpened:
    return FlowOpened(
        flow=FlowId(row["flow_id"]),
        tenant=TenantId(row["tenant_id"]),
        target=Target(row["target"]),
        job_class=JobClass(row["job_class"]),
        replay=row["replay"] or None,
        ordered=row["bucket"] >= 0,
        head=row["head"],
        shaper=msgspec.json.decode(row["shaper"]) if row["shaper"] else None,
        paused=row["paused"],
    )


def _ordered(row: Row) -> Ordered:
    scope = Scope(row["tenant_id"] or None, row["target"] or None)
    return Ordered(scope, row["paused"], row["ceiling"], row["reset"])


def _standing(row: Row) -> FlowStanding:
    since = as_timestamp(row["submitted_at"]) if row["submitted_at"] else None
    return FlowStanding(_opened(row), row["tail"], since)


def _submitted(row: Row) -> list[Change]:
    flow = FlowId(row["flow_id"])
    changes: list[Change] = [Submitted(flow, Seq(row["first_seq"]), row["count"], row["cost"])]
    if row["seqs"]:
        changes += [
            Deferred(flow, Seq(seq), as_timestamp(due), 0)
            for seq, due in zip(row["seqs"], row["due_at"], strict=True)
        ]
    return changes


def _left(row: Row) -> list[Change]:
    places = tuple(zip(row["flow_ids"], row["seqs"], strict=True))
    heard = _heard(row["summaries"])
    if row["due_at"] is None:
        return [Left(places, reported=row["reported"]), *heard]
    back = zip(places, row["due_at"], row["attempts"], row["first"], strict=True)
    deferred = (
        Deferred(*place, as_timestamp(due), attempts, first)
        for place, due, attempts, first in back
        if due is not None
    )
    return [Left(places, tuple(deferred), row["reported"]), *heard]


def _heard(summaries: str | None) -> list[Change]:
    """Of a worker of another version what cannot be read is passed over: its lanes learn nothing by it."""
    if summaries is None:
        return []
    try:
        told = msgspec.json.decode(summaries, type=dict[str, Any])
        return [Heard(FlowId(int(flow)), decoded(told[flow])) for flow in told]
    except (ValueError, InvalidValue):
        return []


def _withdrawn(row: Row) -> list[Change]:
    return [Withdrawn(FlowId(row["flow_id"]), Seq(seq)) for seq in row["seqs"]]


def _paused(row: Row) -> list[Change]:
    return [FlowPaused(FlowId(flow), row["kind"] == _PAUSED) for flow in row["flow_ids"]]


_PAUSED, _RESUMED = 6, 7

_CHANGES: Mapping[int, Callable[[Row], list[Change]]] = {
    1: _submitted,
    2: _left,
    3: _withdrawn,
    4: lambda _: [],  # the order was read by its number
    5: lambda _: [NodesChanged()],
    _PAUSED: _paused,
    _RESUMED: _paused,
}
