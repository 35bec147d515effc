"""The audit: every rule over one scene, sorted, without what a baseline accepts. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tenantry.rls.facts import Facts
from tenantry.rls.model import Declared, Finding, Found, Scope, Severity
from tenantry.rls.rule import Rule
from tenantry.rls.rules import RULES
from tenantry.rls.scene import Scene
from tenantry.rls.scope import found as scope_found


@dataclass(frozen=True, slots=True)
class Report:
    """What an audit says. ``findings``: the worst first; none is clean. ``excused``: what service roles do
    with a declared reason. ``accepted``: those of the baseline, with its reasons; ``stale``: keys
    of the baseline that nothing was found for, which should leave it."""

    scope: Scope
    findings: tuple[Finding, ...]
    excused: tuple[Finding, ...] = ()
    accepted: tuple[Finding, ...] = ()
    stale: tuple[str, ...] = ()
    rules: int = len(RULES)

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.severity >= severity)

    def counts(self) -> dict[Severity, int]:
        """How many of each severity, the worst first; those without any too."""
        counted = Counter(each.severity for each in self.findings)
        return {each: counted[each] for each in sorted(Severity, reverse=True)}


def audit(
    facts: Facts,
    declared: Declared,
    *,
    rules: Sequence[Rule] = RULES,
    baseline: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """What ``rules`` find. ``baseline``: keys of findings that are accepted, each with the reason.

    Raises :class:`~tenantry.kernel.errors.InvalidValue` as :func:`tenantry.rls.scope.found` does.
    """
    scene = Scene(facts, scope_found(declared, facts))
    everything = sorted(findings(scene, rules), key=_order)
    known, seen = frozenset(baseline), {each.key for each in everything}
    faults = [each for each in everything if not each.excuse]
    return Report(
        scope=scene.scope,
        findings=tuple(each for each in faults if each.key not in known),
        excused=tuple(each for each in everything if each.excuse),
        accepted=tuple(replace(each, excuse=baseline[each.key]) for each in faults if each.key in known),
        stale=tuple(sorted(known - seen)),
        rules=len(rules),
    )


def findings(scene: Scene, rules: Sequence[Rule] = RULES) -> Iterator[Finding]:
    """What each rule finds, in the rules' order."""
    for rule in rules:
        for found in rule.check(scene):
            yield _finding(rule, found, scene)


def _finding(rule: Rule, found: Found, scene: Scene) -> Finding:
    table = scene.facts.relations.get(found.table)
    severity = found.severity if found.severity is not None else rule.severity
    return Finding(
        rule=rule.name,
        family=rule.family,
        severity=Severity.INFO if found.excuse else severity,
        subject=found.subject,
        message=found.message,
        mechanism=rule.mechanism,
        fix=rule.fix,
        fix_sql=found.fix_sql,
        table=table.title if table else "",
        role=found.role,
        excuse=found.excuse,
    )


def _order(finding: Finding) -> tuple[object, ...]:
    return -finding.severity, finding.rule, finding.subject
