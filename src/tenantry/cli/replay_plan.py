"""``tenantry replay plan``: what a replay would meet, before anything is taken."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tenantry.cli.options import command
from tenantry.cli.output import Output, amount
from tenantry.cli.replay_app import OfTenant, app, read_at_most, with_replays
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenantry.kernel.tenant import TenantId
    from tenantry.replay.desk import Planned, ReplayService
    from tenantry.replay.model import ReplaySpec
    from tenantry.replay.plan import Group, Report, Share


_LONGEST_SPEC: Final = 1_048_576
"""Bytes of the file: much more than is kept of a spec, since people write comments."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions(OfTenant):
    """What is to be replayed, and how."""

    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The whole spec, in TOML or JSON; options below win over it."),
    ] = None
    source: Annotated[
        str | None,
        typer.Option(
            metavar="KIND[:CONNECTION/PLACE]",
            help="dead_letters (the tenant's own; unless said), or jsonl, table, rabbitmq, kafka, sqs, nats "
            "with a connection and what is read there: rabbitmq:main/orders.dlq.",
        ),
    ] = None
    source_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An option of the source's kind; again for each."),
    ] = None
    target: Annotated[str | None, typer.Option(help="Send there, instead of where each message failed.")] = (
        None
    )
    error_class: Annotated[
        list[str] | None,
        typer.Option(help="Only messages that failed so (timeout, http_503); again for more."),
    ] = None
    from_target: Annotated[
        list[str] | None, typer.Option(help="Only messages that failed at this target; again for more.")
    ] = None
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only those that failed then or later: 2026-11-30T08:00:00Z."),
    ] = None
    before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only those that failed before then.")
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Only those with this header; again for more."),
    ] = None
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=JSON",
            help="Only those whose payload has this: '$.order.kind=\"gift\"'; again for more.",
        ),
    ] = None
    on_unknown: Annotated[
        str | None,
        typer.Option(help="A message that a target may have got already: send it again, or hold it."),
    ] = None
    again: Annotated[bool, typer.Option("--again", help="Also what is known to be delivered.")] = False
    sample: Annotated[
        float | None,
        typer.Option(help="Run this share first, above 0 and at most 1, then wait for `continue`."),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Started, it only reads and counts; nothing is taken or sent.")
    ] = False
    messages: Annotated[int | None, typer.Option(min=1, help="Budget: messages taken at most.")] = None
    failures: Annotated[int | None, typer.Option(min=1, help="Budget: dead and parked at most.")] = None
    note: Annotated[str | None, typer.Option(help="Why, for those who look at it later.")] = None


@command(app, "plan", PlanOptions)
def plan(options: PlanOptions) -> None:
    """What a replay would meet: how many messages, of which errors, to which targets, how old; how many were
    delivered already, would break a quota or cannot be sent; and how long it may take.

    Nothing is consumed. The plan's id is what `tenantry replay start` runs, within a day.
    """

    async def look(replays: "ReplayService", tenant: "TenantId") -> "Planned":
        return await replays.plan(_spec(options, tenant))

    output, planned = Output.of(options), with_replays(options, look)
    output.data({"replay": planned.view.id, "report": planned.report})
    _show(output, planned.report)
    output.line()
    output.line(
        f"Plan {planned.view.id}. To run it: tenantry replay start -t {options.tenant} {planned.view.id}"
    )


def _spec(options: PlanOptions, tenant: "TenantId") -> "ReplaySpec":
    from tenantry.config.validation import RegistryErrors
    from tenantry.replay.specs import decode_spec

    document = _document(options.spec)
    _overlay(document, _given(options))
    try:
        return decode_spec(tenant, document)
    except (InvalidValue, RegistryErrors) as error:
        raise UsageError(str(error)) from None


def _document(path: Path | None) -> dict[str, Any]:
    """The spec's file as plain objects; a spec of one's own dead letters where there is none."""
    from tenantry.config.syntax import decoded, parse_json, parse_toml

    if path is None:
        return {"source": {"kind": "dead_letters"}}
    try:
        text = decoded(read_at_most("--spec", path, _LONGEST_SPEC), wanted="a replay")
        read = parse_json(text) if path.suffix == ".json" else parse_toml(text)
    except InvalidValue as error:
        raise UsageError(f"--spec {path}: {error}") from None
    if not isinstance(read, dict):
        raise UsageError(f"--spec {path}: expected a table of keys, found {type(read).__name__}")
    return read


def _overlay(document: dict[str, Any], given: dict[str, Any]) -> None:
    for key, value in given.items():
        if isinstance(value, dict) and isinstance(document.get(key), dict):
            document[key] = {**document[key], **value}
        else:
            document[key] = value


def _given(options: PlanOptions) -> dict[str, Any]:
    """What the options say, as the spec's document writes it."""
    plain = {
        "target": options.target,
        "on_unknown": options.on_unknown,
        "again": options.again or None,
        "sample": options.sample,
        "dry_run": options.dry_run or None,
        "note": options.note,
        "source": _source(options),
        "filters": _filters(options),
        "budget": _said({"messages": options.messages, "failures": options.failures}),
    }
    return _said(plain)


def _said(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if value is not None and value not in ({}, [])}


def _source(options: PlanOptions) -> dict[str, Any]:
    from tenantry.replay.connections import KINDS

    given: dict[str, Any] = {}
    if options.source is not None:
        kind, _, rest = options.source.partition(":")
        if kind in KINDS and not rest:
            raise InvalidValue("--source", options.source, f"{kind}:CONNECTION/PLACE, or dead_letters alone")
        if kind in KINDS and options.connections_file is None:
            raise UsageError(
                f"--source {options.source}: in which file are connections? --connections-file FILE"
            )
        connection, slash, place = rest.partition("/")
        given = {"kind": kind, **({"connection": connection, "place": place} if slash else {"place": rest})}
    if options.source_option:
        given["options"] = dict(_pair("--source-option", each) for each in options.source_option)
    return given


def _filters(options: PlanOptions) -> dict[str, Any]:
    return _said(
        {
            "error_classes": options.error_class,
            "targets": options.from_target,
            "failed_from": options.since,
            "failed_before": options.before,
            "headers": dict(_pair("--header", each) for each in options.header or ()),
            "json": [_condition(each) for each in options.where or ()],
        }
    )


def _pair(path: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidValue(path, text, "NAME=VALUE")
    return name, value


def _condition(text: str) -> dict[str, str]:
    """``PATH=JSON``; a path may hold ``=`` itself, so the last one that leaves JSON behind it is meant."""
    for at in range(len(text) - 1, 0, -1):
        if text[at] == "=" and _is_json(text[at + 1 :]):
            return {"path": text[:at].rstrip("="), "equals_json": text[at + 1 :]}
    raise InvalidValue("--where", text, "PATH=JSON, such as '$.order.kind=\"gift\"' or $.count=3")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


# -- the report for people ----------------------------------------------------------------------------------


def _show(output: Output, report: "Report") -> None:
    output.line(output.styled(_head(report), "bold"))
    output.line(f"meant by the filters: {_share(report.meant)}")
    for title, groups in (
        ("by error", report.by_class),
        ("by target", report.by_target),
        ("by age", report.by_age),
    ):
        _table(output, title, groups)
    for share, said in (
        (report.delivered, "delivered already: they count as duplicates"),
        (report.elsewhere, "are in another replay, or of unknown end"),
        (report.broken, "cannot be sent: they will be parked"),
    ):
        if share.seen:
            output.line(f"{_share(share)} {said}")
    for each in report.reasons:
        output.line(f"  {each.name}: {_share(each.share)}")
    for quota in report.over:
        over = (
            f"{quota.over_low:,}"
            if quota.over_low == quota.over_high
            else f"{quota.over_low:,} to {quota.over_high:,}"
        )
        output.line(
            f"over quota {quota.quota}: {over} would have to wait; {quota.left:,} of {quota.limit:,} are left"
        )
    output.line(_duration(report))


def _head(report: "Report") -> str:
    if report.count is None:
        found = "The source cannot count its messages"
    else:
        found = f"{'' if report.counted_exactly else 'About '}{amount(report.count, 'message')}"
    frozen = "; what comes later is not in it" if report.frozen else ""
    looked = (
        "all were looked at"
        if report.whole
        else f"{report.sample:,} were looked at, shares ± {report.error:.0%}"
    )
    return f"{found}{frozen}; {looked}."


def _share(share: "Share") -> str:
    if share.count is None or share.low is None or share.high is None:
        return f"{share.part:.0%}"
    if share.low == share.high:
        return f"{share.count:,}"
    return f"about {share.count:,} ({share.low:,} to {share.high:,})"


def _table(output: Output, title: str, groups: "Sequence[Group]") -> None:
    if groups:
        output.line()
        output.table((title, "messages"), [(each.name, _share(each.share)) for each in groups])


def _duration(report: "Report") -> str:
    from tenantry.replay.progress import span

    took = report.duration
    if took.low is None or took.high is None:
        return f"how long it takes cannot be said: {took.why}"
    low, high = span(took.low), span(took.high)
    between = f"about {low}" if low == high else f"{low} to {high}"
    if took.high < 1:
        between = "less than a second"
    return f"it takes {between}, at the pace that the lanes have now"
