"""``tenantry rls prove``: the findings of the audit, shown by attack."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import command
from tenantry.cli.output import Output, amount
from tenantry.cli.progress import advancing
from tenantry.cli.rls_app import OnAudited, app, baseline, declared, remark_on_unread, url_of
from tenantry.kernel.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenantry.rls import Report
    from tenantry.rls.prove.model import Outcome, Proof, Proved

_STYLES = {"confirmed": "red", "refuted": "green", "beyond reach": "yellow"}


@dataclass(frozen=True, kw_only=True)
class ProveOptions(OnAudited):
    """What is attacked, and as whom."""

    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Findings that are accepted: what they explain does not fail."),
    ] = None
    door: Annotated[
        list[str] | None, typer.Option(metavar="DOOR", help="Only attempts of this kind. May be repeated.")
    ] = None
    statement_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.01, help="After which an attempt is given up.")
    ] = 10.0
    lock_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.01, help="How long an attempt waits for a lock, and others behind it."
        ),
    ] = 1.0
    every: Annotated[
        bool, typer.Option("--every", help="Also the attempts that leaked nothing, with the reason.")
    ] = False


@command(app, "prove", ProveOptions)
def prove(options: ProveOptions) -> None:
    """Attack the policies with two planted tenants, and show what leaks.

    Plants rows of two made-up tenants, attempts as each application role to see and to write the other's, by
    every way that the audit knows, and says of each finding whether it is confirmed, refuted, or beyond
    reach and why. All in one transaction that is always rolled back; only planted rows are ever shown. Needs
    a superuser's login; a copy of the database serves as well. Exit code 0 where nothing leaks, 1 where
    something does, 2 for a call that must be changed, 3 where the database cannot be reached.
    """
    from tenantry.cli.eventloop import run

    if options.own and (options.declaration or options.role or options.baseline or options.schema):
        raise UsageError("--own brings its declaration and its baseline: give none besides")
    if options.declaration is not None and options.role:
        raise UsageError("--role stands for a declaration: give the one or the other")
    _refuse_unknown(options.door or ())
    output = Output.of(options)
    report, proof = run(_proved(options, output))
    accepted = {each.key for each in report.accepted}
    output.data(_data(report, proof))
    _tell(options, output, report, proof)
    if not (options.own or options.declaration or options.role):
        remark_on_unread(output)
    if _is_leaky(proof, accepted):
        raise typer.Exit(1)


def _refuse_unknown(doors: "Iterable[str]") -> None:
    from tenantry.kernel.errors import nearest
    from tenantry.rls.prove.limits import ALL

    for each in doors:
        if each not in ALL:
            near = nearest(each, tuple(ALL))
            hint = f"did you mean {near!r}?" if near else f"one of {', '.join(sorted(ALL))}"
            raise UsageError(f"--door {each!r}: {hint}")


async def _proved(options: ProveOptions, output: Output) -> "tuple[Report, Proof]":
    from tenantry.postgres.proving import proving_range
    from tenantry.rls.prove.limits import ALL
    from tenantry.rls.prove.proving import prove as proved

    place = proving_range(
        url_of(options), statement_timeout=options.statement_timeout, lock_timeout=options.lock_timeout
    )
    scope, known = declared(options, {}), baseline(options, options.baseline)
    with advancing(output, "attacking", 1.0) as advance:
        async with place as at:
            return await proved(
                at,
                scope,
                baseline=known,
                doors=options.door or ALL,
                moved=lambda done, total: advance(1.0 / total),
            )


def _is_leaky(proof: "Proof", accepted: set[str]) -> bool:
    """Whether anything leaked that nobody has accepted."""
    return bool(proof.unfound) or any(_counts(each, accepted) for each in proof.findings)


def _counts(proved: "Proved", accepted: set[str]) -> bool:
    excused = proved.finding.key in accepted or bool(proved.finding.excuse)
    return proved.verdict.value == "confirmed" and not excused


def _tell(options: ProveOptions, output: Output, report: "Report", proof: "Proof") -> None:
    accepted = {each.key: each.excuse for each in report.accepted}
    for outcome in proof.unfound:
        output.line(output.styled("leaked, and the audit says nothing of it: a fault of the audit", "red"))
        _tell_outcome(output, outcome)
    for proved in proof.findings:
        _tell_proved(output, proved, accepted.get(proved.finding.key) or proved.finding.excuse)
    for title, why in proof.unplanted.items():
        output.line(f"{'beyond reach':<13} {title}: no row could be planted there: {why}")
    for title, why in proof.outside.items():
        output.line(f"{'beyond reach':<13} {title}: not set off, since {why}")
    if options.every:
        for outcome in proof.outcomes:
            output.line(f"{outcome.judgement.value:<13} {outcome.attempt.door}: {outcome.attempt.asked}")
            tail = f"; {outcome.why}" if outcome.why else ""
            output.line(f"{'':<14}as {outcome.attempt.role} with {outcome.attempt.bound.value}{tail}")
    _tell_summary(output, report, proof)


def _tell_proved(output: Output, proved: "Proved", excuse: str) -> None:
    word = proved.verdict.value
    output.line(f"{output.styled(f'{word:<13}', _STYLES[word])} {proved.finding.key}")
    if excuse:
        output.line(f"{'':<14}accepted: {excuse}")
    if word == "confirmed" and proved.by is not None:
        _tell_outcome(output, proved.by)
    elif proved.why:
        output.line(f"{'':<14}{proved.why}")


def _tell_outcome(output: Output, outcome: "Outcome") -> None:
    attempt = outcome.attempt
    output.line(f"{'':<14}as {attempt.role}, with {attempt.bound.value} bound:")
    bound = [f"SELECT set_config('{name}', '{text}', true)" for name, text in attempt.settings]
    for each in (*bound, *attempt.statements, attempt.asked):
        output.line(f"{'':<16}{each};")
    output.line(f"{'':<14}{outcome.why}{': ' + outcome.row if outcome.row else ''}")


def _tell_summary(output: Output, report: "Report", proof: "Proof") -> None:
    from tenantry.rls.prove.model import Judgement, Verdict

    counted = [
        f"{sum(each.verdict is verdict for each in proof.findings)} {verdict.value}" for verdict in Verdict
    ]
    made = ", ".join(f"{proof.of(each)} {each.value}" for each in Judgement)
    roles = ", ".join(report.scope.application)
    output.line(f"{amount(len(proof.outcomes), 'attempt')} as {roles}: {made}.")
    output.line(f"Of {amount(len(proof.findings), 'finding')}: {', '.join(counted)}.")
    output.line("Rolled back. Sequences that were drawn from have advanced.")


def _data(report: "Report", proof: "Proof") -> dict[str, object]:
    from tenantry.rls.prove.model import Judgement

    accepted = {each.key for each in report.accepted}
    return {
        "clean": not _is_leaky(proof, accepted),
        "application": report.scope.application,
        "attempts": {each.value: proof.of(each) for each in Judgement},
        "unfound": [_outcome_data(each) for each in proof.unfound],
        "findings": [
            {
                "key": each.finding.key,
                "rule": each.finding.rule,
                "severity": each.finding.severity.word,
                "verdict": each.verdict.value,
                "accepted": each.finding.key in accepted or bool(each.finding.excuse),
                "by": _outcome_data(each.by) if each.by else None,
                "why": each.why,
            }
            for each in proof.findings
        ],
        "leaked": [_outcome_data(each) for each in proof.leaked],
        "unplanted": dict(proof.unplanted),
        "outside": dict(proof.outside),
    }


def _outcome_data(outcome: "Outcome") -> dict[str, object]:
    attempt = outcome.attempt
    return {
        "door": attempt.door,
        "role": attempt.role,
        "bound": attempt.bound.value,
        "settings": dict(attempt.settings),
        "through": attempt.through,
        "tables": sorted(attempt.tables),
        "prepare": attempt.prepare,
        "statements": attempt.statements,
        "asked": attempt.asked,
        "judgement": outcome.judgement.value,
        "why": outcome.why,
        "row": outcome.row,
        "violated": outcome.violated,
    }
