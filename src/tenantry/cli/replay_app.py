"""The group ``tenantry replay``, and the desk that its commands work at."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tenantry.cli.desk_runs import at_desk
from tenantry.cli.options import OnDatabase, group
from tenantry.kernel.errors import UsageError

if TYPE_CHECKING:
    from tenantry.cli.desk import Desk
    from tenantry.kernel.tenant import TenantId
    from tenantry.replay.desk import ReplayService

T = TypeVar("T")

app = group("Dead letters back into their lanes: plan, start, watch, pause, cancel, and what is parked.")


@dataclass(frozen=True, kw_only=True)
class OfTenant(OnDatabase):
    """Whose replays."""

    tenant: Annotated[str, typer.Option("--tenant", "-t", help="Whose replays.")]
    connections_file: Annotated[
        Path | None,
        typer.Option(
            envvar="TENANTRY_CONNECTIONS_FILE",
            metavar="FILE",
            help="Connections to brokers, files and other databases, and which tenant may use what of them.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OneReplay(OfTenant):
    """Which one."""

    replay: Annotated[str, typer.Argument(metavar="REPLAY", help="The id that `tenantry replay plan` gave.")]


def with_replays(options: OfTenant, look: "Callable[[ReplayService, TenantId], Coroutine[Any, Any, T]]") -> T:
    """What ``look`` finds with the tenant's replays. Raises :class:`UnknownTenant`, and as
    :func:`tenantry.cli.desk.opened`."""

    async def at(desk: "Desk") -> T:
        replays = service(desk, options.connections_file)
        return await look(replays, await _tenant(desk, replays, options))

    return at_desk(options, at)


async def _tenant(desk: "Desk", replays: "ReplayService", options: OfTenant) -> "TenantId":
    """One of the registry; or, for orders to one replay, one that is there no more and has replays still."""
    from tenantry.kernel.tenant import tenant_id

    if isinstance(options, OneReplay):
        tenant = tenant_id(options.tenant)
        if await replays.replays(tenant, limit=1):
            return tenant
    return desk.known(options.tenant)


def read_at_most(option: str, path: Path, most: int) -> bytes:
    """The file's content. Raises :class:`~tenantry.kernel.errors.UsageError`; what is no file of that size,
    a device say, is not read to its end."""
    try:
        with path.open("rb") as file:
            found = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror or error}") from None
    if len(found) > most:
        raise UsageError(f"{option} {path}: longer than {most:,} bytes")
    return found


def service(desk: "Desk", connections_file: Path | None) -> "ReplayService":
    """The people's side of replays on the desk's database."""
    from tenantry.cli.connections import read_connections, replay_service
    from tenantry.kernel.clock import SystemClock
    from tenantry.kernel.events import ignore
    from tenantry.kernel.randomness import SystemRandomness
    from tenantry.queue.surroundings import Surroundings

    around = Surroundings(desk.directory, SystemClock(), SystemRandomness(), ignore)
    return replay_service(desk.database, desk.hints, around, read_connections(connections_file))
