"""The page of the audit's rules, drawn from the rules: ``docs/rls-rules.md``. Pure."""

from collections.abc import Iterator, Sequence

from tenantry.rls.model import Family
from tenantry.rls.rule import Rule
from tenantry.rls.rules import RULES

_HEAD = """\
# Rules of the audit

<!-- Drawn from the rules by `tenantry rls rules --page > docs/rls-rules.md`; a test keeps it true. -->

What [`tenantry rls audit`](rls.md) looks for, one heading a rule. Each has a schema that breaks it and a twin
that looks alike and is right, in `tenantry.testing.row_policies`; the tests run both on a real server.

Severities: **critical** and **high**, a tenant can reach another's rows, or will after the next ordinary
change; **medium**, something of them, or with a second mistake; **low**, it surprises or is slow; **info**,
worth knowing.
"""

_ABOUT = {
    Family.ENFORCEMENT: "Whether policies hold at all for who asks.",
    Family.POLICY_TEXT: "Whether what a policy says holds a row to its tenant.",
    Family.DOORS: "Ways to rows that do not pass their policies.",
    Family.COVERT: "What is learnt of rows that are never shown.",
    Family.PERFORMANCE: "Policies that cost more than the filter that they are.",
    Family.OPERATIONS: "What surprises those who run the database.",
}


def page(rules: Sequence[Rule] = RULES) -> str:
    """The whole page, in Markdown."""
    return "\n".join([_HEAD, *_contents(rules), *_families(rules)])


def _contents(rules: Sequence[Rule]) -> Iterator[str]:
    yield "| rule | severity | finds |"
    yield "| --- | --- | --- |"
    for rule in _sorted(rules):
        yield f"| [{rule.name}](#{rule.name}) | {rule.severity.word} | {rule.summary} |"
    yield ""


def _sorted(rules: Sequence[Rule]) -> list[Rule]:
    """By family; within one as they are written."""
    order = list(Family)
    return sorted(rules, key=lambda rule: order.index(rule.family))


def _families(rules: Sequence[Rule]) -> Iterator[str]:
    for family in Family:
        yield f"## {family.value.capitalize()}"
        yield ""
        yield _ABOUT[family]
        yield ""
        for rule in rules:
            if rule.family is family:
                yield documentation(rule)


def documentation(rule: Rule) -> str:
    """The section of one rule."""
    return (
        f"### {rule.name}\n\n"
        f"*{rule.severity.word}* · {rule.summary}\n\n"
        f"{rule.mechanism}\n\n"
        f"**What to do:** {rule.fix}\n"
    )
