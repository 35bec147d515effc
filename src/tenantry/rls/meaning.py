"""Questions that rules ask of an expression: does it hold a row to the session's tenant, and how safely?

Pure. A "no" may mean "cannot be known": what is opaque never counts as safe.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tenantry.rls.expression import (
    OWN,
    Call,
    Cast,
    Coalesce,
    Column,
    Constant,
    Expression,
    Logic,
    NullIf,
    Operation,
    Query,
    Subselect,
    walk,
)

CURRENT_SETTING = {2077, 3294}
"""OIDs of ``current_setting(name)`` and ``current_setting(name, missing_ok)``, the same in every version."""

SET_CONFIG = 2078


@dataclass(frozen=True, slots=True)
class Reading:
    """A session setting that an expression reads. ``name`` is None where it is computed.

    ``missing_ok``: no error where it was never set. ``nullif``: '' becomes NULL, which is what the setting is
    after a transaction that had SET LOCAL. ``default``: what COALESCE puts in place of nothing, or None.
    ``casts``: types it is cast to, the innermost first. ``once``: in a subselect of its own.
    """

    name: str | None
    missing_ok: bool = False
    nullif: bool = False
    default: Expression | None = None
    casts: tuple[int, ...] = ()
    once: bool = False

    @property
    def fails_closed(self) -> bool:
        """No tenant bound: NULL, so no rows, and no error."""
        return self.missing_ok and self.nullif and self.default is None


@dataclass(frozen=True, slots=True)
class Binding:
    """A comparison ``column = value`` that every visible row passes. ``bare``: the column is not wrapped in
    a cast or a function, so that an index on it can serve. ``operation``: the comparison itself."""

    column: int
    value: Expression
    bare: bool
    operation: Operation

    @property
    def reading(self) -> "Reading | None":
        """The setting that ``value`` comes to, if it is nothing else."""
        return reading(self.value)


def reading(expression: Expression) -> Reading | None:
    """How ``expression`` reads a session setting, or None if it is something else than one."""
    match expression:
        case Call(args=args, function=oid) if oid in CURRENT_SETTING:
            return _setting(args)
        case Cast(args=(inner,), type=kind):
            found = reading(inner)
            return found and replace(found, casts=(*found.casts, kind))
        case NullIf(args=(inner, Constant(value=""))):
            found = reading(inner)
            return found and replace(found, nullif=True)
        case Coalesce(args=(inner, *rest)) if rest:
            found = reading(inner)
            null = isinstance(rest[-1], Constant) and rest[-1].value is None
            return found if found is None or null else replace(found, default=rest[-1])
        case Subselect(kind="scalar") if not expression.query.relations and expression.query.targets:
            found = reading(expression.query.targets[0])
            return found and replace(found, once=True)
    return None


def _setting(args: tuple[Expression, ...]) -> Reading:
    name = uncast(args[0])
    missing = uncast(args[1]) if len(args) > 1 else None
    return Reading(
        name.value if isinstance(name, Constant) and isinstance(name.value, str) else None,
        missing_ok=isinstance(missing, Constant) and missing.value is True,
    )


def readings(expression: Expression) -> Iterator[Reading]:
    """Every ``current_setting`` in it, at its innermost: without what is wrapped around it."""
    for each in walk(expression):
        if isinstance(each, Call) and each.function in CURRENT_SETTING:
            yield _setting(each.args)


def uncast(expression: Expression) -> Expression:
    while isinstance(expression, Cast) and expression.args:
        expression = expression.args[0]
    return expression


def _as_it_is(expression: Expression) -> bool:
    """Whether nothing but relabelling stands around the innermost: an index on that serves this too."""
    while isinstance(expression, Cast) and expression.args:
        if expression.function or expression.by_text:
            return False
        expression = expression.args[0]
    return True


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """What must hold together: itself, or the parts of an AND, flattened."""
    if isinstance(expression, Logic) and expression.kind == "and":
        return tuple(part for each in expression.args for part in conjuncts(each))
    return (expression,)


def disjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Of which one suffices: itself, or the parts of an OR, flattened."""
    if isinstance(expression, Logic) and expression.kind == "or":
        return tuple(part for each in expression.args for part in disjuncts(each))
    return (expression,)


def is_true(expression: Expression) -> bool:
    """Whether it plainly lets every row pass: ``true``, an OR with it, an AND of nothing else."""
    match expression:
        case Constant(value=True):
            return True
        case Logic(kind="or", args=args):
            return any(map(is_true, args))
        case Logic(kind="and", args=args):
            return all(map(is_true, args))
        case Logic(kind="not", args=(inner,)):
            return is_false(inner)
    return False


def is_false(expression: Expression) -> bool:
    """Whether it plainly lets no row pass: ``false``, NULL, or an AND with one of them."""
    match expression:
        case Constant(value=value, type=16):
            return not value
        case Logic(kind="and", args=args):
            return any(map(is_false, args))
        case Logic(kind="or", args=args):
            return all(map(is_false, args))
        case Logic(kind="not", args=(inner,)):
            return is_true(inner)
    return False


def bindings(
    expression: Expression, equalities: Iterable[int], column: int, relation: int = OWN
) -> tuple[Binding, ...]:
    """The comparisons of column ``column`` of ``relation`` by which every row that passes is held, one an
    alternative of an OR. Empty where some alternative holds it by none.

    ``equalities``: OIDs of the operators that are ``=`` (:attr:`tenantry.rls.scene.Scene.equalities`).
    """
    found: list[Binding] = []
    for alternative in disjuncts(expression):
        held = _held(alternative, frozenset(equalities), (relation, column))
        if not held:
            return ()
        found += held
    return tuple(found)


_Place = tuple[int, int]
"""A column: relation and number."""


def _held(alternative: Expression, equalities: frozenset[int], column: _Place) -> tuple[Binding, ...]:
    parts = conjuncts(alternative)
    for part in parts:
        if isinstance(part, Operation) and part.operator in equalities and not part.quantified:
            direct = _binding(part, column)
            if direct:
                return (direct,)
    for part in parts:
        if len(parts) > 1 and isinstance(part, Logic) and part.kind == "or":
            below = bindings(part, equalities, column[1], column[0])
            if below:
                return below
    return ()


def _binding(operation: Operation, column: _Place) -> Binding | None:
    for side, other in (operation.args[:2], operation.args[1::-1]):
        inner = uncast(side)
        if isinstance(inner, Column) and (inner.relation, inner.number) == column:
            if columns(other, column[0]):
                continue  # held to another column of the same row: no binding at all
            return Binding(column[1], other, bare=_as_it_is(side), operation=operation)
    return None


def columns(expression: Expression, relation: int = OWN) -> frozenset[int]:
    """The numbers of the columns of ``relation`` that it reads; 0 among them is the whole row."""
    found = (each for each in walk(expression) if isinstance(each, Column))
    return frozenset(each.number for each in found if each.relation == relation)


def relations(expression: Expression) -> frozenset[int]:
    """OIDs of the relations that its subselects read."""
    return frozenset(oid for each in walk(expression) if isinstance(each, Query) for oid in each.relations)


def functions(expression: Expression) -> frozenset[int]:
    """OIDs of the functions that it runs: calls, operators, casts."""
    found = (each.function for each in walk(expression) if isinstance(each, (Call, Operation, Cast)))
    return frozenset(found) - {0}
