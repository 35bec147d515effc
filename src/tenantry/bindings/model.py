"""What a binding is: settings, what may be found on a connection, the steps that a driver is asked to
take."""

from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

from tenantry.bindings.names import checked_role, checked_setting
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantType


@dataclass(frozen=True, slots=True)
class Binding:
    """How transactions tell the database their tenant. Immutable: share it as you like.

    ``setting``: the one that the policies read with ``current_setting``; two words with a dot, in small
    letters. ``type``: of the tenant column. ``role``: whom the transactions must run as; None for the login
    itself. ``strict``: without a tenant a transaction is refused before anything is sent; else it sees no
    rows. Raises :class:`~tenantry.kernel.errors.InvalidValue`."""

    setting: str = "app.tenant_id"
    type: TenantType = "text"
    role: str | None = None
    strict: bool = True

    def __post_init__(self) -> None:
        checked_setting(self.setting)
        if self.role is not None:
            checked_role(self.role)
        if self.type not in get_args(TenantType):
            raise InvalidValue("binding.type", self.type, "one of " + ", ".join(get_args(TenantType)))


DEFAULT = Binding()
"""A text in ``app.tenant_id``, strict."""


class LeftoverKind(StrEnum):
    """What a connection may carry from an earlier use, or be, that makes it unfit for a tenant."""

    SETTING = "setting"  # the tenant's setting has a value outside a transaction
    ROLE = "role"  # SET ROLE was left behind, or the login is not the role that was declared
    TEMPORARY = "temporary"  # a table, view, sequence, function or type of this session alone
    CURSOR = "cursor"  # WITH HOLD: rows that outlive their transaction
    POWERFUL = "powerful"  # a superuser, or BYPASSRLS: row policies do not apply


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that was found; ``name`` is the setting's, the role's, the table's, the cursor's."""

    kind: LeftoverKind
    name: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a session says of itself, in the order of the columns of the statement that asks."""

    setting: bool
    user: str
    login: str
    powerful: bool
    temporary: tuple[str, ...]
    cursors: tuple[str, ...]


@dataclass(slots=True)
class Judged:
    """What is remembered of one pool or connection. Safe from any thread: a count that is lost changes
    little.

    ``done``: what its login may do was asked. ``hits`` and ``misses``: how often the prepared statement that
    binds was there, and was not.
    """

    done: bool = False
    hits: int = 0
    misses: int = 0

    @property
    def pays(self) -> bool:
        """Whether it makes sense to expect the prepared statement: one miss in eight is the most, and each
        new session may miss once. A pool that discards everything between uses never has it."""
        return 8 * self.misses <= self.hits + 256

    @property
    def prepares(self) -> bool:
        """Whether what binds and checks is expected to be prepared where a transaction is open."""
        return (self.hits > 0 or self.misses > 0) and self.pays


@dataclass(frozen=True, slots=True)
class Run:
    """A step: send ``sql`` as one message without parameters; answer with its last command's row count."""

    sql: str


@dataclass(frozen=True, slots=True)
class Read:
    """A step: send ``sql``, one statement; answer with its one row."""

    sql: str
