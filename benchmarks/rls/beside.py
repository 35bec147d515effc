"""What is found, beside pgrls and Supabase's splinter, over one corpus of broken schemas and right twins.

The corpus: every case of the mutation kit, and one for each documented rule of a peer about isolation that no
case of the kit makes it report (``corpus/``, the schemas are ours). All three look at the same database, set
up as both peers expect one (schema ``public``, the roles ``anon``, ``authenticated`` and ``service_role``).

A fault is found by whoever says of the broken schema what he does not say of its twin. An alarm is false
where something is said of the twin that is not said of the clean shop that every case begins with. Only rules
about tenant isolation count (:data:`APART` says which do not, and why). splinter runs inside the Postgres
Language Server, which carries it (npm); without npm its column is left out.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from benchmarks.context import Context
from benchmarks.figures import NONE, OURS, Goal, Measured
from benchmarks.fleet import RunnerFailed
from benchmarks.systems import HERE, PEERS_PYTHON
from tenantry.postgres.catalogue import PostgresCatalogue
from tenantry.postgres.database import connect_once
from tenantry.postgres.urls import with_database
from tenantry.rls import Declared, audit
from tenantry.testing.row_policies import Case, base, cases, parsed

QUICK = False
NAME = "rls_beside"
PGRLS, SPLINTER = "pgrls", "splinter"
CORPUS = Path(__file__).parent / "corpus"
NODE = HERE / ".peers-node"
LANGUAGE_SERVER = "@postgres-language-server/cli@0.25.5"

APART: Mapping[str, str] = {
    "SEC003": "a policy without TO holds everybody: that is no leak",
    "SEC007": "style: says that no policy is restrictive",
    "SEC010": "a policy that lets nothing pass leaks nothing",
    "SEC022": "style: a table that can only be read",
    "SEC023": "said of the role by SEC016, which counts",
    "SEC027": "users within a tenant",
    "SEC034": "one platform's users", "SEC037": "one platform's roles", "SEC050": "one platform's storage",
    "SEC045": "columns that are secret, whoever's rows they are of",
    "SEC049": "any table that a role may read, with and without policies",
    "SEC052": "one platform's users",
    "HYG": "style", "PERF": "speed", "performance/": "speed",
    "security/sensitiveColumnsExposed": "columns that are secret, whoever's rows they are of",
    "security/authUsersExposed": "one platform's users",
    "security/extension": "housekeeping", "security/unsupportedRegTypes": "housekeeping",
}  # fmt: skip
"""Rules of the peers (by how they begin) that do not speak of tenant isolation, with the reason."""

ELSEWHERE: Mapping[str, str] = {
    "policy-by-login--a-login-a-tenant": "the twin is right because its tenants log in; the roles that the "
    "peers expect do not",
}
"""Cases that mean something else in a database set up as the peers expect it, with the reason."""

_AS_EXPECTED = (
    ("CREATE SCHEMA shop AUTHORIZATION shop_owner;", "ALTER SCHEMA public OWNER TO shop_owner;"),
    ("CREATE ROLE shop_app LOGIN;", "CREATE ROLE authenticated; CREATE ROLE anon;"
     " CREATE ROLE service_role BYPASSRLS;"),
    ("shop_app", "authenticated"), ("shop.", "public."), ("SCHEMA shop", "SCHEMA public"),
    ("search_path = shop", "search_path = public"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """What each says of one schema, as ``rule: place``."""

    by: Mapping[str, frozenset[str]]


async def run(context: Context) -> None:
    """One pass: what is found does not vary from run to run."""
    node = await _language_server()
    peers = (PGRLS, SPLINTER) if node else (PGRLS,)
    corpus = [*cases(), *_documented()]
    async with _database(context, "") as url:
        clean = await _said(url, Declared(), node)
    table = [await _judged(context, case, node, clean) for case in corpus]
    counted = [each for each in table if each is not None]
    _report(context, counted, peers)


def _documented() -> list[Case]:
    found = sorted(CORPUS.glob("*/*.sql"))
    return [parsed(each.stem, each.parent.name, each.read_text(encoding="utf-8")) for each in found]


@dataclass(frozen=True, slots=True)
class Row:
    """``found``: who found the fault of a case. ``alarms``: who raised a false one on its twin."""

    family: str
    found: Mapping[str, bool]
    alarms: Mapping[str, bool]


async def _judged(context: Context, case: Case, node: Path | None, clean: Said) -> Row | None:
    """None where the case cannot be set up as the peers expect it, or the server must be another one."""
    if case.version or case.name in ELSEWHERE:
        return None
    context.say(f"beside: {case.family} {case.name}")
    sides = []
    for script in (case.broken, case.right):
        async with _database(context, script) as url:
            sides.append(await _said(url, case.declared, node))
    broken, right = sides
    found = {who: bool(each - right.by[who]) for who, each in broken.by.items()}
    alarms = {who: bool(each - clean.by[who]) for who, each in right.by.items()}
    if not found[OURS] and any(found.values()):
        context.say(f"beside: MISSED {case.family} {case.name}: {found}")
    if alarms[OURS]:
        context.say(
            f"beside: FALSE ALARM {case.family} {case.name}: {sorted(right.by[OURS] - clean.by[OURS])}"
        )
    return Row(case.family.replace("_", " "), found, alarms)


def _report(context: Context, rows: list[Row], peers: tuple[str, ...]) -> None:
    for family in dict.fromkeys(row.family for row in rows):
        ours = [row for row in rows if row.family == family]
        context.judge(_shares(f"faults found, {family} ({len(ours)})", peers, [row.found for row in ours]))
    seen = [row.found for row in rows if any(row.found[peer] for peer in peers)]
    unseen = [{who: not found for who, found in faults.items()} for faults in seen]
    missed = f"not found, of the {len(seen)} faults that a peer finds"
    alarms = f"false alarms on {len(rows)} right twins"
    context.judge(_shares(missed, peers, unseen, Goal(at_most=2.0)))
    context.judge(_shares(alarms, peers, [row.alarms for row in rows], Goal(at_most=0.0)))


def _shares(
    claim: str, peers: tuple[str, ...], rows: list[Mapping[str, bool]], goal: Goal = NONE
) -> Measured:
    measured = Measured(claim, "%", "lower" if goal.at_most is not None else "higher", goal)
    for who in (OURS, *peers):
        measured.add(who, 100 * sum(row[who] for row in rows) / len(rows))
    return measured


@asynccontextmanager
async def _database(context: Context, script: str) -> AsyncIterator[str]:
    """A database with the shop and ``script``, and the roles of both, which go with it."""
    server = context.server
    url = with_database(server.url, NAME)
    await server.administer(f"CREATE DATABASE {NAME} TEMPLATE template0")
    try:
        await server.administer(f"ALTER DATABASE {NAME} SET pgrst.db_schemas = 'public'")
        connection = await connect_once(url)
        try:
            before = {each[0] for each in await connection.fetch("SELECT rolname FROM pg_roles")}
            async with connection.transaction():
                await connection.execute(as_expected(base() + script))
        finally:
            await connection.close()
        yield url
    finally:
        await server.administer(f"DROP DATABASE {NAME} WITH (FORCE)")
        await server.administer(_DROP_ROLES.format(kept=", ".join(f"'{each}'" for each in sorted(before))))


_DROP_ROLES = (
    "DO $$ DECLARE name text; BEGIN FOR name IN SELECT rolname FROM pg_roles WHERE rolname NOT IN ({kept})"
    " LOOP EXECUTE format('DROP OWNED BY %I', name); EXECUTE format('DROP ROLE %I', name); END LOOP; END $$"
)


def as_expected(script: str) -> str:
    """The script with the names that the peers look for."""
    for ours, theirs in _AS_EXPECTED:
        script = script.replace(ours, theirs)
    return script


def _declared(declared: Declared) -> Declared:
    def moved(names: Mapping[str, str]) -> dict[str, str]:
        return {as_expected(name): said for name, said in names.items()}

    roles = tuple(as_expected(each) for each in declared.application_roles) or ("anon", "authenticated")
    service = {"service_role": "the platform's own role", **declared.service_roles}
    return replace(
        declared,
        application_roles=roles,
        tables=moved(declared.tables),
        shared=moved(declared.shared),
        service_roles=service,
    )


async def _said(url: str, declared: Declared, node: Path | None) -> Said:
    facts = await PostgresCatalogue(url).facts()
    said = {OURS: frozenset(each.key for each in audit(facts, _declared(declared)).findings)}
    said[PGRLS] = _counted(await _pgrls(url))
    if node is not None:
        said[SPLINTER] = _counted(await _splinter(url, node))
    return Said(said)


def _counted(found: frozenset[str]) -> frozenset[str]:
    return frozenset(each for each in found if not each.startswith(tuple(APART)))


async def _pgrls(url: str) -> frozenset[str]:
    command = [str(PEERS_PYTHON.parent / "pgrls"), "lint", "--database-url", url, "--schemas", "public"]
    read = json.loads(await _output([*command, "--format", "json", "--min-severity", "info"]))
    violations = read if isinstance(read, list) else read["violations"]
    return frozenset(
        f"{each.get('rule_id') or each.get('rule')}: {each.get('object') or each.get('location')}"
        for each in violations
    )


async def _splinter(url: str, node: Path) -> frozenset[str]:
    parts = urlsplit(url)
    host = parse_qs(parts.query)["host"][0]
    given = [f"--host={host}", "--username=postgres", f"--database={NAME}", "--password=none"]
    read = json.loads(await _output([str(node), "dblint", *given, "--reporter=json"]))
    diagnostics = read["diagnostics"]
    return frozenset(f"{each['category'].partition('/')[2]}: {each['message']}" for each in diagnostics)


async def _output(command: list[str]) -> str:
    """What it prints, whatever its exit status: that says how much was found."""
    running = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parent,
    )
    printed, errors = await running.communicate()
    text = printed.decode()
    if not text.lstrip().startswith(("{", "[")):
        raise RunnerFailed(f"{Path(command[0]).name}: {errors.decode()[-500:] or text[-500:]}")
    return text[: max(text.rfind("}"), text.rfind("]")) + 1]


async def _language_server() -> Path | None:
    """The program, installed once beside the peers' environment; None without npm."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    found = NODE / "node_modules" / "@postgres-language-server"
    if not found.is_dir():
        NODE.mkdir(exist_ok=True)
        installing = await asyncio.create_subprocess_exec(
            npm, "install", "--silent", "--no-save", "--prefix", str(NODE), LANGUAGE_SERVER
        )
        if await installing.wait() != 0:
            return None
    return next(found.glob("cli-*/postgres-language-server"), None)
