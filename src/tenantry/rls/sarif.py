"""A report as SARIF 2.1.0, which code hosts show beside a change. Pure: a document out, to be written as
JSON.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0". A finding lies in a
database and not in a file, so its place is a logical location; for viewers that show nothing without a file,
the declaration can be named as one.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from tenantry.rls.audit import Report
from tenantry.rls.model import Finding, Severity
from tenantry.rls.rule import Rule
from tenantry.rls.rules import RULES

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
    Severity.INFO: "none",
}

_SCORES = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.5",
    Severity.LOW: "3.0",
    Severity.INFO: "0.0",
}
"""What viewers that sort by a score between 0 and 10 are told; ours are words."""

_KINDS = {"function": "function", "trigger": "function", "procedure": "function"}
"""SARIF knows few kinds; what it has no word for is an object of the database."""


def document(
    report: Report, *, version: str, file: str = "", rules: Sequence[Rule] = RULES
) -> dict[str, Any]:
    """The SARIF log of ``report``. ``version``: of this program. ``file``: the declaration's path, for
    viewers that need one. Accepted and excused findings are in it, suppressed, with the reason where there is
    one."""
    places = {rule.name: place for place, rule in enumerate(rules)}
    results = [_result(each, places[each.rule], file) for each in report.findings]
    for kind, suppressed in (("external", report.accepted), ("inSource", report.excused)):
        for each in suppressed:
            because = {"suppressions": [{"kind": kind, "justification": each.excuse}]}
            results.append(_result(each, places[each.rule], file) | because)
    driver = {
        "name": "tenantry rls audit",
        "semanticVersion": version,
        "rules": [_rule(each) for each in rules],
    }
    run = {
        "tool": {"driver": driver},
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.mechanism},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "family": rule.family.value,
            "page": rule.page,
            "security-severity": _SCORES[rule.severity],
            "tags": ["security", "row-policies"],
        },
    }


def _result(finding: Finding, place: int, file: str) -> dict[str, Any]:
    kind, _, name = finding.subject.partition(" ")
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": name or kind, "kind": _KINDS.get(kind, kind)}]
    }
    if file:
        location["physicalLocation"] = {"artifactLocation": {"uri": quote(file)}, "region": {"startLine": 1}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": place,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [location],
        "partialFingerprints": {"tenantryFinding/v1": finding.key},
        "properties": {"severity": finding.severity.word, "fix": finding.fix, "fixSql": finding.fix_sql},
    }
