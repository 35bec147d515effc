"""Operations: what surprises those who run the database."""

from tenantry.rls.model import Family
from tenantry.rls.rule import Rules

RULES = Rules(Family.OPERATIONS)
