"""Who there is on a server, and what an object grants to whom."""

from dataclasses import dataclass
from typing import Literal

PUBLIC = "public"
"""The grantee that is every role. No role can have this name."""

Privilege = Literal[
    "SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN",
    "EXECUTE", "USAGE", "CREATE", "CONNECT", "TEMPORARY", "SET", "ALTER SYSTEM",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grant:
    """One line of an ACL. An object's owner is listed too, unless it gave its rights up."""

    grantee: str
    privileges: frozenset[Privilege]
    grantable: frozenset[Privilege] = frozenset()


@dataclass(frozen=True, slots=True)
class Role:
    """``predefined``: one of the server's own (``pg_read_all_data`` and so on)."""

    oid: int
    name: str
    superuser: bool = False
    bypasses_rls: bool = False
    creates_roles: bool = False
    creates_databases: bool = False
    replicates: bool = False
    can_login: bool = False
    inherits: bool = True
    predefined: bool = False


@dataclass(frozen=True, slots=True)
class Membership:
    """``member`` belongs to ``role``. Before PostgreSQL 16, ``inherits`` is the member's and ``may_set``
    true."""

    role: str
    member: str
    inherits: bool = True
    may_set: bool = True
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class RoleSetting:
    """``ALTER ROLE … SET`` or ``ALTER DATABASE … SET``; ``role`` is None for all, ``here`` if it names this
    database."""

    role: str | None
    here: bool
    name: str
    value: str
