"""Operations: what surprises those who run, copy and load a database under row policies."""

from collections.abc import Iterator

from tenantry.rls.facts import Relation
from tenantry.rls.flaws import FLAWS, shown
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.names import quoted
from tenantry.rls.roles import Role
from tenantry.rls.rule import Rules
from tenantry.rls.scene import Scene

RULES = Rules(Family.OPERATIONS)


@RULES.rule(
    "server-flaw",
    Severity.HIGH,
    summary="The server's version has a known flaw in row security.",
    mechanism="Some versions apply the wrong policies, or show through statistics what policies hide. No "
    "schema mends that. Which versions are mended is kept as data, from the project's own advisories.",
    fix="Update to the newest minor version; no dump is needed for that.",
)
def server_flaw(scene: Scene) -> Iterator[Found]:
    server = scene.facts.server
    for flaw in FLAWS:
        if flaw.affects(server.version):
            mended = next(
                each for each in flaw.fixed if flaw.affects(server.version) and _same(each, server.version)
            )
            yield Found(
                f"server {flaw.name}",
                f"PostgreSQL {server.version_text} has {flaw.name}: {flaw.about}. {shown(mended)} mends it.",
            )


def _same(version: int, other: int) -> bool:
    return version // 10000 == other // 10000 if version >= 100000 else version // 100 == other // 100


def _staff(scene: Scene) -> Iterator[Role]:
    """Logins that are neither the application's nor superusers."""
    application = {each.name for each in scene.application}
    for role in sorted(scene.facts.roles.values(), key=lambda each: each.name):
        if role.can_login and not role.superuser and not role.predefined and role.name not in application:
            yield role


def _held(scene: Scene, role: Role) -> list[Relation]:
    """The tenant tables whose policies hold ``role``."""
    return [each for each in scene.tenant_tables if not scene.skips_policies(role.name, each)]


@RULES.rule(
    "dump-under-policies",
    Severity.LOW,
    summary="A login that reads all tables, as a backup does, is held by the policies.",
    mechanism="pg_dump switches row_security off, so that a policy is an error and not a gap: a role under "
    "policies cannot dump the tables. With --enable-row-security it can, exits 0, and writes no rows at all "
    "where no tenant is bound. The gap is found when the backup is needed.",
    fix="Dump as a role with BYPASSRLS that does nothing else, and declare it; restore a dump now and then "
    "and count.",
)
def dump_under_policies(scene: Scene) -> Iterator[Found]:
    for role in _staff(scene):
        reads = "pg_read_all_data" in scene.reach.inherits(role.name)
        held = _held(scene, role) if reads else []
        if held:
            yield Found(
                f"role {role.name}",
                f"{role.name} may read every table and is held by the policies of {_counted(held)}: its "
                "dumps fail, or are without those rows.",
                f"ALTER ROLE {quoted(role.name)} BYPASSRLS;",
                held[0].oid,
                role.name,
            )


def _counted(tables: list[Relation]) -> str:
    return tables[0].title if len(tables) == 1 else f"{len(tables):,} tables"


@RULES.rule(
    "copy-under-policies",
    Severity.LOW,
    summary="A login that is no tenant's loads tenant tables under their policies.",
    mechanism="COPY FROM is refused on a table whose policies hold the role, whatever they say: also with "
    "USING (true). A loader that works with INSERT stops when somebody makes it fast.",
    fix="INSERT … SELECT FROM unnest(…) or from a staging table; or load as a role with BYPASSRLS. Declare "
    "the role.",
)
def copy_under_policies(scene: Scene) -> Iterator[Found]:
    for role in _staff(scene):
        loads = [each for each in _held(scene, role) if scene.granted(role.name, each, "INSERT")]
        if loads:
            yield Found(
                f"role {role.name}",
                f"{role.name} may insert into {_counted(loads)} and is held by their policies: COPY FROM is "
                "refused.",
                "",
                loads[0].oid,
                role.name,
                excuse=scene.scope.service.get(role.name, ""),
            )


@RULES.rule(
    "replication-login",
    Severity.LOW,
    summary="A login with REPLICATION that nobody has declared.",
    mechanism="Change data capture and standbys read the write-ahead log: all rows of all tenants, under no "
    "policy, and what they feed (a search index, a lake, a queue) has no policies either.",
    fix="Declare it as a service role with the reason; filter by tenant behind it; take the attribute from "
    "the rest.",
)
def replication_login(scene: Scene) -> Iterator[Found]:
    for role in _staff(scene):
        if role.replicates:
            yield Found(
                f"role {role.name}",
                f"{role.name} logs in with REPLICATION, and reads every tenant's changes.",
                f"ALTER ROLE {quoted(role.name)} NOREPLICATION;",
                role=role.name,
                excuse=scene.scope.service.get(role.name, ""),
            )


@RULES.rule(
    "row-security-off",
    Severity.MEDIUM,
    summary="The application's sessions begin with row_security off.",
    mechanism="The setting does not switch policies off: with it a statement that a policy would filter is "
    "an error. Somebody set it in the hope of more; every query of a tenant table fails, or the application "
    "has a login that policies do not hold.",
    fix="Reset it; it belongs into a dump's session only.",
)
def row_security_off(scene: Scene) -> Iterator[Found]:
    names = {each.name for each in scene.application}
    for setting in scene.facts.settings:
        off = setting.name == "row_security" and setting.value.lower() in {"off", "false", "0", "no"}
        if not off or (setting.role is not None and setting.role not in names):
            continue
        database = quoted(scene.facts.server.database)
        where = f" IN DATABASE {database}" if setting.here and setting.role else ""
        target = f"ROLE {quoted(setting.role)}{where}" if setting.role else f"DATABASE {database}"
        if setting.role is None and not setting.here:
            target = "ROLE ALL"
        yield Found(
            f"row_security of {target.lower()}",
            f"Sessions of {setting.role or 'everybody'} begin with row_security = {setting.value}.",
            f"ALTER {target} RESET row_security;",
            role=setting.role or "",
        )
