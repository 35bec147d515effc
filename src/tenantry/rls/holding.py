"""Whether a policy's expression holds each row to the session's tenant: by alternatives, each judged once.

An expression is written as alternatives (its disjunctive normal form), of which any lets a row pass. Each
alternative is a conjunction, and the strongest of its parts says how it holds the row. So a fault is named
once, by what is wrong with it, and what cannot be understood is never called safe.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import product

from tenantry.rls.dependence import depends
from tenantry.rls.expression import (
    OWN,
    BoolTest,
    Call,
    Case,
    Coalesce,
    Column,
    Constant,
    Distinct,
    Expression,
    Logic,
    NullTest,
    Operation,
    Other,
    Query,
    Subselect,
    walk,
)
from tenantry.rls.facts import Policy
from tenantry.rls.meaning import Reading, is_false, is_true, reading, uncast
from tenantry.rls.scene import Scene

_MOST = 64
"""Alternatives beyond which an expression is opaque."""

_PATTERNS = frozenset({"~~", "~~*", "!~~", "!~~*", "~", "~*", "!~", "!~*", "^@", "%"})
"""Operators that match text by a pattern or by likeness."""

PATTERN_FUNCTIONS = frozenset({"starts_with", "regexp_like", "like", "notlike", "textlike", "texticlike",
                               "textregexeq", "texticregexeq"})  # fmt: skip
"""The server's functions that do the same."""

_HOLDS_IT = {"@>": (0, 1), "<@": (1, 0), "?": (0, 1)}
"""Operators of containment: the places of what contains and of what is contained."""


class Hold(Enum):
    """How an alternative holds rows to a tenant, the first that fits."""

    SETTING = auto()  # tenant column = a session setting, and nothing else
    SESSION = auto()  # = something of the session that is no setting: a helper, current_user, an array
    LOOKUP = auto()  # by a subselect that is tied to the row's tenant
    OPAQUE = auto()  # a function is given the tenant column
    LITERAL = auto()  # = a constant, or a helper that answers one: the same tenant for everybody
    NULL_SAFE = auto()  # IS NOT DISTINCT FROM
    NORMALISED = auto()  # by a pattern, or by something made of the column
    INVERTED = auto()  # <> : everybody but the tenant
    NULL_OPEN = auto()  # not at all, where no tenant is bound or a row has none
    FLAG = auto()  # not at all, where a setting that the session may set says so
    OPEN = auto()  # not at all
    TRUE = auto()  # every row passes


HELD = frozenset({Hold.SETTING, Hold.SESSION, Hold.LOOKUP, Hold.OPAQUE})
"""Those that hold rows to the session's tenant, if what they go by does."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """``parts``: what must hold together. ``by``: the part that ``hold`` speaks of, where there is one."""

    parts: tuple[Expression, ...]
    hold: Hold
    by: Expression | None = None


def alternatives(expression: Expression) -> tuple[tuple[Expression, ...], ...]:
    """The expression as an OR of ANDs; itself where that would be too many. Exact but for CASE, whose arms
    are taken without what the arms before them exclude."""
    found = tuple(_alternatives(expression, negated=False))
    return found if len(found) <= _MOST else ((expression,),)


def _alternatives(expression: Expression, *, negated: bool) -> Iterator[tuple[Expression, ...]]:
    match expression:
        case Logic(kind="not", args=(inner,)):
            yield from _alternatives(inner, negated=not negated)
        case Logic(kind=kind, args=args) if (kind == "or") is not negated:
            for each in args:
                yield from _alternatives(each, negated=negated)
        case Logic(args=args):
            below = [tuple(_alternatives(each, negated=negated)) for each in args]
            yield from _joined(below)
        case BoolTest(args=(inner,), test=0) if not negated:
            yield from _alternatives(inner, negated=False)
        case Coalesce(args=(inner, *rest)) if not negated and rest and all(map(is_false, rest)):
            yield from _alternatives(inner, negated=False)
        case Case(args=args) if not negated:
            yield from _arms(args)
        case _:
            yield (Logic((expression,), kind="not") if negated else expression,)


def _joined(below: list[tuple[tuple[Expression, ...], ...]]) -> Iterator[tuple[Expression, ...]]:
    size = 1
    for each in below:
        size *= len(each)
    if size > _MOST:
        yield tuple(part for each in below if len(each) == 1 for part in each[0])
        return
    for parts in product(*below):
        yield tuple(part for each in parts for part in each)


def _arms(args: tuple[Expression, ...]) -> Iterator[tuple[Expression, ...]]:
    *arms, default = args
    for condition, result in zip(arms[::2], arms[1::2], strict=True):
        yield from _alternatives(Logic((condition, result), kind="and"), negated=False)
    yield from _alternatives(default, negated=False)


class Judge:
    """Judges what the policies of one table say. Cheap to make; for one thread."""

    def __init__(self, scene: Scene, table: int) -> None:
        self._scene, self._column = scene, scene.tenant_number(table)

    def holds(self, expression: Expression | None) -> tuple[Alternative, ...]:
        """The alternatives that can let a row pass; none where nothing can."""
        if expression is None or is_false(expression):
            return ()
        if is_true(expression):
            return (Alternative((expression,), Hold.TRUE),)
        found = (parts for parts in alternatives(expression) if not any(map(is_false, parts)))
        return tuple(self._judged(parts) for parts in found)

    def is_held(self, expression: Expression | None) -> bool:
        """Whether every alternative is held to the session's tenant."""
        return all(each.hold in HELD for each in self.holds(expression))

    def _judged(self, parts: tuple[Expression, ...]) -> Alternative:
        if all(map(is_true, parts)):
            return Alternative(parts, Hold.TRUE)
        judged = [(hold, each) for each in parts for hold in [self._hold(each)] if hold is not None]
        if not judged:
            return Alternative(parts, Hold.OPEN)
        hold, by = min(judged, key=lambda each: each[0].value)
        return Alternative(parts, hold, by)

    def _hold(self, part: Expression) -> Hold | None:
        match part:
            case Operation() if self._mentions(part):
                return self._compared(part)
            case Logic(kind="not", args=(Operation() | Distinct() as inner,)) if self._mentions(inner):
                return self._negated(inner)
            case Distinct() if self._mentions(part):
                return Hold.INVERTED
            case Subselect():
                return Hold.LOOKUP if self._ties(part) and self._of_session(part) else None
            case Call(args=args) if any(self._is_column(uncast(each)) for each in args):
                return self._called(part, part.function)
        return self._unheld(part)

    def _called(self, part: Expression, oid: int) -> Hold | None:
        """A function that is given the tenant column: one's own decides by itself, unless it asks nothing."""
        own, name = self._scene.facts.functions.get(oid), self._builtin(oid)
        if own is not None:
            return Hold.OPAQUE if own.extension or self._of_session(part) else None
        if name in PATTERN_FUNCTIONS:
            return Hold.NORMALISED
        asks_rights = name.startswith(("has_", "pg_has_role"))  # of the current user, if of nobody else
        return Hold.OPAQUE if asks_rights or self._of_session(part) else None

    def _builtin(self, oid: int) -> str:
        known = self._scene.facts.builtin.get(oid)
        return known.name if known else ""

    def _compared(self, part: Operation) -> Hold | None:
        name = self._operator(part)
        if name in _PATTERNS:
            return Hold.NORMALISED
        if name == "<>":
            return Hold.INVERTED
        if name in _HOLDS_IT:
            return self._contained(part, *_HOLDS_IT[name])
        if name != "=":
            return None
        return self._equality(part)

    def _negated(self, inner: Operation | Distinct) -> Hold | None:
        """``NOT (column <> value)`` is ``=`` but for its spelling."""
        if isinstance(inner, Distinct):
            return Hold.NULL_SAFE if self._of_session(inner) else None
        name = self._operator(inner)
        if name == "<>" and not inner.quantified:
            return self._equality(inner)
        return Hold.INVERTED if name == "=" else None

    def _contained(self, part: Operation, whole: int, piece: int) -> Hold | None:
        """``array of the session @> ARRAY[column]`` and its like: one of the session's tenants."""
        if part.quantified or len(part.args) != 2:
            return None
        inner, outer = uncast(part.args[piece]), part.args[whole]
        if isinstance(inner, Other) and len(inner.args) == 1:
            inner = uncast(inner.args[0])
        held = self._is_column(inner) and not self._mentions_row(outer) and self._of_session(outer)
        return Hold.SESSION if held else None

    def _equality(self, part: Operation) -> Hold | None:
        if part.quantified:
            return self._any_of(*part.args[:2]) if part.quantified == "any" else None
        for side, other in (part.args[:2], part.args[1::-1]):
            if self._mentions(side):
                return self._equal(side, other)
        return None

    def _any_of(self, one: Expression, array: Expression) -> Hold | None:
        """``column = ANY (list)``, or ``session = ANY (column)`` where the column is an array."""
        for side, other in ((one, array), (array, one)):
            if self._is_column(uncast(side)) and not self._mentions_row(other):
                if self._of_session(other):
                    return Hold.SESSION
                asked = any(isinstance(each, Query) and each.relations for each in walk(other))
                return None if asked else Hold.LITERAL
        return None

    def _equal(self, side: Expression, other: Expression) -> Hold | None:
        if self._mentions_row(other):
            return None  # held to another column of the same row: no hold at all
        if not self._is_column(uncast(side)):
            return Hold.NULL_OPEN if isinstance(uncast(side), Coalesce) else Hold.NORMALISED
        if reading(other) is not None:
            return Hold.SETTING
        if self._of_session(other):
            return Hold.SESSION
        return Hold.LITERAL if self._is_constant(uncast(other)) else None

    def _is_constant(self, other: Expression) -> bool:
        """Written down, or what a helper answers that asks nothing."""
        if isinstance(other, Subselect) and other.kind == "scalar" and other.query.targets:
            return not other.query.relations and self._is_constant(uncast(other.query.targets[0]))
        return isinstance(other, Constant) or (isinstance(other, Call) and not other.args)

    def _unheld(self, part: Expression) -> Hold | None:
        match part:
            case NullTest(args=(inner,), is_null=True) if reading(inner) or self._is_column(uncast(inner)):
                return Hold.NULL_OPEN
            case BoolTest(args=(inner,), test=3) if self._mentions(inner):
                return Hold.NULL_OPEN
            case Coalesce(args=(inner, *_)) if self._mentions(inner):
                return Hold.NULL_OPEN
            case Operation(args=(one, other)) if not self._mentions_row(part):
                return self._flag(one, other)
        return Hold.FLAG if reading(uncast(part)) else None

    def _flag(self, one: Expression, other: Expression) -> Hold | None:
        for side, value in ((one, uncast(other)), (other, uncast(one))):
            said = reading(side)
            if said is not None and isinstance(value, Constant):
                default = uncast(said.default) if said.default is not None else None
                unset = value.value == "" or (isinstance(default, Constant) and default == value)
                return Hold.NULL_OPEN if unset else Hold.FLAG
        return None

    def _ties(self, part: Subselect) -> bool:
        """Whether the row's tenant is compared to what the subselect finds, or inside it."""
        if part.test is not None and self._mentions(part.test):
            return True
        return any(
            isinstance(each, Operation) and self._operator(each) == "=" and self._mentions(each)
            for each in walk(part.query)
        )

    def _operator(self, part: Operation) -> str:
        known = self._scene.facts.operators.get(part.operator)
        return known.name if known else ""

    def _is_column(self, expression: Expression) -> bool:
        return (
            isinstance(expression, Column)
            and expression.relation == OWN
            and expression.number in {self._column, 0}
            and self._column > 0
        )

    def _mentions(self, expression: Expression) -> bool:
        return any(self._is_column(each) for each in walk(expression))

    @staticmethod
    def _mentions_row(expression: Expression) -> bool:
        return any(isinstance(each, Column) and each.relation == OWN for each in walk(expression))

    def _of_session(self, expression: Expression) -> bool:
        """Whether it can differ from session to session."""
        return depends(self._scene, expression)


@dataclass(frozen=True, slots=True)
class Side:
    """What one policy lets pass on one side: ``reads`` (USING) or writes (WITH CHECK)."""

    policy: Policy
    reads: bool
    alternatives: tuple[Alternative, ...]

    @property
    def clause(self) -> str:
        return "USING" if self.reads else "WITH CHECK"


def held(scene: Scene, policy: Policy, *, reads: bool) -> tuple[Alternative, ...]:
    """The alternatives of USING (``reads``) or of what WITH CHECK comes to; none where the policy has no such
    clause. Worked out once a scene."""

    def judged() -> tuple[Alternative, ...]:
        expression = scene.using(policy) if reads else scene.check(policy)
        return () if expression is None else Judge(scene, policy.relation).holds(expression)

    return scene.once(("held", policy.oid, reads), judged)


def sides(scene: Scene, table: int) -> tuple[Side, ...]:
    """What each permissive policy of the application lets pass on ``table``, where no restrictive policy
    holds it to the tenant: one side for reading, one for writing where that says something else."""
    return scene.once(("sides", table), lambda: tuple(_sides(scene, table)))


def _sides(scene: Scene, table: int) -> Iterator[Side]:
    policies = scene.policies_of.get(table, ())
    for policy in policies:
        if not policy.permissive or not scene.for_application(policy):
            continue
        narrowed = policy.command != "INSERT" and _narrowed(scene, policies, policy, reads=True)
        if policy.command != "INSERT" and not narrowed:
            yield Side(policy, True, held(scene, policy, reads=True))
        own_check = policy.check_tree is not None and policy.check_tree != policy.using_tree
        written = own_check or (narrowed and policy.command in {"ALL", "UPDATE"})
        if written and not _narrowed(scene, policies, policy, reads=False):
            yield Side(policy, False, held(scene, policy, reads=False))


_READING = frozenset({"SELECT", "UPDATE", "DELETE"})
_WRITING = frozenset({"INSERT", "UPDATE"})


def _narrowed(scene: Scene, policies: tuple[Policy, ...], policy: Policy, *, reads: bool) -> bool:
    """Whether restrictive policies, for all that ``policy`` is for, hold the same rows to the tenant: one for
    every command, or one for each."""
    every = _READING if reads else _WRITING
    needed = every if policy.command == "ALL" else frozenset({policy.command})
    covered: set[str] = set()
    for each in policies:
        everyone = "public" in each.roles or set(policy.roles) <= set(each.roles)
        if each.permissive or not everyone:
            continue
        expression = scene.using(each) if reads else scene.check(each)
        if expression is not None and all(one.hold in HELD for one in held(scene, each, reads=reads)):
            covered |= needed if each.command == "ALL" else {each.command}
    return needed <= covered


def setting_of(alternative: Alternative) -> Reading | None:
    """The setting that an alternative held by SETTING goes by."""
    by = alternative.by
    if isinstance(by, Logic) and by.kind == "not":
        by = by.args[0]
    if alternative.hold is not Hold.SETTING or not isinstance(by, Operation):
        return None
    return next((found for each in by.args[:2] if (found := reading(each))), None)
