"""``tenantry submit``: one job, or a file of them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tenantry.cli.options import command, group
from tenantry.cli.output import Output, amount
from tenantry.cli.submit_options import SubmitOptions
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from tenantry.cli.doors import Door, Standing
    from tenantry.queue.model import JobClass, NewJob

app = group()


@command(app, "submit", SubmitOptions)
def submit(options: SubmitOptions) -> None:
    """Submit one job to TARGET, or many with --jobs FILE.

    As a tenant: over the API, with its key. As the operator: with --tenant, straight into the database. With
    --jobs it comes back as often as it is told to (429, Retry-After) until all are accepted."""
    from tenantry.cli.eventloop import run

    _check(options)
    run(_submit_one(options) if options.jobs is None else _submit_many(options, options.jobs))


def _check(options: SubmitOptions) -> None:
    if (options.target is None) == (options.jobs is None):
        raise UsageError("give either a TARGET, for one job, or --jobs FILE, for many")
    if options.data is not None and options.file is not None:
        raise UsageError("give either --data or --file")
    usual = SubmitOptions(target="", api_key=None)
    alone = ("data", "file", "job_class", "delay", "key", "ordering_key", "cost", "content_type", "wait")
    for name in alone:
        if options.jobs is not None and getattr(options, name) != getattr(usual, name):
            option = "--class" if name == "job_class" else "--" + name.replace("_", "-")
            raise UsageError(f"{option} is for one job; with --jobs each line says it for itself")


async def _submit_one(options: SubmitOptions) -> None:
    from tenantry.cli.doors import opened_door
    from tenantry.kernel.verdict import Refusal

    output, job = Output.of(options), _job(options)
    async with opened_door(options) as door:
        answer = await door.submit([job])
        if isinstance(answer, Refusal):
            _tell_refused(output, answer)
            raise typer.Exit(1)
        [sent] = answer
        if options.wait:
            await _await_end(output, door, sent.id)
            return
    output.data({"id": sent.id, "existing": sent.existing})
    output.line(sent.id)
    if sent.existing:
        output.note("It was submitted before, under the same idempotency key.")


def _tell_refused(output: Output, refusal: object) -> None:
    from tenantry.kernel.verdict import Refusal

    assert isinstance(refusal, Refusal)
    output.data(
        {"refused": {"rule": refusal.rule, "detail": refusal.detail, "retry_after": refusal.retry_after}}
    )
    when = "" if refusal.retry_after is None else f" Come back in {refusal.retry_after:.1f} s."
    output.note(f"Refused by {refusal.rule.value}: {refusal.detail}.{when}")


async def _await_end(output: Output, door: "Door", job: str) -> None:
    from tenantry.cli.progress import waiting
    from tenantry.cli.sending import until_ended
    from tenantry.queue.model import JobState

    standing: Standing | None = None
    with waiting(output, f"{job} …") as say:
        async for standing in until_ended(door, job):
            say(f"{job} is {standing.state.value}, attempts so far: {standing.attempts}")
    assert standing is not None
    output.data(
        {"id": job, **{name: getattr(standing, name) for name in ("state", "attempts", "reason", "status")}}
    )
    because = f": {standing.reason}" if standing.reason else ""
    output.line(f"{job} {standing.state.value} after {amount(standing.attempts, 'attempt')}{because}")
    if standing.state is not JobState.DELIVERED:
        raise typer.Exit(1)


async def _submit_many(options: SubmitOptions, name: str) -> None:
    from tenantry.cli.doors import opened_door
    from tenantry.cli.progress import sending
    from tenantry.cli.sending import Sender

    output, numbers, jobs = Output.of(options), *_read(_lines(name))
    async with opened_door(options) as door:
        with sending(output, len(jobs)) as told:
            sender = Sender(door, lambda position: f"line {numbers[position]}", told)
            await sender.send(jobs, batch=options.batch)
    tally = sender.tally
    output.data(
        {"accepted": tally.accepted, "existing": tally.existing, "came_back": tally.refused, "ids": tally.ids}
    )
    again = f", {tally.existing:,} of them submitted before" if tally.existing else ""
    came_back = f" Came back {amount(tally.refused, 'time')} when told to." if tally.refused else ""
    output.line(f"{amount(tally.accepted, 'job')} accepted{again}.{came_back}")


def _job(options: SubmitOptions) -> "NewJob":
    from tenantry.lanes.model import Target
    from tenantry.queue.model import NewJob

    assert options.target is not None
    return NewJob(
        target=Target(options.target),
        payload=_payload(options),
        job_class=_class(options.job_class),
        delay_for=options.delay,
        cost=options.cost,
        ordering_key=options.ordering_key,
        idempotency_key=options.key,
        content_type=options.content_type or "application/json",
    )


def _payload(options: SubmitOptions) -> bytes:
    """The bytes as given; JSON is checked where that is what they are said to be."""
    if options.file is not None:
        payload = _bytes(options.file, "--file")
    else:
        payload = (options.data if options.data is not None else "null").encode()
    if options.content_type in (None, "application/json"):
        _check_json(payload)
    return payload


def _check_json(payload: bytes) -> None:
    from tenantry.web.parsing import check_json
    from tenantry.web.problems import Refused

    try:
        check_json(payload)
    except Refused as error:
        hint = f"{error.problem.detail} Anything else goes with --content-type, such as text/plain."
        raise InvalidValue("payload", payload[:40], "JSON", hint) from None


def _class(text: str) -> "JobClass":
    from tenantry.queue.model import JobClass

    names = {each.name.lower(): each for each in JobClass}
    if text not in names:
        raise InvalidValue("--class", text, "one of " + ", ".join(names))
    return names[text]


def _lines(name: str) -> list[tuple[int, bytes]]:
    """The lines that hold something, with their numbers from 1."""
    lines = enumerate(_bytes(name, "--jobs").split(b"\n"), start=1)
    return [(number, line) for number, line in lines if line.strip()]


def _read(lines: list[tuple[int, bytes]]) -> "tuple[list[int], list[NewJob]]":
    """Each job's line, and the jobs. All are read before one is sent: a bad line sends none."""
    from tenantry.web.parsing import job_of
    from tenantry.web.problems import Refused

    jobs = []
    for number, line in lines:
        try:
            jobs.append(job_of(line, f"line {number}"))
        except Refused as error:
            raise UsageError(error.problem.detail) from None
    return [number for number, _ in lines], jobs


def _bytes(name: str, path: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {name} cannot be read: {error.strerror}") from error
