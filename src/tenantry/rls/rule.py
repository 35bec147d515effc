"""What a rule is, and how one is written: a function over the scene, with what is to be known of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tenantry.kernel.errors import InvariantBroken
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.scene import Scene

Check = Callable[[Scene], Iterator[Found]]

PAGE = "docs/rls-rules.md"
"""The page that documents every rule, one heading each."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``summary``: what is found, in a line. ``mechanism``: how rows leak by it, or what else goes wrong, and
    why. ``fix``: what to do."""

    name: str
    family: Family
    severity: Severity
    summary: str
    mechanism: str
    fix: str
    check: Check

    @property
    def page(self) -> str:
        return f"{PAGE}#{self.name}"


class Rules:
    """The rules of one family, in the order in which they are written. Filled while its module loads."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.all: list[Rule] = []

    def rule(
        self, name: str, severity: Severity, *, summary: str, mechanism: str, fix: str
    ) -> Callable[[Check], Check]:
        """Makes the function below it the rule ``name``. Raises :class:`InvariantBroken` for a name twice."""
        if any(each.name == name for each in self.all):
            raise InvariantBroken(f"two rules are named {name!r}")

        def add(check: Check) -> Check:
            self.all.append(Rule(name, self.family, severity, summary, mechanism, fix, check))
            return check

        return add
