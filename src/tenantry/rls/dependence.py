"""Whether what an expression comes to can differ from session to session. Pure.

A comparison with something that is the same for everybody holds nobody: a list that is read whole, a helper
that answers with a constant. What cannot be read (a body in another language, a view) is taken to depend.
"""

import re

from tenantry.rls.bodies import tables_named
from tenantry.rls.expression import Call, Expression, Operation, Query, Session, walk
from tenantry.rls.facts import Function
from tenantry.rls.meaning import readings
from tenantry.rls.scene import Scene

SESSION_WORD = re.compile(
    r"\b(current_setting|current_user|session_user|current_role|user|now|random|clock_timestamp)\b",
    re.IGNORECASE,
)
"""What a body reads that is not the same for all: the session, the moment, chance."""

_LITERAL = re.compile(r"'(?:[^']|'')*'")
_CALL = re.compile(r"[\w\"]\s*\(")
_READABLE = frozenset({"sql", "plpgsql"})


def depends(scene: Scene, expression: Expression) -> bool:
    """Whether it reads a setting or who is logged in, runs a function of one's own that may, or asks a table
    whose policies, or a view whose text, may."""
    return any(_depends(scene, each) for each in walk(expression)) or any(True for _ in readings(expression))


def _depends(scene: Scene, each: Expression) -> bool:
    match each:
        case Session():
            return True
        case Call(function=oid) | Operation(function=oid):
            function = scene.facts.functions.get(oid)
            return function is not None and not function.extension and not is_blind(function)
        case Query(relations=oids):
            return any(_is_narrowed(scene, oid) for oid in oids)
    return False


def _is_narrowed(scene: Scene, oid: int) -> bool:
    relation = scene.facts.relations.get(oid)
    return relation is None or not relation.is_table or relation.rls_enabled


def is_blind(function: Function) -> bool:
    """Whether its body can be read, and asks nothing: no session, no table, no other function."""
    body = function.source
    if function.language not in _READABLE or not body.strip() or function.reads or tables_named(body):
        return False
    return SESSION_WORD.search(body) is None and _CALL.search(_LITERAL.sub("''", body)) is None
