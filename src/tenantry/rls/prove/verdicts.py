"""What outcomes say of the audit's findings. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence

from tenantry.rls.model import Family, Finding
from tenantry.rls.prove.limits import (
    COVERED,
    DOORS,
    KEYS,
    NEVER_SHOWN,
    WHY_BEYOND,
    WRITE_DOORS,
    why_beyond,
)
from tenantry.rls.prove.model import Attempt, Bound, Judgement, Outcome, Proved, Verdict

_TITLE = r'((?:"(?:[^"]|"")*"|[^\s",])+)'
_ON_TABLE = re.compile(rf"(?:table|(?:policy|trigger|rule) {_TITLE} on) {_TITLE}")
_NAMED = re.compile(r"(?:view|materialized view|function|sequence) (.+?)(?: for \S+)?$")


def proved(findings: Iterable[Finding], outcomes: Sequence[Outcome]) -> Iterator[Proved]:
    """Each finding with its verdict."""
    for finding in findings:
        tried = [each for each in outcomes if shows(finding, each)]
        leak = next((each for each in tried if each.judgement is Judgement.LEAKED), None)
        if leak is not None:
            yield Proved(finding=finding, verdict=Verdict.CONFIRMED, by=leak)
        elif finding.rule in WHY_BEYOND or finding.family in {Family.PERFORMANCE, Family.OPERATIONS}:
            stopped = _stopped(tried)
            yield Proved(finding=finding, verdict=Verdict.BEYOND, why=stopped or why_beyond(finding))
        else:
            yield _without_leak(finding, tried)


def _without_leak(finding: Finding, tried: list[Outcome]) -> Proved:
    learnt = [each for each in tried if each.judgement in {Judgement.HELD, Judgement.REFUSED}]
    stopped = _stopped(tried)
    if learnt and not stopped:
        some = "1 attempt" if len(learnt) == 1 else f"{len(learnt)} attempts"
        why = f"{some} by this way leaked nothing"
        return Proved(finding=finding, verdict=Verdict.REFUTED, by=learnt[0], why=why)
    why = stopped or "no attempt by this way could be made: nothing could be planted, or nobody may try"
    return Proved(finding=finding, verdict=Verdict.BEYOND, why=why)


def _stopped(tried: Iterable[Outcome]) -> str:
    """Why the first attempt of which nothing was learnt ended so."""
    return next((each.why for each in tried if each.judgement is Judgement.BEYOND), "")


def unfound(findings: Sequence[Finding], outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Leaks that no finding accounts for."""
    for each in outcomes:
        if each.judgement is Judgement.LEAKED and not any(accounts(one, each) for one in findings):
            yield each


def accounts(finding: Finding, outcome: Outcome) -> bool:
    """Whether a leak by this attempt may be what the finding speaks of: enough not to blame the audit."""
    attempt = outcome.attempt
    if attempt.door not in DOORS.get(finding.rule, COVERED[finding.family]):
        return False
    if finding.role and finding.role != attempt.role:
        return False
    return (
        not finding.table
        or finding.table in attempt.tables
        or any(each in finding.subject for each in attempt.tables)
        or (bool(attempt.through) and attempt.through.split("(")[0].strip() in finding.subject)
    )


def shows(finding: Finding, outcome: Outcome) -> bool:
    """Whether the attempt touches what the finding speaks of, and by its way: whether it is evidence."""
    if finding.rule in NEVER_SHOWN or not accounts(finding, outcome):
        return False
    if finding.rule in KEYS:
        by_its_way = finding.rule != "on-conflict" or outcome.attempt.door == "upsert"
        return by_its_way and finding.subject.partition(" ")[2] in _ran_into(outcome)
    if finding.subject.endswith(", WITH CHECK") and outcome.attempt.door not in WRITE_DOORS:
        return False
    return _meets(finding, outcome.attempt)


def _meets(finding: Finding, attempt: Attempt) -> bool:
    """Whether it meets the object that the finding is about."""
    subject = finding.subject
    table, named = _ON_TABLE.match(subject), _NAMED.match(subject)
    if table:
        return _touches(attempt, table[2], by=not subject.startswith(("table", "policy")))
    if named:
        return attempt.through == named[1] or _is_within(attempt, finding)
    if subject.startswith("role "):
        return _as_role(attempt, subject)
    return " of " not in subject or attempt.bound is Bound.LOGIN


def _touches(attempt: Attempt, table: str, *, by: bool) -> bool:
    """Whether it is after the table's rows in the table itself, and not by a view or a function. ``by``: or
    sets off what hangs on the table."""
    through = attempt.through.partition(" (")[0]
    if through == table:
        return True
    aside = attempt.door in _ASIDE and bool(through)
    return table in attempt.tables and (by or not aside)


_ASIDE = {"read", "peek", "leakproof", "call", "view write", "fire"}
"""Doors whose ``through`` is another way to a table's rows than the table."""


def _is_within(attempt: Attempt, finding: Finding) -> bool:
    """Whether it goes through what the finding's message names besides: the view that asks the view."""
    through = attempt.through.partition(" (")[0]
    return (
        bool(through)
        and re.search(rf"(?<![\w.\"]){re.escape(through)}(?![\w.\"])", finding.message) is not None
    )


def _as_role(attempt: Attempt, subject: str) -> bool:
    if attempt.door in {"become", "owner", "admin"}:
        return attempt.through in subject.split(" ")
    return not (attempt.door in _ASIDE and attempt.through)


def _ran_into(outcome: Outcome) -> set[str]:
    """The keys, each with its table, that the leak is one of: what was violated; what the attempt was aimed
    at, where nothing was, or that of a part of the table, which has the key by another name."""
    attempt, violated = outcome.attempt, outcome.violated
    if outcome.judgement is not Judgement.LEAKED or not violated:
        return {attempt.aim}
    if not any(violated.endswith(f" on {each}") for each in attempt.tables):
        return {violated, attempt.aim}
    # an upsert tells by the key that it names: another that stands in its way is nothing of ON CONFLICT's
    return {violated} & {attempt.aim} if attempt.door == "upsert" else {violated}
