"""Every rule of the audit, one or two modules a family. ``RULES`` has them in the order of the
documentation."""

from tenantry.kernel.errors import InvalidValue, InvariantBroken, nearest
from tenantry.rls.rule import Rule
from tenantry.rls.rules import (
    covert,
    doors,
    enforcement,
    operations,
    performance,
    policy_lookups,
    policy_settings,
    policy_text,
    roles,
    side_doors,
)

_FAMILIES = (
    enforcement.RULES, roles.RULES, policy_text.RULES, policy_settings.RULES, policy_lookups.RULES,
    doors.RULES, side_doors.RULES, covert.RULES, performance.RULES, operations.RULES,
)  # fmt: skip

RULES: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in family.all)

BY_NAME = {rule.name: rule for rule in RULES}

if len(BY_NAME) != len(RULES):
    raise InvariantBroken("two rules of different families have one name")


def named(name: str) -> Rule:
    """The rule ``name``. Raises :class:`InvalidValue` with the nearest one."""
    found = BY_NAME.get(name)
    if found is None:
        near = nearest(name, tuple(BY_NAME))
        hint = f"Did you mean {near!r}?" if near else "`tenantry rls rules` lists them."
        raise InvalidValue("rule", name, f"one of the {len(RULES)} rules", hint)
    return found
