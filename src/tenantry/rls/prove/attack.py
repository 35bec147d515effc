"""Which attempts are made, and how an answer is judged. Pure."""

from tenantry.rls.prove.becoming import becoming
from tenantry.rls.prove.model import Answer, Attempt, Bound, Judgement, Outcome
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
    if judgement is not Judgement.LEAKED:
        return Outcome(attempt=attempt, judgement=judgement, why=why)
    violated = "" if answer.changed else answer.violated or without.violated
    row = next(iter(answer.shown), "")
    return Outcome(attempt=attempt, judgement=judgement, why=why, row=row, violated=violated)


def _unlearnt(answer: Answer, without: Answer) -> tuple[Judgement, str] | None:
    if answer.unready or without.unready:
        return Judgement.BEYOND, f"it could not be prepared: {answer.unready or without.unready}"
    if {answer.refused, without.refused} & _GIVEN_UP:
        return Judgement.BEYOND, f"it was given up: {answer.message or without.message}"
    return None


def _judgement(
    attempt: Attempt, without: Answer, answer: Answer, again: Answer | None
) -> tuple[Judgement, str]:
    if answer.changed or (attempt.by_success and not answer.refused):
        where = ", ".join(answer.changed)
        said = f"it changed what another tenant has in {where}" if where else "it was let through"
        return Judgement.LEAKED, said
    if answer.learnt != without.learnt:
        if again is not None and again.learnt != answer.learnt:
            return Judgement.BEYOND, "it answers differently each time, also with the same rows"
        return Judgement.LEAKED, _told(without, answer)
    if not answer.refused:
        return Judgement.HELD, ""
    if _is_held_off(attempt, answer):
        return Judgement.REFUSED, _refusal(answer)
    return Judgement.BEYOND, f"it failed of something else than a right or a policy: {_refusal(answer)}"


_HELD_OFF = {"42501", "44000", "0A000", "42704", "42809", "42P17", "55000"}
"""No right or no policy for it, a view's own check, nothing that can be done to such an object at all; and
policies that fail, since the setting was never made or they ask themselves."""


def _is_held_off(attempt: Attempt, answer: Answer) -> bool:
    """Whether rights and policies refused it, and not a value, a key or a trigger in its way. A policy that
    casts '' where no tenant is bound fails for everybody: that holds too."""
    unbound = attempt.bound in {Bound.NOBODY, Bound.EMPTY}
    return answer.refused in _HELD_OFF or (
        unbound and answer.refused == "22P02" and answer.message.endswith('""')
    )


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
