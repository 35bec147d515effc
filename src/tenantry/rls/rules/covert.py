"""Covert channels: what is learnt of rows that are never shown."""

from tenantry.rls.model import Family
from tenantry.rls.rule import Rules

RULES = Rules(Family.COVERT)
