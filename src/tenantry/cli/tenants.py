"""``tenantry tenants``: the registry of tenants and tiers, and the tenants' API keys."""

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenantry.cli.desk_runs import at_desk
from tenantry.cli.options import OnDatabase, command, group
from tenantry.cli.output import Output, amount, moment
from tenantry.cli.registry_files import FileOptions, read_file
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from tenantry.cli.desk import Desk
    from tenantry.cli.registry_diff import Change
    from tenantry.config.model import TargetSettings, TenantDocument
    from tenantry.config.registry import Registry
    from tenantry.config.tiers import Tier
    from tenantry.config.warnings import RegistryWarning
    from tenantry.postgres.inspection import KeyRecord

app = group("The registry of tenants and tiers, and the tenants' API keys.")
keys = group("A tenant's API keys. Only their hashes are kept.")
app.add_typer(keys, name="key")

_DAY = 86_400.0

TenantArgument = Annotated[str, typer.Argument(metavar="TENANT", help="Which tenant.")]


@dataclass(frozen=True, kw_only=True)
class OneTenant(OnDatabase):
    """One tenant."""

    tenant: TenantArgument


@dataclass(frozen=True, kw_only=True)
class Writing(OnDatabase):
    """A change of the registry."""

    yes: Annotated[bool, typer.Option("--yes", "-y", help="Apply without asking.")] = False


@dataclass(frozen=True, kw_only=True)
class ImportOptions(FileOptions, Writing):
    """A whole registry from a file."""

    tiers_from: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="What the file's tiers are laid over: those in force (current), the product's (defaults) or "
            "none (file).",
        ),
    ] = "current"


@dataclass(frozen=True, kw_only=True)
class AddOptions(Writing):
    """One tenant and its tier."""

    tenant: TenantArgument
    tier: Annotated[str, typer.Option(help="Its class of service.")] = "standard"


@dataclass(frozen=True, kw_only=True)
class CreateKeyOptions(OneTenant):
    """One new key."""

    note: Annotated[str, typer.Option(help="What it is for, for the list.")] = ""
    expires_in: Annotated[
        float | None,
        typer.Option(metavar="DAYS", min=0.001, max=36_500, help="Refuse it so many days from now."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RevokeKeyOptions(OnDatabase):
    """One key."""

    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The part between tk_ and the next _.")]


@command(app, "list", OnDatabase)
def list_tenants(options: OnDatabase) -> None:
    """Every tenant, with its tier and what that means."""
    output, registry = Output.of(options), _registry_of(options)
    tiers = {tier.name: tier for tier in registry.tiers}
    output.data(
        {
            "floor": registry.floor,
            "tiers": list(registry.tiers),
            "tenants": [{"tenant": each.tenant, "tier": each.tier} for each in registry.tenants],
        }
    )
    rows = [(each.tenant, *_tier_cells(tiers[each.tier]), len(each.targets)) for each in registry.tenants]
    output.table(
        ("tenant", "tier", "weight", "cap", "bound", "submit/s", "dispatch/s", "pool", "targets"), rows
    )
    if not registry.tenants:
        output.line(
            "None. Import a registry with `tenantry tenants import FILE`, or `tenantry tenants add TENANT`."
        )


@command(app, "show", OneTenant)
def show(options: OneTenant) -> None:
    """One tenant: its tier, how its targets are delivered to, its keys. No secret is shown."""
    from tenantry.postgres.inspection import Inspection

    async def look(desk: "Desk") -> "tuple[TenantDocument, Tier, list[KeyRecord]]":
        tenant = desk.known(options.tenant)
        document, tier = desk.directory.tenant(tenant), desk.directory.tier_of(tenant)
        assert document is not None
        assert tier is not None
        return document, tier, list(await Inspection(desk.database).keys(tenant))

    output, (document, tier, found) = Output.of(options), at_desk(options, look)
    targets = {name: _target(settings) for name, settings in document.targets.items()}
    output.data(
        {
            "tenant": document.tenant,
            "tier": tier,
            "defaults": _target(document.defaults),
            "targets": targets,
            "keys": found,
        }
    )
    output.line(f"{document.tenant}, tier {tier.name}: weight {tier.weight:g}, {_limits(tier)}")
    for name, settings in {"any target": _target(document.defaults), **targets}.items():
        output.line(f"{name}: " + ", ".join(f"{key} {value}" for key, value in settings.items()))
    _show_keys(output, found)


@command(app, "check", FileOptions)
def check(options: FileOptions) -> None:
    """Read a registry file and say what is wrong or doubtful with it. Needs no database."""
    from tenantry.config.registry import DEFAULT_FLOOR
    from tenantry.config.tiers import DEFAULT_TIERS
    from tenantry.config.warnings import warnings

    output, registry = Output.of(options), read_file(options, tiers=DEFAULT_TIERS, floor=DEFAULT_FLOOR)
    doubts = warnings(registry)
    output.data({"tenants": len(registry.tenants), "tiers": len(registry.tiers), "warnings": doubts})
    output.line(f"{amount(len(registry.tenants), 'tenant')} in {amount(len(registry.tiers), 'tier')}.")
    for doubt in doubts:
        output.line(output.styled(f"warning: {doubt.path}: {doubt.message}", "yellow"))


@command(app, "import", ImportOptions)
def import_file(options: ImportOptions) -> None:
    """Put a registry file in force, as a whole: tenants that it does not name are removed.

    Shows what would change first, and asks. Nodes follow within two seconds.
    """

    def wanted(old: "Registry") -> "Registry":
        return read_file(options, tiers=_base_tiers(options.tiers_from, old), floor=old.floor)

    _change(options, wanted)


@command(app, "add", AddOptions)
def add(options: AddOptions) -> None:
    """Add one tenant, or move it to another tier; the rest of the registry stays as it is."""
    from tenantry.config.model import TenantDocument
    from tenantry.kernel.tenant import TierName, tenant_id

    def wanted(old: "Registry") -> "Registry":
        tenant, tier = tenant_id(options.tenant), TierName(options.tier)
        found = next((each for each in old.tenants if each.tenant == tenant), None)
        others = tuple(each for each in old.tenants if each.tenant != tenant)
        document = TenantDocument(tenant, tier) if found is None else replace(found, tier=tier)
        return replace(old, tenants=(*others, document))

    _change(replace(options, yes=True), wanted)


@command(keys, "create", CreateKeyOptions)
def create_key(options: CreateKeyOptions) -> None:
    """Make an API key for a tenant. It is shown once."""
    from tenantry.config.api_keys import NewApiKey, make_api_key
    from tenantry.kernel.randomness import SystemRandomness
    from tenantry.postgres.directory import add_api_key

    async def do(desk: "Desk") -> NewApiKey:
        tenant, key = desk.known(options.tenant), make_api_key(SystemRandomness())
        expires_in = None if options.expires_in is None else options.expires_in * _DAY
        await add_api_key(desk.urls.admin, tenant, key, note=options.note, expires_in=expires_in)
        return key

    output, key = Output.of(options), at_desk(options, do)
    output.data({"tenant": options.tenant, "key_id": key.key_id, "api_key": key.text})
    output.line(key.text)
    if not options.json:
        output.note(f"This is the only time that it is shown. Its id is {key.key_id}.")


@command(keys, "list", OneTenant)
def list_keys(options: OneTenant) -> None:
    """The keys of a tenant: their ids, never the keys."""
    from tenantry.postgres.inspection import Inspection

    async def look(desk: "Desk") -> "list[KeyRecord]":
        return list(await Inspection(desk.database).keys(desk.known(options.tenant)))

    output, found = Output.of(options), at_desk(options, look)
    output.data(found)
    _show_keys(output, found)


@command(keys, "revoke", RevokeKeyOptions)
def revoke_key(options: RevokeKeyOptions) -> None:
    """Refuse a key from now on; nodes that trusted it lately follow within five seconds."""
    from tenantry.postgres.directory import revoke_api_key

    async def do(desk: "Desk") -> bool:
        return await revoke_api_key(desk.urls.admin, options.key_id)

    if not at_desk(options, do):
        hint = "`tenantry tenants key list TENANT` shows the ids. It is the part between tk_ and the next _."
        raise InvalidValue("KEY_ID", options.key_id[:17], "the id of a key", hint)
    output = Output.of(options)
    output.data({"key_id": options.key_id, "revoked": True})
    output.line("Revoked.")


def _change(options: Writing, wanted: Any) -> None:
    """Read what is in force, show what would change, ask, write."""
    from tenantry.cli.registry_diff import changes
    from tenantry.postgres.directory import write_registry

    output = Output.of(options)

    async def do(desk: "Desk") -> "tuple[Registry, Registry, list[RegistryWarning], int]":
        old = _in_force(desk)
        version, new = desk.directory.version, wanted(old)
        doubts = await _doubts(desk, new)
        _show_change(output, changes(old, new), doubts)
        if new == old:
            return old, new, doubts, version
        if not (options.yes or _agreed(options)):
            raise typer.Exit(1)
        return old, new, doubts, await write_registry(desk.urls.admin, new, after=version)

    old, new, doubts, version = at_desk(options, do)
    output.data({"version": version, "changes": changes(old, new), "warnings": doubts})
    output.line("Nothing changes." if new == old else f"Version {version} is in force.")


def _show_change(output: Output, found: "tuple[Change, ...]", doubts: "list[RegistryWarning]") -> None:
    from tenantry.cli.registry_diff import shortened

    for line in shortened(found):
        output.line(line)
    for doubt in doubts:
        output.note(f"warning: {doubt.path}: {doubt.message}")


async def _doubts(desk: "Desk", new: "Registry") -> "list[RegistryWarning]":
    """What is doubtful about ``new``, beside the slots that live now."""
    from tenantry.config.warnings import warnings
    from tenantry.postgres.inspection import Inspection

    slots: dict[str, int] = {}
    for worker in await Inspection(desk.database).workers():
        slots[worker.pool] = slots.get(worker.pool, 0) + worker.slots
    return list(warnings(new, slots=slots))


def _agreed(options: Writing) -> bool:
    if options.json or not sys.stdin.isatty():
        raise UsageError("nobody is there to ask: look at the changes above, and say --yes to apply them")
    return typer.confirm("Apply?")


def _in_force(desk: "Desk") -> "Registry":
    from tenantry.config.registry import Registry

    if desk.directory.version <= 0:
        return Registry()
    return Registry(tuple(desk.directory.tiers()), tuple(desk.directory.tenants()), desk.directory.floor)


def _registry_of(options: OnDatabase) -> "Registry":

    async def look(desk: "Desk") -> "Registry":
        return _in_force(desk)

    return at_desk(options, look)


def _base_tiers(which: str, old: "Registry") -> "tuple[Tier, ...]":
    from tenantry.config.tiers import DEFAULT_TIERS

    bases: dict[str, tuple[Tier, ...]] = {"current": old.tiers, "defaults": DEFAULT_TIERS, "file": ()}
    if which not in bases:
        raise InvalidValue("--tiers-from", which, "current, defaults or file")
    return bases[which]


def _tier_cells(tier: "Tier") -> tuple[object, ...]:
    rates = (tier.submit_rate or "", tier.dispatch_rate or "")
    return tier.name, f"{tier.weight:g}", f"{tier.cap:.0%}", tier.bound or "none", *rates, tier.pool


def _limits(tier: "Tier") -> str:
    parts = [f"cap {tier.cap:.0%} of pool {tier.pool}", f"bound {tier.bound or 'none'}"]
    parts += [f"submits {tier.submit_rate:g}/s"] if tier.submit_rate else []
    parts += [f"starts {tier.dispatch_rate:g}/s"] if tier.dispatch_rate else []
    parts += [f"replays {tier.replays} at once"] if tier.replays else []
    parts += [f"{tier.replayed_a_day:,} replayed a day"] if tier.replayed_a_day else []
    parts += [f"{tier.dedup_keys:,} dedup keys"] if tier.dedup_keys else []
    return ", ".join(parts)


def _target(settings: "TargetSettings") -> dict[str, object]:
    """Its settings, less the secret: only whether there is one."""
    from tenantry.config.validation import without_credentials

    shown = {
        "url": without_credentials(settings.url) if settings.url else None,
        "timeout": f"{settings.timeout_for:g} s",
        "attempts": settings.max_attempts,
        "limit": settings.limit,
        "signed": "yes" if settings.secret else "no",
    }
    return {name: value for name, value in shown.items() if value is not None}


def _show_keys(output: Output, found: "list[KeyRecord]") -> None:
    rows = [
        (each.key_id, moment(each.created_at), moment(each.expires_at), moment(each.revoked_at), each.note)
        for each in found
    ]
    output.table(("key", "created", "expires", "revoked", "note"), rows)
