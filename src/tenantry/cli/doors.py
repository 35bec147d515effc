"""The two ways in for ``tenantry submit``: the tenant's, over HTTP with its key, and the operator's, on the
database."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.queue.model import ENDS, JobId, JobState, NewJob

if TYPE_CHECKING:
    from tenantry.cli.desk import Desk
    from tenantry.cli.submit_options import SubmitOptions
    from tenantry.delivery.client import TenantryClient
    from tenantry.queue.level_watch import LevelWatch


@dataclass(frozen=True, slots=True)
class Sent:
    """One accepted job. ``existing``: its idempotency key answered with an earlier one."""

    id: str
    existing: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job is."""

    state: JobState
    attempts: int
    reason: str = ""
    status: int | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDS


class Door(Protocol):
    """Where jobs go in. Raises :class:`InvalidValue` naming the row, and :class:`DependencyError`."""

    async def submit(self, jobs: Sequence[NewJob]) -> list[Sent] | Refusal:
        """All or none."""
        ...

    async def standing(self, job: str) -> Standing | None: ...


class ApiDoor:
    """Over the HTTP API, as the tenant that the key names."""

    def __init__(self, client: "TenantryClient") -> None:
        self._client = client

    async def submit(self, jobs: Sequence[NewJob]) -> list[Sent] | Refusal:
        if len(jobs) == 1:
            ticket = await self._client.submit(jobs[0])
            return ticket if isinstance(ticket, Refusal) else [Sent(ticket.id, ticket.existing)]
        tickets = await self._client.submit_batch(jobs)
        if isinstance(tickets, Refusal):
            return tickets
        return [Sent(each.id, each.existing) for each in tickets]

    async def standing(self, job: str) -> Standing | None:
        found = await self._client.job(job)
        return None if found is None else Standing(found.state, found.attempts, found.reason, found.status)


class DeskDoor:
    """On the database, for any tenant; the tenant's rate and bound hold here too, and what its pool sheds."""

    def __init__(self, desk: "Desk", tenant: TenantId, levels: "LevelWatch") -> None:
        from tenantry.kernel.clock import SystemClock
        from tenantry.kernel.events import ignore
        from tenantry.kernel.randomness import SystemRandomness
        from tenantry.memory.rate_gate import MemoryRateGate
        from tenantry.queue.intake import Admission, IntakeSettings

        gate = MemoryRateGate(desk.directory, SystemClock())
        self._admission = Admission(
            desk.intake,
            desk.directory,
            gate,
            randomness=SystemRandomness(),
            events=ignore,
            settings=IntakeSettings(level_of=levels.level_of),
        )
        self._intake, self._tenant = desk.intake, tenant

    async def submit(self, jobs: Sequence[NewJob]) -> list[Sent] | Refusal:
        answer = await self._admission.submit(self._tenant, jobs)
        if isinstance(answer, Refusal):
            return answer
        return [Sent(id_, position in answer.existing) for position, id_ in enumerate(answer.ids)]

    async def standing(self, job: str) -> Standing | None:
        view = await self._intake.job(self._tenant, JobId(job))
        return None if view is None else Standing(view.state, view.attempts, view.reason, view.status)


@asynccontextmanager
async def opened_door(options: "SubmitOptions") -> AsyncIterator[Door]:
    """The operator's door where a tenant is named, else the tenant's. Raises :class:`UsageError`."""
    import asyncio

    from tenantry.cli.desk import opened
    from tenantry.cli.options import API_KEY
    from tenantry.delivery.client import TenantryClient
    from tenantry.delivery.client_wire import Retries
    from tenantry.kernel.clock import SystemClock
    from tenantry.kernel.errors import UsageError
    from tenantry.kernel.events import ignore
    from tenantry.queue.level_watch import LevelWatch

    if options.tenant is not None:
        async with opened(options) as desk:
            levels = LevelWatch(desk.operator, clock=SystemClock(), events=ignore)
            await levels.refresh()
            looking = asyncio.create_task(levels.run())
            try:
                yield DeskDoor(desk, desk.known(options.tenant), levels)
            finally:
                looking.cancel()
                await asyncio.wait([looking])
        return
    if options.api_key is None:
        raise UsageError(
            f"there is no API key: set {API_KEY} (`tenantry tenants key create TENANT` makes one), or, as "
            "the operator, name a tenant with --tenant"
        )
    async with TenantryClient(
        options.url, options.api_key, retries=Retries(attempts=4, deadline_for=30.0)
    ) as client:
        yield ApiDoor(client)
