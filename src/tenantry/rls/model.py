"""What is declared about a database, what that means in it, and what an audit says.

=============  ==================================================================================
word           is
=============  ==================================================================================
declared       what a person says: who the application is, which column names the tenant, which tables
               are shared, which roles serve all tenants and why; names, which the database may lack
scope          the same, found in the facts of one database: OIDs and roles that are there
rule           one way in which isolation breaks, or is slow, or surprises: a function over the scene
finding        one place where a rule holds, with what to do about it
=============  ==================================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Severity(IntEnum):
    """How bad, in order. ``HIGH`` and above: a tenant can reach another's rows, or will after the next
    ordinary change; ``MEDIUM``: something of them, or with a second mistake; ``LOW``: it surprises or is
    slow; ``INFO``: worth knowing, and no fault."""

    INFO = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4

    @property
    def word(self) -> str:
        return self.name.lower()


class Family(Enum):
    """Where the trouble lies."""

    ENFORCEMENT = "enforcement"
    POLICY_TEXT = "policy text"
    DOORS = "doors"
    COVERT = "covert channels"
    PERFORMANCE = "performance"
    OPERATIONS = "operations"


TENANT_COLUMNS = ("tenant_id", "tenant", "org_id", "organization_id", "organisation_id", "account_id",
                  "workspace_id", "company_id", "customer_id")  # fmt: skip
"""Columns that name the tenant, the likeliest first, where nobody declared any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """All optional: what is left out is read off the facts (see :func:`tenantry.rls.scope.found`).

    Tables are given by qualified name. ``tables``: tenant tables, each with its column, or "" where rows are
    a tenant's through something else (a policy with a join). ``shared``: tables of all tenants, with the
    reason. ``service_roles``: roles that work across tenants, with the reason. ``schemas``: only these are
    looked at. ``setting``: the name of the session setting that carries the tenant, "" for any.
    """

    application_roles: tuple[str, ...] = ()
    tenant_columns: tuple[str, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    service_roles: Mapping[str, str] = field(default_factory=dict)
    schemas: tuple[str, ...] = ()
    setting: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Who and what isolation is about, in one database.

    ``application``: the roles as which tenants' requests run. ``tenant_tables``: OID to its tenant column, ""
    where a policy finds the tenant otherwise. ``shared``: OIDs of declared shared tables, with the reason.
    ``service``: service roles that exist, with the reason. ``columns``: names that mean the tenant
    wherever a column has one. ``schemas``: names; what lies in others is not
    reported. ``declared``: whether a person said so (then a table in neither list is unclassified).
    """

    application: tuple[str, ...]
    tenant_tables: Mapping[int, str]
    shared: Mapping[int, str] = field(default_factory=dict)
    service: Mapping[str, str] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    schemas: frozenset[str] = frozenset()
    setting: str = ""
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule yields: one place. ``subject`` is unique for the rule (``policy p on app.invoices``) and
    stays the same while the fault does: baselines go by it.

    ``table`` is the OID of the tenant table whose rows are concerned and ``role`` the role that can do it,
    where there is one of each: what an attack needs. ``severity`` replaces the rule's own.
    """

    subject: str
    message: str
    fix_sql: str = ""
    table: int = 0
    role: str = ""
    severity: Severity | None = None
    excuse: str = ""
    """The declared reason why this is no fault, for what a service role is meant to do. Reported as INFO."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault, whole: what :class:`Found` says and what its rule does. ``table`` is the qualified name."""

    rule: str
    family: Family
    severity: Severity
    subject: str
    message: str
    mechanism: str
    fix: str
    fix_sql: str = ""
    table: str = ""
    role: str = ""
    excuse: str = ""

    @property
    def key(self) -> str:
        """What a baseline keeps."""
        return f"{self.rule}: {self.subject}"
