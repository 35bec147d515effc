"""``tenantry rls audit`` and ``rules``: the ways round the row policies of a database, and what is known of
each."""

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import Shown, command
from tenantry.cli.output import Output, amount
from tenantry.cli.rls_app import OnAudited, app, baseline, declared, remark_on_unread, url_of
from tenantry.kernel.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenantry.rls import Declared, Facts, Finding, Report, Rule, Severity

_WITHOUT_ROW_SECURITY = frozenset({"rls-off", "dormant-policies"})

_STYLES = {"critical": "red", "high": "red", "medium": "yellow", "low": "dim", "info": "dim"}


class Form(StrEnum):
    """What a report is written as."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


class Word(StrEnum):
    """Severities from which an audit fails, and never."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class AuditOptions(OnAudited):
    """What is looked at, and what is told of it."""

    service: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=REASON", help="A role that serves all tenants, and why. May be repeated."),
    ] = None
    rule: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Only this rule. May be repeated.")
    ] = None
    format: Annotated[Form, typer.Option(help="For people, for machines, or for a code host.")] = Form.TEXT
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report there.")] = None
    fail_on: Annotated[Word, typer.Option(help="Exit code 1 from this severity on.")] = Word.LOW
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Findings that are accepted, with their reasons.")
    ] = None
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Accept what is found: write it to --baseline.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class RulesOptions(Shown):
    """One rule, or all."""

    rule: Annotated[str | None, typer.Argument(metavar="[RULE]", help="Which rule; all unless given.")] = None
    page: Annotated[bool, typer.Option("--page", help="The whole documentation, in Markdown.")] = False


@command(app, "audit", AuditOptions)
def audit(options: AuditOptions) -> None:
    """Find every way round the row policies of a database.

    Reads the catalogue, in one snapshot, and no table of yours; any login will do. Exit code 0 where nothing
    is found at or above --fail-on, 1 where something is, 2 for a call that must be changed, 3 where the
    database cannot be reached.
    """
    from tenantry.cli.eventloop import run

    _refuse_contradictions(options)
    known = _known(options)
    facts = run(_facts(url_of(options)))
    if options.own:
        _refuse_another(facts)
    services = dict(map(_service, options.service or ()))
    report = _report(facts, declared(options, services), options, known)
    _refuse_nothing(report)
    if options.write_baseline:
        _write_baseline(options, report, known)
        return
    _tell(options, facts, report)
    _remark(options, report)
    if _fails(report, options.fail_on):
        raise typer.Exit(1)


@command(app, "rules", RulesOptions)
def rules(options: RulesOptions) -> None:
    """What the audit looks for: all rules, or the documentation of one."""
    from tenantry.rls import RULES, named
    from tenantry.rls.pages import documentation, page

    output = Output.of(options)
    if options.rule is not None:
        rule = named(options.rule)
        output.data(_rule_data(rule))
        output.line(documentation(rule).rstrip())
    elif options.page:
        output.data([_rule_data(rule) for rule in RULES])
        output.line(page().rstrip())
    else:
        output.data([_rule_data(rule) for rule in RULES])
        rows = [(rule.name, rule.severity.word, rule.family.value, rule.summary) for rule in RULES]
        output.table(("rule", "severity", "family", "finds"), rows)


async def _facts(url: str) -> "Facts":
    from tenantry.postgres.catalogue import PostgresCatalogue

    return await PostgresCatalogue(url).facts()


def _refuse_contradictions(options: AuditOptions) -> None:
    if options.write_baseline and options.baseline is None:
        raise UsageError("--write-baseline writes to the file of --baseline: name one")
    if options.declaration is not None and (options.role or options.service):
        raise UsageError("--role and --service stand for a declaration: give the one or the other")
    if options.own and (options.declaration or options.role or options.service or options.baseline):
        raise UsageError("--own brings its declaration and its baseline: give none besides")
    if options.json and options.format is Form.SARIF:
        raise UsageError("--json and --format sarif: one of them")


def _refuse_another(facts: "Facts") -> None:
    """``--own`` asks about Tenantry's tables: there must be some."""
    from tenantry.postgres.own_policies import OWN

    if not set(OWN.schemas) <= facts.schemas.keys():
        raise UsageError(
            f"--own is about Tenantry's own tables, and the database {facts.server.database} has none: name "
            "the one that you migrated; for a plain `tenantry up`, while it runs in this directory: "
            "--database-url 'postgresql://postgres@/postgres?host=/PATH/OF/THIS/DIRECTORY/.tenantry/socket'"
        )


def _refuse_nothing(report: "Report") -> None:
    """An audit of nothing finds nothing: that must not look like a clean one."""
    if not report.scope.tenant_tables:
        raise UsageError("no tenant table was recognised: name them, with their columns, in a --declaration")
    if not report.scope.application:
        raise UsageError("nobody but superusers may use the tenant tables: say with --role who does")


def _service(text: str) -> tuple[str, str]:
    role, equals, reason = text.partition("=")
    if not role or not equals or not reason.strip():
        raise UsageError(f"--service {text!r}: write ROLE=REASON, such as 'reporting=nightly totals'")
    return role, reason.strip()


def _known(options: AuditOptions) -> "Mapping[str, str]":
    """What is accepted already; nothing yet where the baseline is to be written for the first time."""
    begun = options.baseline is None or not options.write_baseline or options.baseline.exists()
    return baseline(options, options.baseline if begun else None)


def _report(facts: "Facts", scope: "Declared", options: AuditOptions, known: "Mapping[str, str]") -> "Report":
    from tenantry.rls import RULES, named
    from tenantry.rls import audit as audited

    chosen: Sequence[Rule] = [named(each) for each in options.rule] if options.rule else RULES
    if options.rule:
        known = {key: why for key, why in known.items() if key.partition(": ")[0] in options.rule}
    return audited(facts, scope, rules=chosen, baseline=known)


def _fails(report: "Report", word: Word) -> bool:
    from tenantry.rls import Severity

    return word is not Word.NEVER and bool(report.at_least(Severity[word.name]))


def _write_baseline(options: AuditOptions, report: "Report", known: "Mapping[str, str]") -> None:
    from tenantry.cli.partition_files import write
    from tenantry.rls.baseline import written

    file = options.baseline
    if file is None:  # refused before anything was read
        raise UsageError("--write-baseline writes to the file of --baseline: name one")
    found = (*report.findings, *report.accepted)
    write(file, written(found, known))
    output = Output.of(options)
    output.data({"baseline": str(file), "accepted": len(found), "removed": report.stale})
    output.line(f"Accepted {amount(len(found), 'finding')} in {file}. Write the reason beside each.")


def _remark(options: AuditOptions, report: "Report") -> None:
    """What a person who reads a clean report should know of it."""
    from tenantry.rls.baseline import UNREASONED

    output = Output.of(options)
    if not (options.own or options.declaration or options.role or options.service):
        remark_on_unread(output)
    bare = len({each.table for each in report.findings if each.rule in _WITHOUT_ROW_SECURITY})
    if bare:
        output.note(
            f"row security is off on {amount(bare, 'tenant table')}: keys over all tenants, foreign keys and "
            "views by which rows leak past policies are looked for once it is on, so audit again then"
        )
    unreasoned = sum(each.excuse == UNREASONED for each in report.accepted)
    if unreasoned:
        some = amount(unreasoned, "finding")
        output.note(f"{some} accepted without a reason: write it in {options.baseline}")


def _tell(options: AuditOptions, facts: "Facts", report: "Report") -> None:
    from tenantry.cli.partition_files import write

    form = Form.JSON if options.json else options.format
    output = Output.of(options)
    if form is Form.TEXT:
        lines = _text(output, facts, report)
        write(options.output, "\n".join(lines) + "\n") if options.output else print("\n".join(lines))
        return
    data = _sarif(options, report) if form is Form.SARIF else _data(facts, report)
    text = json.dumps(data, ensure_ascii=False, indent=2 if options.output else None) + "\n"
    write(options.output, text) if options.output else print(text, end="")


def _sarif(options: AuditOptions, report: "Report") -> dict[str, object]:
    from importlib.metadata import version

    from tenantry.rls.sarif import document

    file = options.declaration.as_posix() if options.declaration else ""
    return document(report, version=version("tenantry"), file=file)


def _text(output: Output, facts: "Facts", report: "Report") -> list[str]:
    lines: list[str] = []
    for each in report.findings:
        lines += _finding_lines(output, each)
    for word, some in (("excused", report.excused), ("accepted", report.accepted)):
        lines += [f"{word:<9} {each.key}: {each.excuse}" for each in some]
    lines += [f"stale     {key}: nothing is found any more; take it out" for key in report.stale]
    return [*lines, *([""] if lines else []), *_summary(facts, report)]


def _finding_lines(output: Output, finding: "Finding") -> list[str]:
    word = finding.severity.word
    head = f"{output.styled(f'{word:<9}', _STYLES[word])} {finding.rule}: {finding.subject}"
    sql = [f"{'':<10}{line}" for line in finding.fix_sql.splitlines()]
    return [head, f"{'':<10}{finding.message}", f"{'':<10}{finding.fix}", *sql]


def _summary(facts: "Facts", report: "Report") -> list[str]:
    scope = report.scope
    roles = ", ".join(scope.application) or "nobody"
    counted = [f"{count} {severity.word}" for severity, count in report.counts().items() if count]
    return [
        f"{amount(len(scope.tenant_tables), 'tenant table')} of {facts.server.database}, as {roles}; "
        f"{amount(report.rules, 'rule')}.",
        f"Found {', '.join(counted)}." if counted else "Nothing found.",
    ]


def _data(facts: "Facts", report: "Report") -> dict[str, object]:
    scope, relations = report.scope, facts.relations
    return {
        "server": facts.server.version_text,
        "database": facts.server.database,
        "application": scope.application,
        "tenant_tables": {relations[oid].title: column for oid, column in scope.tenant_tables.items()},
        "service_roles": dict(scope.service),
        "rules": report.rules,
        "counts": {severity.word: count for severity, count in report.counts().items()},
        "findings": [_finding_data(each) for each in report.findings],
        "excused": [_finding_data(each) for each in report.excused],
        "accepted": [_finding_data(each) for each in report.accepted],
        "stale": report.stale,
    }


def _finding_data(finding: "Finding") -> dict[str, object]:
    return {
        "rule": finding.rule,
        "family": finding.family.value,
        "severity": finding.severity.word,
        "subject": finding.subject,
        "table": finding.table,
        "role": finding.role,
        "message": finding.message,
        "mechanism": finding.mechanism,
        "fix": finding.fix,
        "fix_sql": finding.fix_sql,
        "excuse": finding.excuse,
        "key": finding.key,
    }


def _rule_data(rule: "Rule") -> dict[str, object]:
    severity: Severity = rule.severity
    return {
        "rule": rule.name,
        "family": rule.family.value,
        "severity": severity.word,
        "summary": rule.summary,
        "mechanism": rule.mechanism,
        "fix": rule.fix,
        "page": rule.page,
    }
