"""What this room raises. What a driver raises of statements, connections and pools passes unchanged.

::

    UsageError
    ├── TenantMissing       strict, and no tenant is named: nothing was sent
    ├── OtherTenant         inside one tenant's transaction another was asked for: nothing was sent
    ├── TransactionOpen     the connection already is in a transaction, which would outlive the binding
    ├── LeftBehind          the connection carries what is not this tenant's; it was not used
    ├── TenantChanged       the body changed tenant or role, or ended the transaction: rolled back
    └── FailureHidden       the body hid the failure of a statement: PostgreSQL could only roll back
"""

from collections.abc import Sequence

from tenantry.bindings.model import Leftover, LeftoverKind
from tenantry.kernel.errors import UsageError

_SAID = {
    LeftoverKind.SETTING: "{} has a value outside a transaction (SET without LOCAL, or a default of the "
    "role, the database or the connection)",
    LeftoverKind.ROLE: "it runs as the role {} (SET ROLE was left behind, or the login is not the one "
    "declared)",
    LeftoverKind.TEMPORARY: "the temporary object {} is there",
    LeftoverKind.CURSOR: "the cursor {} WITH HOLD is open",
    LeftoverKind.POWERFUL: "the role {} is a superuser or has BYPASSRLS, so that no row policy applies to it",
}


class TenantMissing(UsageError):
    """Strict, and no tenant: neither the call nor :func:`~tenantry.bindings.use_tenant` names one."""

    def __init__(self, doing: str) -> None:
        super().__init__(
            f"{doing}: no tenant is named, and the binding is strict. Nothing was sent. Open a transaction "
            "for a tenant, inside `with use_tenant(...)` or with the tenant as its argument; or use "
            "Binding(strict=False), without which no rows are seen"
        )


class OtherTenant(UsageError):
    """A tenant other than the one whose transaction is open here."""

    def __init__(self, asked: str, bound: str) -> None:
        self.asked, self.bound = asked, bound
        super().__init__(
            f"tenant {asked!r} was asked for inside a transaction of tenant {bound!r}. Nothing was sent. End "
            "that transaction first: a savepoint cannot hold another tenant"
        )


class TransactionOpen(UsageError):
    """The connection is in a transaction already."""

    def __init__(self) -> None:
        super().__init__(
            "the connection already is in a transaction, so that the tenant would stay bound after this "
            "block. Commit or roll back first; inside, take savepoints with the driver's own transaction()"
        )


class LeftBehind(UsageError):
    """``leftovers``: what was on the connection. ``cleaned``: whether it is gone, and the connection fit."""

    def __init__(self, leftovers: Sequence[Leftover], *, cleaned: bool) -> None:
        self.leftovers, self.cleaned = tuple(leftovers), cleaned
        found = "; ".join(_SAID[leftover.kind].format(leftover.name) for leftover in leftovers)
        after = "It was cleaned: try again" if cleaned else "It cannot be cleaned from here, and was closed"
        super().__init__(f"the connection is unfit for a tenant: {found}. No tenant was bound. {after}")


class TenantChanged(UsageError):
    """The setting or the role was not at the end what it was at the beginning."""

    def __init__(self) -> None:
        super().__init__(
            "the tenant's setting or the role was changed inside the transaction, or the transaction was "
            "ended there. It was rolled back, unless the body itself committed"
        )


class FailureHidden(UsageError):
    """A statement failed inside, and the body went on to its end as if it had not."""

    def __init__(self) -> None:
        super().__init__(
            "a statement had failed unnoticed inside the transaction, and PostgreSQL rolled it back. Let the "
            "exception through, or guard the statement with a savepoint"
        )
