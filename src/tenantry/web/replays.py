"""What tenants do with replays: plan, start, order, follow; and with what was parked."""

import binascii
from asyncio import sleep as wait_for
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from tenantry.config.syntax import decoded, parse_json
from tenantry.config.validation import Described, RegistryErrors
from tenantry.kernel.errors import DependencyError, InvalidValue, SourceUnavailable
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.queue.model import JobId
from tenantry.replay.desk import NotNow, ReplayService, UnknownReplay
from tenantry.replay.lifecycle import ENDED
from tenantry.replay.model import ReplayId, ReplayState, ReplayView
from tenantry.replay.progress import Progress, encoded
from tenantry.replay.specs import decode_spec, spec_from_json
from tenantry.web import bodies, wire_replays
from tenantry.web.calls import Answer, Call
from tenantry.web.parameters import is_uuid, limit_of, parameters, state_of
from tenantry.web.problems import KINDS, Problem, Refused, of_invalid, refused

EVENT_STREAM: Final = "text/event-stream"
TELL_EVERY: Final[Seconds] = 1.0
FOLLOW_FOR: Final[Seconds] = 300.0
"""Then the stream ends, and the browser comes back by itself: no node keeps a connection for ever."""

_FRESH: Final = {"cache-control": "no-store"}

_Order = Callable[[ReplayService, TenantId, ReplayId], Awaitable[ReplayView]]


async def plan_replay(call: Call) -> Answer:
    """`POST /v1/replays`"""
    bodies.media_type(call)
    parameters(call, ())
    body = await bodies.read(call, call.services.limits.job)
    replays = _service(call)
    try:
        planned = await replays.plan(spec_from_json(call.tenant, body))
    except (InvalidValue, RegistryErrors) as error:
        raise Refused(_of_faults(error)) from None
    except SourceUnavailable as error:
        raise _away(error) from None
    answer = wire_replays.plan_out(planned, replays.progress_of(planned.view))
    return Answer(201, answer, {"location": answer.status_url, **_FRESH})


async def list_replays(call: Call) -> Answer:
    """`GET /v1/replays`"""
    given = parameters(call, ("state", "limit"))
    replays = _service(call)
    state = state_of(given, ReplayState)
    states = None if state is None else frozenset({state})
    found = await replays.replays(call.tenant, states=states, limit=limit_of(given))
    return Answer(200, wire_replays.ReplayList([replays.progress_of(each) for each in found]), _FRESH)


async def get_replay(call: Call) -> Answer:
    """`GET /v1/replays/{id}`"""
    parameters(call, ())
    return Answer(200, await _progress(call), _FRESH)


async def follow_replay(call: Call) -> Answer:
    """`GET /v1/replays/{id}/events`"""
    parameters(call, ())
    first = await _progress(call)
    return Answer(200, None, _FRESH, EVENT_STREAM, stream=_events(call, first))


def ordering(order: _Order) -> Callable[[Call], Awaitable[Answer]]:
    """`POST /v1/replays/{id}/ORDER`"""

    async def give(call: Call) -> Answer:
        bodies.nothing_expected(call)
        parameters(call, ())
        return await _ordered(call, order)

    return give


async def rebudget(call: Call) -> Answer:
    """`PUT /v1/replays/{id}/budget`"""
    bodies.media_type(call)
    parameters(call, ())
    body = await bodies.read(call, call.services.limits.job)
    try:
        read = parse_json(decoded(body, wanted="a budget"))
        spec = decode_spec(call.tenant, {"source": {"kind": "dead_letters"}, "budget": read})
    except (InvalidValue, RegistryErrors) as error:
        raise Refused(_of_faults(error, within="budget")) from None
    return await _ordered(call, lambda replays, *who: replays.rebudget(*who, spec.budget))


async def list_parked(call: Call) -> Answer:
    """`GET /v1/parked`"""
    given = parameters(call, ("replay", "limit", "after"))
    limit = limit_of(given)
    after = None if "after" not in given else JobId(_checked(given["after"], "after"))
    replay = None if "replay" not in given else ReplayId(_checked(given["replay"], "replay"))
    found = await _service(call).parked(call.tenant, replay, limit=limit, after=after)
    within = "" if replay is None else f"&replay={replay}"
    further = f"/v1/parked?limit={limit}&after={found[-1].job}{within}" if len(found) == limit else None
    out = [wire_replays.parked_out(each) for each in found]
    return Answer(200, wire_replays.ParkedList(out, further), _FRESH)


async def get_parked(call: Call) -> Answer:
    """`GET /v1/parked/{id}`"""
    parameters(call, ())
    found = await _service(call).parked_message(call.tenant, _job(call))
    if found is None:
        raise _not_parked()
    return Answer(200, wire_replays.parked_out(found), _FRESH)


async def send_back(call: Call) -> Answer:
    """`POST /v1/parked/{id}/send-back`"""
    bodies.media_type(call)
    parameters(call, ())
    payload, given = _new_content(await bodies.read(call, call.services.limits.job))
    job, target = _job(call), None if given.target is None else Target(given.target)
    try:
        done = await _service(call).send_back(
            call.tenant, job, payload=payload, headers=given.headers, target=target
        )
    except InvalidValue as error:
        raise Refused(of_invalid(error)) from None
    if not done:
        raise _not_parked()
    return Answer(200, wire_replays.ParkedDone(job, "sent back"))


async def drop_parked(call: Call) -> Answer:
    """`POST /v1/parked/{id}/drop`"""
    bodies.nothing_expected(call)
    parameters(call, ())
    job = _job(call)
    if not await _service(call).drop(call.tenant, job):
        raise _not_parked()
    return Answer(200, wire_replays.ParkedDone(job, "dropped"))


async def _events(call: Call, record: Progress) -> AsyncIterator[bytes]:
    """A record whenever it has changed, until the replay has ended. While the store is away nothing is
    told."""
    began, clock, told = call.services.clock.monotonic(), call.services.clock, ""
    yield f"retry: {int(TELL_EVERY * 2000)}\n\n".encode()
    while True:
        text = encoded(record)
        if text != told:
            told = text
            yield f"event: progress\ndata: {text}\n\n".encode()
        else:
            yield b": still here\n\n"
        if record.state in ENDED:
            yield b"event: end\ndata: {}\n\n"
            return
        if clock.monotonic() - began > FOLLOW_FOR:
            return
        await wait_for(TELL_EVERY)
        try:
            record = await _progress(call)
        except DependencyError:
            continue


async def _ordered(call: Call, order: _Order) -> Answer:
    replays, replay = _service(call), _replay(call)
    try:
        view = await order(replays, call.tenant, replay)
    except UnknownReplay:
        raise _no_such_replay() from None
    except NotNow as error:
        detail = f"{error}."
        raise refused("not-now", detail[0].upper() + detail[1:], state=error.state.value) from None
    return Answer(200, replays.progress_of(view), _FRESH)


async def _progress(call: Call) -> Progress:
    try:
        return await _service(call).progress(call.tenant, _replay(call))
    except UnknownReplay:
        raise _no_such_replay() from None


def _service(call: Call) -> ReplayService:
    replays = call.services.replays
    if replays is None:
        raise refused("not-found", "This node serves no replays.")
    return replays


def _replay(call: Call) -> ReplayId:
    text = call.path_value("id")
    if not is_uuid(text):
        raise _no_such_replay()
    return ReplayId(text)


def _job(call: Call) -> JobId:
    text = call.path_value("id")
    if not is_uuid(text):
        raise _not_parked()
    return JobId(text)


def _no_such_replay() -> Refused:
    return refused(
        "not-found", "There is no such replay of this tenant. Those that ended are kept for 30 days."
    )


def _not_parked() -> Refused:
    return refused(
        "not-found", "There is no such parked message of this tenant, or it is not parked any more."
    )


def _away(error: SourceUnavailable) -> Refused:
    return refused("source-unavailable", f"{error}. The plan was not made; try again later.")


def _of_faults(error: InvalidValue | RegistryErrors, *, within: str = "") -> Problem:
    """All faults of a document as one problem. ``within``: the key under which what was sent was read."""
    faults = error.errors if isinstance(error, RegistryErrors) else (error,)
    entries = [entry for each in faults for entry in _entries(each)]
    for entry in entries if within else ():
        entry["path"] = entry["path"].removeprefix(within).removeprefix(".")
    return Problem(KINDS["invalid-value"], str(error), {"errors": entries})


def _entries(error: InvalidValue) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = of_invalid(error).members["errors"]  # type: ignore[assignment]
    return entries


def _new_content(body: bytes) -> tuple[bytes | None, wire_replays.SendBack]:
    try:
        read = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        given = msgspec.json.decode(body, type=wire_replays.SendBack)
    except msgspec.MsgspecError as error:
        raise Refused(
            of_invalid(InvalidValue("body", Described("this"), f"a JSON object as documented ({error})"))
        ) from None
    if given.payload_base64 is not None and "payload" in read:
        raise Refused(
            of_invalid(InvalidValue("payload", Described("two payloads"), "payload or payload_base64"))
        )
    if given.payload_base64 is not None:
        return _raw(given.payload_base64), given
    return (bytes(read["payload"]) if "payload" in read else None), given


def _raw(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(of_invalid(InvalidValue("payload_base64", Described("this text"), "base64"))) from None


def _checked(text: str, name: str) -> str:
    if not is_uuid(text):
        raise refused("invalid-parameter", f"{name}: {text[:40]!r} is not accepted; expected an id.")
    return text
