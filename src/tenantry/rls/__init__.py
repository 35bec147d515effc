"""Row policies: written, bound, audited, proved and explained.

Theory. Row policies hold a role to a tenant's rows only if it is no superuser, lacks BYPASSRLS, is not an
owner that is not forced, cannot become one who is, and reaches rows by no door that the policies do not
guard. All of that is in the catalogue. So the audit reads it once, as one immutable picture of one moment
(:mod:`~tenantry.rls.facts`), finds in it who the application is and which tables are tenants'
(:mod:`~tenantry.rls.scope`), and asks pure rules, one function a fault (:mod:`~tenantry.rls.rules`).

What a policy says is read off the tree that the server keeps, in which every name is resolved
(:mod:`~tenantry.rls.expression`), not off its text.
"""

from tenantry.rls.audit import Report, audit
from tenantry.rls.facts import Facts
from tenantry.rls.model import Declared, Family, Finding, Scope, Severity
from tenantry.rls.ports import Catalogue
from tenantry.rls.rule import Rule
from tenantry.rls.rules import RULES, named
from tenantry.rls.scope import found as scope_found

__all__ = [
    "Catalogue",
    "Declared",
    "Facts",
    "Family",
    "Finding",
    "RULES",
    "Report",
    "Rule",
    "Scope",
    "Severity",
    "audit",
    "named",
    "scope_found",
]
