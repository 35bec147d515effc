"""``tenantry replay parked``: messages that were put aside: look, edit, send back, drop."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenantry.cli.options import command, group
from tenantry.cli.output import Output, amount, moment
from tenantry.cli.replay_app import OfTenant, app, read_at_most, with_replays
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from tenantry.kernel.tenant import TenantId
    from tenantry.replay.desk import ReplayService
    from tenantry.replay.model import ParkedMessage

parked = group()
app.add_typer(parked, name="parked", help="Messages that were put aside: look, edit, send back, drop.")


@dataclass(frozen=True, kw_only=True)
class ParkedOptions(OfTenant):
    """Which ones."""

    replay: Annotated[str | None, typer.Option(metavar="REPLAY", help="Only those of this replay.")] = None
    after: Annotated[str | None, typer.Option(metavar="MESSAGE", help="Those behind this one.")] = None
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="At most so many.")] = 50


@dataclass(frozen=True, kw_only=True)
class OneMessage(OfTenant):
    """Which one."""

    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The id that `parked list` shows.")]


@dataclass(frozen=True, kw_only=True)
class SendBackOptions(OfTenant):
    """Which ones, and with what."""

    messages: Annotated[
        list[str] | None, typer.Argument(metavar="[MESSAGES]...", help="The ids that `parked list` shows.")
    ] = None
    every: Annotated[
        str | None, typer.Option("--all-of", metavar="REPLAY", help="All that this replay parked.")
    ] = None
    fingerprint: Annotated[
        str | None, typer.Option(help="With --all-of: only those that failed in this way.")
    ] = None
    payload: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For one message: its new payload, as bytes of a file."),
    ] = None
    target: Annotated[
        str | None, typer.Option(help="Where they go instead: a URL, a target's name, a broker's address.")
    ] = None


@command(parked, "list", ParkedOptions)
def list_parked(options: ParkedOptions) -> None:
    """What is parked, and why."""
    output, found = (
        Output.of(options),
        with_replays(options, lambda replays, tenant: _page(replays, tenant, options)),
    )
    output.data([message_out(each) for each in found])
    output.table(
        ("message", "rule", "target", "attempts", "fingerprint", "parked", "reason"),
        [
            (
                each.job,
                each.rule,
                each.target,
                each.attempts,
                each.fingerprint,
                moment(each.parked_at),
                each.reason,
            )
            for each in found
        ],
    )
    if not found:
        output.line("None is parked.")
    elif len(found) == options.limit:
        output.note(f"The first {options.limit}; --after {found[-1].job} goes on.")


@command(parked, "show", OneMessage)
def show(options: OneMessage) -> None:
    """One message whole: why it was parked, its headers and its payload."""
    found = with_replays(options, lambda replays, tenant: _one(replays, tenant, options.message))
    output = Output.of(options)
    output.data(message_out(found))
    output.line(f"{found.job}: parked by {found.rule}: {found.reason}")
    output.line(f"replay {found.replay}, target {found.target}, {amount(found.attempts, 'attempt')}")
    for name, value in sorted(found.headers.items()):
        output.line(f"{name}: {value}")
    output.line()
    output.line(found.payload.decode("utf-8", "backslashreplace"))


@command(parked, "send-back", SendBackOptions)
def send_back(options: SendBackOptions) -> None:
    """Put messages back in line in their replay, edited or as they are.

    A message that cannot be sent as it is stays parked, and is told with what to give it."""
    if bool(options.messages) is (options.every is not None):
        raise UsageError("name messages, or --all-of a replay")
    if options.fingerprint is not None and options.every is None:
        raise UsageError("--fingerprint goes with --all-of")
    payload = _payload(options)

    async def do(replays: "ReplayService", tenant: "TenantId") -> _SentBack:
        ids = [*(options.messages or ())]
        if options.every is not None:
            ids = [each.job async for each in _all(replays, tenant, options.every)
                   if options.fingerprint in (None, each.fingerprint)]  # fmt: skip
        return await _sent_back(replays, tenant, [_job(each) for each in ids], (payload, options.target))

    output, found = Output.of(options), with_replays(options, do)
    refused = [{"message": each, "reason": why} for each, why in found.refused.items()]
    output.data({"sent_back": found.sent, "not_parked": found.gone, "refused": refused})
    output.line(f"{amount(found.sent, 'message')} back in line.")
    for message, why in found.refused.items():
        output.note(f"{message} stays parked: {why}")
    if found.refused:
        output.note("Give --target and --payload with a message's id, or `tenantry replay parked drop` it.")
    _tell_gone(output, found.gone)
    if found.refused:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class _SentBack:
    """How many are in line, which are not parked (any more), and which cannot be sent, with why."""

    sent: int
    gone: list[str]
    refused: dict[str, str]


async def _sent_back(
    replays: "ReplayService", tenant: "TenantId", ids: list[Any], given: tuple[bytes | None, str | None]
) -> _SentBack:
    from tenantry.lanes.model import Target
    from tenantry.replay.repairs import Repair, checked_repair

    payload, target = given[0], None if given[1] is None else Target(given[1])
    checked_repair(Repair(payload, target=target))  # what no message may be given is one error
    gone: list[str] = []
    refused: dict[str, str] = {}
    for each in ids:
        try:
            if not await replays.send_back(tenant, each, payload=payload, target=target):
                gone.append(each)
        except InvalidValue as why:
            refused[each] = str(why)
    return _SentBack(len(ids) - len(gone) - len(refused), gone, refused)


@command(parked, "drop", OneMessage)
def drop(options: OneMessage) -> None:
    """End a parked message: it is never sent."""

    async def do(replays: "ReplayService", tenant: "TenantId") -> bool:
        return await replays.drop(tenant, _job(options.message))

    output, done = Output.of(options), with_replays(options, do)
    output.data({"dropped": done})
    if done:
        output.line(f"{options.message} is dropped.")
    _tell_gone(output, [] if done else [options.message])


def message_out(message: "ParkedMessage") -> dict[str, Any]:
    """A parked message as JSON has it; the payload as text where it is UTF-8, else in base64."""
    from base64 import b64encode

    try:
        payload: dict[str, Any] = {"payload": message.payload.decode()}
    except UnicodeDecodeError:
        payload = {"payload_base64": b64encode(message.payload).decode()}
    return {
        "message": message.job,
        "replay": message.replay,
        "target": message.target,
        "rule": message.rule,
        "reason": message.reason,
        "fingerprint": message.fingerprint,
        "attempts": message.attempts,
        "parked_at": message.parked_at,
        "content_type": message.content_type,
        "headers": dict(message.headers),
        **payload,
    }


def _tell_gone(output: Output, gone: list[str]) -> None:
    if gone:
        output.note("Not parked (any more): " + ", ".join(gone))
        raise typer.Exit(1)


def _payload(options: SendBackOptions) -> bytes | None:
    if options.payload is None:
        return None
    if len(options.messages or ()) != 1:
        raise UsageError("--payload is for one message")
    from tenantry.queue.admission import DEFAULT_LIMITS

    return read_at_most("--payload", options.payload, DEFAULT_LIMITS.payload)


def _job(text: str) -> Any:
    from uuid import UUID

    from tenantry.queue.model import JobId

    try:
        return JobId(str(UUID(text)))
    except ValueError:
        raise InvalidValue("MESSAGE", text, "an id that `tenantry replay parked list` shows") from None


async def _page(
    replays: "ReplayService", tenant: "TenantId", options: ParkedOptions
) -> "list[ParkedMessage]":
    from tenantry.replay.model import ReplayId

    replay = None if options.replay is None else ReplayId(options.replay)
    after = None if options.after is None else _job(options.after)
    if replay is not None:
        await replays.replay(tenant, replay)  # a slip of the pen is not "none is parked"
    return await replays.parked(tenant, replay, limit=options.limit, after=after)


async def _all(replays: "ReplayService", tenant: "TenantId", replay: str) -> "Any":
    from tenantry.replay.model import ReplayId

    last = None
    await replays.replay(tenant, ReplayId(replay))
    while True:
        page = await replays.parked(tenant, ReplayId(replay), limit=1_000, after=last)
        for each in page:
            yield each
        if len(page) < 1_000:
            return
        last = page[-1].job


async def _one(replays: "ReplayService", tenant: "TenantId", text: str) -> "ParkedMessage":
    job = _job(text)
    found = await replays.parked_message(tenant, job)
    if found is None:
        raise UsageError(f"{text} is not parked (any more)")
    return found
