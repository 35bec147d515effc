"""Row policies' other half: each transaction tells the database its tenant, whatever driver it goes through.

Theory. A row policy reads a setting of the session. The setting must be the transaction's alone
(``set_config(name, value, true)``): what outlives a transaction meets the next one that the pool gives the
connection to. So a binding is made anew for every transaction, in its first message, and there the session
is judged too: a tenant is bound only where nothing of anybody else is left. What is found (a value set by a
plain SET, another role, a temporary table, a WITH HOLD cursor) is cleaned in that same transaction and
refused. At the end, in COMMIT's message, tenant and role must be what they were, else all is rolled back: a
tenant that was bound inside a savepoint, which outlives its release, is found there.

Authority: the database. What is bound, and whether it still is, is decided by its answers, never by memory
here; so a cancelled, failed or broken transaction needs no bookkeeping to be safe.

What holds:

- No bound transaction begins on a session that shows another tenant's trace, and none commits as another
  tenant than it began.
- However a transaction ends, the connection that returns to a pool has no tenant bound; where that cannot be
  known it is closed.
- Without a tenant no row is seen; where the binding is strict, nothing is even sent.
- One session is used from BEGIN to COMMIT. What is left in it is a prepared statement, without which all
  works as well, at one message more: a PgBouncer in transaction mode is fine.

What does not: code that holds the raw connection may send what it likes, and sees what the policies then
show it; whoever may send any SQL there can also put another statement in the place of ours, or of the
driver's own. Session-level advisory locks and LISTEN carry no rows and are not looked for.

``model``, ``names``, ``values``, ``statements``, ``rules``  what is sent and how answers are judged: pure
``context``                    the current tenant of a task or thread
``asyncpg``, ``psycopg``, ``sqlalchemy``, ``django``  one thin module a driver; each needs its extra
"""

from tenantry.bindings.context import current_tenant, use_tenant
from tenantry.bindings.errors import (
    FailureHidden,
    LeftBehind,
    OtherTenant,
    TenantChanged,
    TenantMissing,
    TransactionOpen,
)
from tenantry.bindings.model import Binding, Leftover, LeftoverKind
from tenantry.kernel.tenant import TenantType

__all__ = [
    "Binding",
    "FailureHidden",
    "Leftover",
    "LeftBehind",
    "LeftoverKind",
    "OtherTenant",
    "TenantChanged",
    "TenantMissing",
    "TenantType",
    "TransactionOpen",
    "current_tenant",
    "use_tenant",
]
