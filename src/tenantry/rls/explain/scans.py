"""The planner's plan as JSON, reduced to what counts here: which tables are read how, and what joins them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tenantry.rls.declaration import TableName

PlanNode = Mapping[str, Any]
"""A node of ``EXPLAIN (FORMAT JSON, VERBOSE)``."""

_JOINS = ("Join Filter", "Hash Cond", "Merge Cond")
_SHOWN = ("Index Cond", "Recheck Cond", "Filter", *_JOINS, "One-Time Filter")


@dataclass(frozen=True, slots=True)
class Scan:
    """One reading of one table. ``conditions``: what the index is searched by; ``filters``: what is asked
    of each row that is found. ``rows``: the planner's estimate."""

    table: TableName
    alias: str
    node: str
    indexes: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    rows: float = 0


def scans(root: PlanNode) -> Iterator[Scan]:
    """The readings of tables, in the plan's order."""
    for node in _below(root):
        if "Relation Name" in node and "Scan" in node["Node Type"]:
            parts = [node, *_bitmaps(node)]
            yield Scan(
                TableName(node.get("Schema", ""), node["Relation Name"]),
                node.get("Alias", node["Relation Name"]),
                node["Node Type"],
                tuple(part["Index Name"] for part in parts if "Index Name" in part),
                tuple(part["Index Cond"] for part in parts if "Index Cond" in part),
                tuple(node[key] for key in ("Filter",) if key in node),
                float(node.get("Plan Rows", 0)),
            )


def joins(root: PlanNode) -> Iterator[str]:
    """The conditions by which nodes join, as text."""
    for node in _below(root):
        yield from (node[key] for key in _JOINS if key in node)


def outline(root: PlanNode, depth: int = 0) -> Iterator[str]:
    """The plan as lines for people: EXPLAIN's own shape, without costs."""
    arrow = f"{' ' * 6 * (depth - 1)}  ->  " if depth else ""
    yield f"{arrow}{_heading(root)}"
    yield from (f"{' ' * 6 * depth}  {key}: {root[key]}" for key in _SHOWN if key in root)
    for child in root.get("Plans", ()):
        yield from outline(child, depth + 1)


def _heading(node: PlanNode) -> str:
    using = f" using {node['Index Name']}" if "Index Name" in node and "Relation Name" in node else ""
    on = node.get("Relation Name") or node.get("Index Name")
    alias = node.get("Alias", on)
    named = f" {alias}" if on and alias != on and "Relation Name" in node else ""
    return f"{node['Node Type']}{using}{f' on {on}' if on else ''}{named}"


def _below(root: PlanNode) -> Iterator[PlanNode]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.get("Plans", ()))


def _bitmaps(node: PlanNode) -> Iterator[PlanNode]:
    for child in node.get("Plans", ()):
        if child["Node Type"].startswith("Bitmap") and "Relation Name" not in child:
            yield child
            yield from _bitmaps(child)
