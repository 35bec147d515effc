"""Bulk sets: more jobs than the bound, stored once and fed in as room appears. Submit, then poll."""

from asyncio import sleep as give_way
from collections.abc import AsyncIterator
from dataclasses import replace

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.verdict import Refusal
from tenantry.queue.model import NewJob
from tenantry.web import bodies, parsing, wire
from tenantry.web.bodies import NDJSON
from tenantry.web.calls import JSON, Answer, Call
from tenantry.web.headers import no_idempotency_key
from tenantry.web.jobs import SLICE, checked_id
from tenantry.web.parameters import parameters
from tenantry.web.problems import Problem, Refused, of_invalid, of_refusal, refused, refused_with


async def submit_bulk(call: Call) -> Answer:
    """`POST /v1/bulk`"""
    form = bodies.media_type(call, (JSON, NDJSON))
    no_idempotency_key(call)
    jobs = [job async for job in (_of_lines(call) if form == NDJSON else _of_array(call))]
    answer = await call.services.intake.submit_bulk(call.tenant, jobs)
    if isinstance(answer, Refusal):
        raise Refused(of_refusal(answer))
    stored = wire.bulk_out(answer)
    return Answer(202, stored, {"location": stored.status_url})


async def get_bulk(call: Call) -> Answer:
    """`GET /v1/bulk/{id}`"""
    parameters(call, ())
    bulk_id = checked_id(call.path_value("id"))
    found = None if bulk_id is None else await call.services.store.bulk(call.tenant, bulk_id)
    if found is None:
        raise refused("not-found", "There is no such bulk set of this tenant.")
    return Answer(200, wire.bulk_out(found))


async def _of_array(call: Call) -> AsyncIterator[NewJob]:
    rows = parsing.read_rows(await bodies.read(call, call.services.limits.bulk))
    for start in range(0, len(rows), SLICE):
        for job in parsing.each(rows, start, start + SLICE):
            yield job
        await give_way(0)


async def _of_lines(call: Call) -> AsyncIterator[NewJob]:
    """Each line is read as it arrives: what is held is jobs, never the body beside them."""
    rest, row, number = b"", 0, 0
    async for chunk in bodies.chunks(call, call.services.limits.bulk):
        whole, rest = parsing.lines(rest, chunk)
        _check_length(call, rest, number + len(whole) + 1)
        for line in whole:
            number += 1
            if line.strip():
                yield _job_of_line(call, line, row, number)
                row += 1
    if rest.strip():
        yield _job_of_line(call, rest, row, number + 1)


def _job_of_line(call: Call, line: bytes, row: int, number: int) -> NewJob:
    _check_length(call, line, number)
    try:
        return parsing.read_line(line, row)
    except InvalidValue as error:
        raise Refused(of_invalid(error, line=number)) from None
    except Refused as refusal:
        raise Refused(_on_line(refusal.problem, number)) from None


def _on_line(problem: Problem, number: int) -> Problem:
    return replace(problem, members={**problem.members, "line": number})


def _check_length(call: Call, line: bytes, number: int) -> None:
    limit = call.services.limits.line
    if len(line) > limit:
        detail = f"Line {number} is longer than the {limit:,} bytes that one job may have."
        raise refused_with("body-too-large", detail, bodies.CLOSE, limit=limit)
