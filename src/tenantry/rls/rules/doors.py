"""Doors: ways to rows that do not pass their policies."""

from tenantry.rls.model import Family
from tenantry.rls.rule import Rules

RULES = Rules(Family.DOORS)
