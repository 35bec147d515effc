"""``tenantry jobs``: the operator's view of jobs, straight from the database."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenantry.cli.desk_runs import at_desk, for_tenant
from tenantry.cli.options import OnDatabase, command, group
from tenantry.cli.output import Output, amount, moment
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from tenantry.cli.desk import Desk
    from tenantry.kernel.tenant import TenantId
    from tenantry.queue.explain import Facts
    from tenantry.queue.model import JobView

app = group("Look at jobs, as the operator.")

TenantOption = Annotated[str, typer.Option("--tenant", "-t", envvar="TENANTRY_TENANT", help="Whose.")]
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]


@dataclass(frozen=True, kw_only=True)
class OfTenant(OnDatabase):
    """One tenant's."""

    tenant: TenantOption


@dataclass(frozen=True, kw_only=True)
class ListOptions(OfTenant):
    """Which jobs."""

    state: Annotated[
        str | None, typer.Option(help="Only waiting, delayed, running, delivered, dead or cancelled ones.")
    ] = None
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="At most so many, the newest first.")] = 50


@dataclass(frozen=True, kw_only=True)
class OneJob(OfTenant):
    """One job."""

    job: JobArgument


@command(app, "list", ListOptions)
def list_jobs(options: ListOptions) -> None:
    """The newest jobs of a tenant."""
    from tenantry.web.wire import job_out

    async def look(desk: "Desk", tenant: "TenantId") -> "list[JobView]":
        return await desk.intake.jobs(tenant, state=_state(options.state), limit=options.limit)

    output, views = Output.of(options), for_tenant(options, options.tenant, look)
    output.data([job_out(view) for view in views])
    rows = [
        (
            v.id,
            v.state.value,
            _class(v),
            v.attempts,
            moment(v.submitted_at or v.ended_at),
            v.target or "",
            v.reason,
        )
        for v in views
    ]
    output.table(("job", "state", "class", "attempts", "submitted", "target", "reason"), rows)
    if not views:
        output.line("None.")


@command(app, "show", OneJob)
def show(options: OneJob) -> None:
    """One job: where it is, and every failed attempt."""
    from tenantry.web.wire import job_out

    async def look(desk: "Desk", tenant: "TenantId") -> "JobView":
        return await _view(desk, tenant, options.job)

    output, view = Output.of(options), for_tenant(options, options.tenant, look)
    output.data(job_out(view))
    facts = {
        "job": view.id,
        "tenant": view.tenant,
        "state": view.state.value,
        "target": view.target,
        "class": _class(view),
        "attempts": view.attempts,
        "submitted": moment(view.submitted_at),
        "due": moment(view.due_at),
        "ended": moment(view.ended_at),
        "status": view.status,
        "reason": view.reason,
    }
    for name, value in facts.items():
        if value not in (None, ""):
            output.line(f"{name:<10} {value}")
    for attempt in view.history:
        said = f": {attempt.excerpt}" if attempt.excerpt else ""
        status = f" {attempt.status}" if attempt.status else ""
        output.line(
            f"attempt {attempt.number}  {moment(attempt.ended_at)}  {attempt.error_class}{status}"
            f" after {attempt.busy_for:.3f} s{said}"
        )


@command(app, "explain", OneJob)
def explain(options: OneJob) -> None:
    """Why a job waits: its delay, lane, order, cap, rate, share or place in line, most decisive first."""
    from tenantry.queue.explain import explain as reasons_of
    from tenantry.queue.explain import headline
    from tenantry.web.wire import Explanation, reasons_out

    async def look(desk: "Desk", tenant: "TenantId") -> "tuple[JobView, Facts | None]":
        view = await _view(desk, tenant, options.job)
        return view, await _facts(desk, tenant, view)

    output, (view, facts) = Output.of(options), for_tenant(options, options.tenant, look)
    reasons = () if facts is None else reasons_of(facts)
    output.data(Explanation(view.id, view.state if facts is None else facts.state, reasons_out(reasons)))
    output.line(_ended(view) if facts is None else headline(facts))
    for reason in reasons[1:]:
        output.line(f"Also: {reason.detail}")


@command(app, "cancel", OneJob)
def cancel(options: OneJob) -> None:
    """Cancel a job that is waiting, delayed or parked. A running job is not interrupted: exit code 1."""
    from tenantry.queue.model import JobState

    async def do(desk: "Desk", tenant: "TenantId") -> JobState:
        view = await _view(desk, tenant, options.job)
        return await desk.intake.cancel(tenant, view.id) or view.state

    output, state = Output.of(options), for_tenant(options, options.tenant, do)
    output.data({"id": options.job, "state": state})
    if state is not JobState.CANCELLED:
        output.note(f"The job is {state.value}; only a waiting, delayed or parked one can be cancelled.")
        raise typer.Exit(1)
    output.line("Cancelled.")


@command(app, "counts", OnDatabase)
def counts(options: OnDatabase) -> None:
    """How many jobs of all tenants are in each state. Ends are counted as long as they are kept."""

    async def look(desk: "Desk") -> dict[str, int]:
        return {state.value: count for state, count in (await desk.operator.counts()).items()}

    output, found = Output.of(options), at_desk(options, look)
    output.data(found)
    output.table(("state", "jobs"), found.items())


@command(app, "audit", OnDatabase)
def audit(options: OnDatabase) -> None:
    """Check that the books add up: every job in one place, every counter true. Exit code 1 if they do not."""

    async def look(desk: "Desk") -> list[str]:
        return list(await desk.operator.audit())

    output, faults = Output.of(options), at_desk(options, look)
    output.data({"faults": faults})
    for fault in faults:
        output.line(fault)
    if faults:
        output.note(f"{amount(len(faults), 'fault')}: this is a bug of Tenantry, please report it.")
        raise typer.Exit(1)
    output.line("The books add up.")


async def _view(desk: "Desk", tenant: "TenantId", job: str) -> "JobView":
    from tenantry.queue.model import JobId

    view = await desk.intake.job(tenant, JobId(job))
    if view is None:
        raise UsageError(
            f"tenant {tenant} has no job {job!r}. Ends are kept for seven days unless the workers "
            f"say otherwise; `tenantry jobs list --tenant {tenant}` shows the newest"
        )
    return view


async def _facts(desk: "Desk", tenant: "TenantId", view: "JobView") -> "Facts | None":
    """What surrounds the job, with what only the registry knows; None for one that has ended."""
    from tenantry.queue.explain import facts_of, pool_of

    facts = await desk.intake.facts(tenant, view.id, pool=pool_of(tenant, desk.directory))
    return None if facts is None else facts_of(facts, desk.directory)


def _ended(view: "JobView") -> str:
    because = f": {view.reason}" if view.reason else ""
    return f"It has ended: {view.state.value}{because}."


def _class(view: "JobView") -> str:
    return "" if view.job_class is None else view.job_class.name.lower()


def _state(text: str | None) -> Any:
    from tenantry.queue.model import JobState

    if text is None:
        return None
    if text not in set(JobState):
        raise InvalidValue("--state", text, "one of " + ", ".join(JobState))
    return JobState(text)
