"""What tenants do with jobs."""

from asyncio import sleep as give_way
from dataclasses import replace
from typing import Final

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import identifier
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.queue.events import JobsCancelled
from tenantry.queue.explain import explain, facts_of, pool_of
from tenantry.queue.model import Accepted, JobId, JobState, NewJob
from tenantry.web import bodies, parsing, wire
from tenantry.web.calls import Answer, Call
from tenantry.web.headers import idempotency_key, no_idempotency_key
from tenantry.web.parameters import is_uuid, limit_of, parameters, state_of
from tenantry.web.problems import Problem, Refused, of_invalid, of_refusal, refused

RETENTION: Final = "Ended jobs are kept for seven days, unless the operator says otherwise."
SLICE: Final = 200
"""So many rows are read at a stretch; then others have their turn."""

BULK: Final = "/v1/bulk"


async def submit_job(call: Call) -> Answer:
    """`POST /v1/jobs`"""
    bodies.media_type(call)
    key = idempotency_key(call)
    job = _with_key(_single(await bodies.read(call, call.services.limits.job)), key)
    try:
        answer = await call.services.intake.submit(call.tenant, [job])
    except InvalidValue as error:
        raise Refused(of_invalid(error, within="jobs[0].")) from None
    if isinstance(answer, Refusal):
        raise Refused(_without_row(of_refusal(answer)))
    [accepted] = await _accepted(call, [job], answer)
    return Answer(202, accepted, {"location": accepted.status_url})


async def submit_batch(call: Call) -> Answer:
    """`POST /v1/batches`"""
    bodies.media_type(call)
    no_idempotency_key(call)
    rows = parsing.read_rows(await bodies.read(call, call.services.limits.batch))
    jobs: list[NewJob] = []
    for start in range(0, len(rows), SLICE):
        jobs.extend(parsing.each(rows, start, start + SLICE))
        await give_way(0)
    answer = await call.services.intake.submit(call.tenant, jobs)
    if isinstance(answer, Refusal):
        raise Refused(of_refusal(answer, bulk_url=BULK if answer.rule is Rule.BOUND else None))
    return Answer(202, wire.JobsAccepted(await _accepted(call, jobs, answer)))


async def get_job(call: Call) -> Answer:
    """`GET /v1/jobs/{id}`"""
    parameters(call, ())
    view = await call.services.store.job(call.tenant, _job_id(call))
    if view is None:
        raise _no_such_job()
    return Answer(200, wire.job_out(view))


async def list_jobs(call: Call) -> Answer:
    """`GET /v1/jobs`"""
    given = parameters(call, ("state", "limit"))
    state = state_of(given, JobState)
    views = await call.services.store.jobs(call.tenant, state=state, limit=limit_of(given))
    return Answer(200, wire.JobList([wire.job_out(view) for view in views]))


async def explain_job(call: Call) -> Answer:
    """`GET /v1/jobs/{id}/explanation`"""
    parameters(call, ())
    job, services = _job_id(call), call.services
    pool = pool_of(call.tenant, services.directory)
    facts = await services.store.facts(call.tenant, job, pool=pool)
    if facts is not None:
        reasons = wire.reasons_out(explain(facts_of(facts, services.directory)))
        return Answer(200, wire.Explanation(job, facts.state, reasons))
    view = await services.store.job(call.tenant, job)  # one that has ended waits for nothing
    if view is None:
        raise _no_such_job()
    return Answer(200, wire.Explanation(job, view.state, []))


async def cancel_job(call: Call) -> Answer:
    """`POST /v1/jobs/{id}/cancel`"""
    bodies.nothing_expected(call)
    parameters(call, ())
    job = _job_id(call)
    state = await call.services.store.cancel(call.tenant, job)
    if state is None:
        raise _no_such_job()
    if state is not JobState.CANCELLED:
        detail = f"The job is {state.value}. Only a job that is waiting, delayed or parked can be cancelled."
        raise refused("not-cancellable", detail, state=state.value)
    tier = call.services.directory.tier_of(call.tenant)
    if tier is not None:
        call.services.events(JobsCancelled(call.tenant, tier.name, 1))
    return Answer(200, wire.JobCancelled(job, state))


async def _accepted(call: Call, jobs: list[NewJob], answer: Accepted) -> list[wire.JobAccepted]:
    """One entry a job. Only the states of those that an idempotency key found must be asked for: one look."""
    found = {answer.ids[position] for position in answer.existing}
    states = await call.services.store.states(call.tenant, found) if found else {}
    entries = []
    for position, (job, id) in enumerate(zip(jobs, answer.ids, strict=True)):
        existing = position in answer.existing
        state = states.get(id, JobState.WAITING) if existing else _born(job)
        entries.append(wire.JobAccepted(id, state.value, wire.job_url(id), existing))
    return entries


def _born(job: NewJob) -> JobState:
    return JobState.DELAYED if job.delay_for > 0 else JobState.WAITING


def _single(body: bytes) -> NewJob:
    try:
        return parsing.read_job(body)
    except InvalidValue as error:
        raise Refused(of_invalid(error)) from None


def _with_key(job: NewJob, key: str | None) -> NewJob:
    if key is None:
        return job
    if job.idempotency_key not in (None, key):
        detail = "The Idempotency-Key header and the body's idempotency_key differ; give one of them."
        raise refused("invalid-parameter", detail)
    return replace(job, idempotency_key=key)


def _without_row(problem: Problem) -> Problem:
    """A single job is no row of a batch: its detail does not name one."""
    return replace(problem, detail=problem.detail.removeprefix("jobs[0]: "))


def _job_id(call: Call) -> JobId:
    text = call.path_value("id")
    if not is_uuid(text):
        raise _no_such_job()
    return JobId(text)


def _no_such_job() -> Refused:
    return refused("not-found", f"There is no such job of this tenant. {RETENTION}")


def checked_id(text: str) -> str | None:
    """``text`` if it may be an id at all."""
    try:
        return identifier(text, path="id")
    except InvalidValue:
        return None
