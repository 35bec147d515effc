"""What an attack is, what it answered, and what that says of the audit's findings.

=============  ==================================================================================
word           is
=============  ==================================================================================
attempt        one thing that the application does to get at another tenant's rows
door           the kind of way that it takes: ``read``, ``collide``, ``become`` ...
answer         what the server said to an attempt
outcome        an attempt with its judgement: leaked, held, refused, or beyond reach
proof          all outcomes, and each finding of the audit with its verdict
=============  ==================================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from tenantry.rls.model import Finding

Row = Mapping[str, str | None]
"""A planted row: text by column, as SQL would write it."""


class Bound(Enum):
    """Which tenant is bound when the attempt is made."""

    A = "tenant A"
    NOBODY = "no tenant"
    EMPTY = "the empty setting, as after a transaction that had SET LOCAL"
    LOGIN = "what the role's own settings bind"


class Judgement(Enum):
    """``LEAKED``: another tenant's rows were told of, or written. ``HELD``: it was done, and concerned none.
    ``REFUSED``: the server did not let it be done. ``BEYOND``: nothing was learnt."""

    LEAKED = "leaked"
    HELD = "held"
    REFUSED = "refused"
    BEYOND = "beyond reach"


class Verdict(Enum):
    """What the attack says of a finding."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    BEYOND = "beyond reach"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """``tables``: titles of the tables whose rows it is after, and ``through`` the view, function or role on
    the way. ``statements`` run before ``asked``, which is a query where ``reads`` is true. ``prepare`` is run
    by the login beforehand: what another tenant or an operator would have done. ``by_success``: that it is
    let through at all is the leak. ``settings`` are bound for it, the tenant among them. ``aim``: the index
    or foreign key that it is to run into, as in ``orders_pkey on public.orders``."""

    door: str
    role: str
    asked: str
    tables: frozenset[str]
    bound: Bound = Bound.A
    settings: tuple[tuple[str, str], ...] = ()
    through: str = ""
    statements: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    reads: bool = False
    by_success: bool = False
    aim: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``refused``: SQLSTATE, "" where it was done. ``count`` and ``print``: how many rows, and a hash of them
    in any order, or an error in full, which is never shown. ``shown``: rows among them that were planted, as
    JSON. ``heard``: notices, never shown either. ``changed``: titles of tables in which the other tenants'
    rows are not as they were. ``unready``: why the attempt could not even be prepared. ``violated``: the
    constraint or unique index that refused it, as an attempt's ``aim``."""

    refused: str = ""
    message: str = ""
    count: int = 0
    print: str = ""
    shown: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unready: str = ""
    violated: str = ""

    @property
    def learnt(self) -> tuple[object, ...]:
        """All that the application could tell apart."""
        return self.refused, self.message, self.count, self.print, self.heard


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``why``: in a sentence, what leaked, or why nothing was learnt. ``row``: a planted row that came out,
    "" where none did. ``violated``: of a leak, the constraint or unique index that told."""

    attempt: Attempt
    judgement: Judgement
    why: str = ""
    row: str = ""
    violated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """A finding and its verdict. ``by``: the outcome that shows it; ``why``: otherwise, the reason."""

    finding: Finding
    verdict: Verdict
    by: Outcome | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """``unfound``: leaks that no finding of the audit accounts for: a fault of the audit. ``unplanted``: by
    table, why no row could be planted there, so that nothing is known of it. ``outside``: by trigger or
    function, what it may do that a rollback does not undo; it was not set off."""

    outcomes: tuple[Outcome, ...]
    findings: tuple[Proved, ...]
    unfound: tuple[Outcome, ...]
    unplanted: Mapping[str, str] = field(default_factory=dict)
    outside: Mapping[str, str] = field(default_factory=dict)

    @property
    def leaked(self) -> tuple[Outcome, ...]:
        return tuple(each for each in self.outcomes if each.judgement is Judgement.LEAKED)

    def of(self, judgement: Judgement) -> int:
        """How many attempts ended so."""
        return sum(each.judgement is judgement for each in self.outcomes)
