"""The loop: a query is planned as the application, judged, and planned again as it would be without
waiting."""

from dataclasses import dataclass, replace
from typing import Protocol

from tenantry.rls.explain.judge import Judge
from tenantry.rls.explain.model import Explanation, Leakproofness
from tenantry.rls.explain.queries import parameters
from tenantry.rls.explain.scans import PlanNode
from tenantry.rls.ground import Ground


@dataclass(frozen=True, slots=True)
class Asker:
    """As whom queries are planned: the role, the tenant that ``setting`` names, and the role's search path,
    '' for the login's own."""

    role: str
    tenant: str
    setting: str
    search_path: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the server gave no plan."""

    reason: str


class Planner(Protocol):
    """A server that plans and never runs. For one task. Raises
    :class:`~tenantry.kernel.errors.StoreUnavailable`."""

    async def plan(
        self, query: str, parameters: int, asker: Asker, *, leakproof: tuple[str, ...] = ()
    ) -> PlanNode | Refused:
        """The plan of one statement, in a transaction that is rolled back. With parameters: for any values of
        theirs. ``leakproof``: functions to mark so before; needs a superuser."""
        ...

    async def leakproofness(
        self, operators: list[tuple[str, str]], functions: list[str], casts: list[tuple[str, str]]
    ) -> Leakproofness:
        """What the catalogue says of these."""
        ...


async def explain(
    query: str, ground: Ground, asker: Asker, planner: Planner, *, what_if: bool = False
) -> Explanation:
    """One query under the declaration of ``ground``. ``what_if``: where conditions were held back from an
    index, plan it again with their functions marked leakproof; ignored by nobody but a server that
    refuses."""
    count = parameters(query)
    found = await planner.plan(query, count, asker)
    if isinstance(found, Refused):
        return Explanation(query, count > 0, error=found.reason)
    judge = Judge(ground, found)
    known = await planner.leakproofness(judge.operators, judge.functions, judge.casts)
    held = judge.held_back(known)
    told = Explanation(query, count > 0, found, judge.readings(), held)
    marked = tuple(dict.fromkeys(each.function for each in held if each.indexes and "(" in each.function))
    if not (what_if and marked):
        return told
    then = await planner.plan(query, count, asker, leakproof=marked)
    return told if isinstance(then, Refused) else replace(told, if_leakproof=then)
