"""Policy text: whether what a policy says holds a row to its tenant."""

from tenantry.rls.model import Family
from tenantry.rls.rule import Rules

RULES = Rules(Family.POLICY_TEXT)
