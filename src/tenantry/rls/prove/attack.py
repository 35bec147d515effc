"""Which attempts are made, how an answer is judged, and what outcomes say of findings. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from tenantry.rls.model import Family, Finding
from tenantry.rls.prove.becoming import becoming
from tenantry.rls.prove.limits import COVERED, DOORS, WHY_BEYOND, why_beyond
from tenantry.rls.prove.model import Answer, Attempt, Bound, Judgement, Outcome, Proved, Verdict
from tenantry.rls.prove.planting import MARK, Field, other_settings, settings
from tenantry.rls.prove.reading import reading
from tenantry.rls.prove.stances import Attacker
from tenantry.rls.prove.writing import writing

_GIVEN_UP = {"57014", "55P03", "40P01", "53200", "54000"}
"""Statement too long, lock not to be had, deadlock, out of memory, too much of something."""


def attempts(field: Field) -> tuple[Attempt, ...]:
    """All of every application role. Those without any tenant bound come first: once a session has bound one,
    the setting is '' in it for good, and no longer what nobody has set."""
    found: list[Attempt] = []
    for role in field.scene.application:
        attacker = Attacker(field, role.name)
        found += [*reading(attacker), *writing(attacker), *becoming(attacker)]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: each.bound is not Bound.NOBODY))


def touching(field: Field, role: str) -> Attempt:
    """What binds every setting once, and asks nothing."""
    names = (*settings(field.scene), *other_settings(field.scene))
    made = tuple((each, "") for each in names if "." in each)
    return Attempt(door="touch", role=role, asked="SELECT 1", tables=frozenset(), settings=made)


def is_first(attempt: Attempt) -> bool:
    """Whether it is made before any tenant was ever bound."""
    return attempt.bound is Bound.NOBODY


def judged(attempt: Attempt, without: Answer, answer: Answer, again: Answer | None) -> Outcome:
    """What an attempt shows. ``without``: its answer in a world without the other tenants' rows; ``again``:
    where the two differ, its answer once more with them."""
    judgement, why = _unlearnt(answer, without) or _judgement(attempt, without, answer, again)
    leaked = judgement is Judgement.LEAKED
    return Outcome(
        attempt=attempt, judgement=judgement, why=why, row=next(iter(answer.shown), "") if leaked else ""
    )


def _unlearnt(answer: Answer, without: Answer) -> tuple[Judgement, str] | None:
    if answer.unready or without.unready:
        return Judgement.BEYOND, f"it could not be prepared: {answer.unready or without.unready}"
    if {answer.refused, without.refused} & _GIVEN_UP:
        return Judgement.BEYOND, f"it was given up: {answer.message or without.message}"
    return None


def _judgement(
    attempt: Attempt, without: Answer, answer: Answer, again: Answer | None
) -> tuple[Judgement, str]:
    if answer.changed:
        return Judgement.LEAKED, f"it changed what another tenant has in {', '.join(answer.changed)}"
    if attempt.by_success and not answer.refused:
        return Judgement.LEAKED, "it was let through"
    if answer.learnt != without.learnt:
        if again is not None and again.learnt != answer.learnt:
            return Judgement.BEYOND, "it answers differently each time, also with the same rows"
        return Judgement.LEAKED, _told(without, answer)
    if answer.refused:
        return Judgement.REFUSED, f"{_refusal(answer)}"
    return Judgement.HELD, ""


_PLAIN = {"0A", "23", "25", "40", "42", "55", "57"}
"""Classes of errors whose message names objects and no values."""


def _refusal(answer: Answer) -> str:
    """The error, with its message where no value of a real row can be in it."""
    shown = answer.refused[:2] in _PLAIN or MARK in answer.message
    return f"[{answer.refused}] {answer.message}" if shown else f"[{answer.refused}]"


def _told(without: Answer, answer: Answer) -> str:
    if answer.shown:
        return "a row of another tenant came out"
    if answer.refused:
        how = "the error tells of" if without.refused else "it is refused only because of"
        return f"{how} another tenant's row: {_refusal(answer)}"
    if without.refused:
        return f"it is let through only because of another tenant's row, otherwise [{without.refused}]"
    if answer.heard != without.heard:
        return "a function ran on another tenant's row, and said so"
    if answer.count != without.count:
        return "it counts another tenant's rows"
    return "the answer depends on another tenant's rows"


def proved(findings: Iterable[Finding], outcomes: Sequence[Outcome]) -> Iterator[Proved]:
    """Each finding with its verdict."""
    for finding in findings:
        tried = [each for each in outcomes if accounts(finding, each)]
        leak = next((each for each in tried if each.judgement is Judgement.LEAKED), None)
        if leak is not None:
            yield Proved(finding=finding, verdict=Verdict.CONFIRMED, by=leak)
        elif finding.rule in WHY_BEYOND or finding.family in {Family.PERFORMANCE, Family.OPERATIONS}:
            yield Proved(finding=finding, verdict=Verdict.BEYOND, why=why_beyond(finding))
        else:
            yield _without_leak(finding, tried)


def _without_leak(finding: Finding, tried: list[Outcome]) -> Proved:
    learnt = [each for each in tried if each.judgement in {Judgement.HELD, Judgement.REFUSED}]
    stopped = next((each.why for each in tried if each.judgement is Judgement.BEYOND), "")
    if learnt and not stopped:
        why = f"{len(learnt)} attempts by this way leaked nothing"
        return Proved(finding=finding, verdict=Verdict.REFUTED, by=learnt[0], why=why)
    why = stopped or "no attempt by this way could be made: nothing could be planted, or nobody may try"
    return Proved(finding=finding, verdict=Verdict.BEYOND, why=why)


def unfound(findings: Sequence[Finding], outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Leaks that no finding accounts for."""
    for each in outcomes:
        if each.judgement is Judgement.LEAKED and not any(accounts(one, each) for one in findings):
            yield each


def accounts(finding: Finding, outcome: Outcome) -> bool:
    """Whether a leak by this attempt is what the finding speaks of."""
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
