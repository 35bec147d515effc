"""Performance: policies that cost more than the filter that they are."""

from tenantry.rls.model import Family
from tenantry.rls.rule import Rules

RULES = Rules(Family.PERFORMANCE)
