"""What a policy's expression says, as a small algebra: every name resolved, casts told from calls.

``read(tree)`` translates what the server keeps. Columns are (relation, attribute number), where :data:`OWN`
is the policy's own table, so that equal policies on a thousand tables are one value, read once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from tenantry.rls.nodes import Node, abridged, parse

OWN = -1
"""The relation of a column of the table that the expression belongs to."""


@dataclass(frozen=True, slots=True)
class Expression:
    """``args``: the expressions below, in order."""

    args: "tuple[Expression, ...]" = ()


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """``number`` 0 is the whole row; ``relation`` 0 is something computed (a join, a subquery, a
    function)."""

    relation: int = OWN
    number: int = 0


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """``value``: bool, int or text where the type is a common one, raw bytes otherwise, None for NULL."""

    type: int = 0
    value: bool | int | str | bytes | None = None


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """Of the function with this OID."""

    function: int = 0


@dataclass(frozen=True, slots=True)
class Operation(Expression):
    """``quantified``: '' or 'any' or 'all', for ``= ANY (array)``."""

    operator: int = 0
    function: int = 0
    quantified: str = ""


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """To ``type``. ``function``: by which, 0 where the bits stay or it goes through text (``by_text``)."""

    type: int = 0
    function: int = 0
    by_text: bool = False


@dataclass(frozen=True, slots=True)
class Logic(Expression):
    kind: Literal["and", "or", "not"] = "and"


@dataclass(frozen=True, slots=True)
class NullIf(Expression):
    pass


@dataclass(frozen=True, slots=True)
class Distinct(Expression):
    """IS DISTINCT FROM; its negation stands below a NOT."""


@dataclass(frozen=True, slots=True)
class Coalesce(Expression):
    pass


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """``args``: condition, result, condition, result, …, default."""


@dataclass(frozen=True, slots=True)
class NullTest(Expression):
    is_null: bool = True


@dataclass(frozen=True, slots=True)
class BoolTest(Expression):
    """IS TRUE 0, IS NOT TRUE 1, IS FALSE 2, IS NOT FALSE 3, IS UNKNOWN 4, IS NOT UNKNOWN 5."""

    test: int = 0


@dataclass(frozen=True, slots=True)
class Row(Expression):
    pass


@dataclass(frozen=True, slots=True)
class Session(Expression):
    """``current_user`` and its like."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Query(Expression):
    """Of a subselect or a view: ``relations`` it reads directly (OIDs); ``args`` are its condition, if any,
    its targets and the queries in its FROM or WITH. ``plain``: one relation and nothing that gathers rows, so
    that a view of it can be written to."""

    relations: tuple[int, ...] = ()
    condition: Expression | None = None
    targets: tuple[Expression, ...] = ()
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Subselect(Expression):
    """``args`` begins with the query; behind it, for ANY and ALL, the comparison."""

    kind: Literal["exists", "any", "all", "scalar", "array", "other"] = "scalar"

    @property
    def query(self) -> Query:
        query = self.args[0]
        return query if isinstance(query, Query) else Query()

    @property
    def test(self) -> Expression | None:
        return self.args[1] if len(self.args) > 1 else None


@dataclass(frozen=True, slots=True)
class Other(Expression):
    """Anything else, by the server's name for it: nothing may be concluded from it."""

    name: str = ""


@lru_cache(maxsize=16384)
def read(tree: str) -> Expression:
    """The expression of a node tree. Cached; safe from any thread. What is nested too deeply is opaque."""
    node = parse(abridged(tree))
    try:
        return _translated(node, (_OWN_TABLE,))
    except RecursionError:
        return Other(name="too deeply nested")


@lru_cache(maxsize=4096)
def read_query(tree: str) -> Query:
    """The query of a view's rule. Cached; what is nested too deeply reads nothing."""
    node = parse(abridged(tree))
    try:
        return _query(node[0], ()) if isinstance(node, list) and node else Query()
    except RecursionError:
        return Query()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, subselects included."""
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(each.args))


_Tables = tuple[tuple[int, ...], ...]
"""Relations by range table position, one tuple a query level, the innermost last."""

_OWN_TABLE = (OWN,)


def _translated(node: Any, tables: _Tables) -> Expression:
    if not isinstance(node, dict):
        return Other(tuple(_all(node, tables)), name="list") if isinstance(node, list) else Other(name="?")
    reader = _READERS.get(node[""])
    return reader(node, tables) if reader else _other(node, tables)


def _number(node: Node, field: str) -> int:
    """Zeros are left out of what is read."""
    return int(node.get(field) or 0)


def _all(nodes: Any, tables: _Tables) -> list[Expression]:
    return [_translated(each, tables) for each in nodes or ()]


def _args(node: Node, tables: _Tables) -> tuple[Expression, ...]:
    return tuple(_all(node.get("args"), tables))


def _other(node: Node, tables: _Tables) -> Expression:
    below = [each for key, each in node.items() if isinstance(each, (dict, list))]
    found = [
        _translated(one, tables)
        for each in below
        for one in (each if isinstance(each, list) else [each])
        if isinstance(one, dict)
    ]
    return Other(tuple(found), name=node[""].lower())


def _column(node: Node, tables: _Tables) -> Expression:
    level, position = _number(node, "varlevelsup"), _number(node, "varno")
    table = tables[-1 - level] if level < len(tables) else ()
    relation = table[position - 1] if 0 < position <= len(table) else 0
    return Column(relation=relation, number=_number(node, "varattno"))


_INTEGERS = {20, 21, 23, 26}
_TEXTS = {25, 1042, 1043}


def _constant(node: Node, tables: _Tables) -> Expression:
    kind, value = _number(node, "consttype"), node.get("constvalue")
    if node.get("constisnull") == "true" or not isinstance(value, bytes):
        return Constant(type=kind)
    if kind == 16:
        return Constant(type=kind, value=any(value))
    if kind in _INTEGERS:
        return Constant(type=kind, value=_integer(value, _number(node, "constlen")))
    if kind in _TEXTS:
        return Constant(type=kind, value=value[4:].decode("utf-8", "replace"))
    if kind == 19:
        return Constant(type=kind, value=value.rstrip(b"\0").decode("utf-8", "replace"))
    return Constant(type=kind, value=value)


def _integer(value: bytes, length: int) -> int:
    """A datum is eight bytes in the server's order, which is the little-endian one nearly everywhere."""
    return int.from_bytes(value[:length], "little", signed=True)


def _function(node: Node, tables: _Tables) -> Expression:
    args, function = _args(node, tables), _number(node, "funcid")
    if node.get("funcformat") in {"1", "2"} and args:
        return Cast(args[:1], type=_number(node, "funcresulttype"), function=function)
    return Call(args, function=function)


def _operation(node: Node, tables: _Tables) -> Expression:
    return Operation(_args(node, tables), operator=_number(node, "opno"), function=_number(node, "opfuncid"))


def _quantified(node: Node, tables: _Tables) -> Expression:
    word = "any" if node.get("useOr") == "true" else "all"
    return Operation(_args(node, tables), _number(node, "opno"), _number(node, "opfuncid"), word)


def _cast(node: Node, tables: _Tables) -> Expression:
    by_text = node[""] == "COERCEVIAIO"
    return Cast((_translated(node["arg"], tables),), type=_number(node, "resulttype"), by_text=by_text)


def _logic(node: Node, tables: _Tables) -> Expression:
    return Logic(_args(node, tables), kind=node["boolop"])


def _case(node: Node, tables: _Tables) -> Expression:
    arms = [part for when in node["args"] for part in (when["expr"], when["result"])]
    return Case(tuple(_all([*arms, node.get("defresult")], tables)))


def _null_test(node: Node, tables: _Tables) -> Expression:
    return NullTest((_translated(node["arg"], tables),), is_null=_number(node, "nulltesttype") == 0)


def _bool_test(node: Node, tables: _Tables) -> Expression:
    return BoolTest((_translated(node["arg"], tables),), test=_number(node, "booltesttype"))


_SESSION = {9: "current_role", 10: "current_user", 11: "user", 12: "session_user", 13: "current_catalog",
            14: "current_schema"}  # fmt: skip


def _session(node: Node, tables: _Tables) -> Expression:
    name = _SESSION.get(_number(node, "op"))
    return Session(name=name) if name else Other(name="moment")


_KINDS: dict[int, Literal["exists", "any", "all", "scalar", "array"]] = {
    0: "exists", 1: "all", 2: "any", 4: "scalar", 6: "array",
}  # fmt: skip


def _subselect(node: Node, tables: _Tables) -> Expression:
    query = _query(node["subselect"], tables)
    test = node.get("testexpr")
    found = (query,) if test is None else (query, _translated(test, tables))
    return Subselect(found, kind=_KINDS.get(_number(node, "subLinkType"), "other"))


def _query(node: Node, tables: _Tables) -> Query:
    entries = node.get("rtable") or []
    own: tuple[int, ...] = tuple(_relation(each) for each in entries)
    inner: _Tables = (*tables, own)
    jointree = node.get("jointree") or {}
    condition = _condition(jointree, inner)
    targets = tuple(_translated(each["expr"], inner) for each in node.get("targetList") or ())
    nested = [_query(each["subquery"], inner) for each in entries if each.get("subquery")]
    nested += [_query(each["ctequery"], inner) for each in node.get("cteList") or ()]
    calls = [_translated(each["functions"], inner) for each in entries if each.get("functions")]
    args = (*((condition,) if condition else ()), *targets, *nested, *calls)
    relations = tuple(each for each in own if each > 0)
    return Query(args, relations=relations, condition=condition, targets=targets, plain=_is_plain(node))


_GATHERING = ("groupClause", "groupingSets", "havingQual", "distinctClause", "limitCount", "limitOffset",
              "setOperations", "cteList")  # fmt: skip


def _is_plain(node: Node) -> bool:
    jointree = node.get("jointree")
    sources: list[Node] = (jointree.get("fromlist") or []) if isinstance(jointree, dict) else []
    gathers = node.get("hasAggs") == "true" or node.get("hasWindowFuncs") == "true"
    single = len(sources) == 1 and sources[0][""] == "RANGETBLREF"
    return single and not gathers and not any(node.get(each) is not None for each in _GATHERING)


def _relation(entry: Node) -> int:
    return _number(entry, "relid") if _number(entry, "rtekind") == 0 else 0


def _condition(jointree: Any, tables: _Tables) -> Expression | None:
    """WHERE and the ON of every inner join, which are one condition; that of an outer join filters
    nothing."""
    found, waiting = [], [jointree]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, dict):
            continue
        if each.get("quals") is not None and _number(each, "jointype") == 0:
            found.append(_translated(each["quals"], tables))
        waiting += [each.get("larg"), each.get("rarg"), *(each.get("fromlist") or ())]
    return None if not found else found[0] if len(found) == 1 else Logic(tuple(found), kind="and")


_READERS = {
    "VAR": _column,
    "CONST": _constant,
    "FUNCEXPR": _function,
    "OPEXPR": _operation,
    "SCALARARRAYOPEXPR": _quantified,
    "BOOLEXPR": _logic,
    "NULLIFEXPR": lambda node, tables: NullIf(_args(node, tables)),
    "DISTINCTEXPR": lambda node, tables: Distinct(_args(node, tables)),
    "COALESCE": lambda node, tables: Coalesce(_args(node, tables)),
    "COALESCEEXPR": lambda node, tables: Coalesce(_args(node, tables)),
    "RELABELTYPE": _cast,
    "COERCEVIAIO": _cast,
    "COERCETODOMAIN": _cast,
    "CASE": _case,
    "CASEEXPR": _case,
    "NULLTEST": _null_test,
    "BOOLEANTEST": _bool_test,
    "ROW": lambda node, tables: Row(_args(node, tables)),
    "ROWEXPR": lambda node, tables: Row(_args(node, tables)),
    "SQLVALUEFUNCTION": _session,
    "SUBLINK": _subselect,
}
"""By the server's names for its nodes: those of PostgreSQL 15 beside those of 16 and later."""
