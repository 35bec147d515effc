"""A plan carried out on real servers: whole steps, within the bound, whoever holds locks or is killed."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest
from rls_servers import Databases, applied, ask, audited, planned, run

from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import UsageError
from tenantry.rls.script import Bounds, messages

pytestmark = pytest.mark.needs_postgres
on_newest = pytest.mark.parametrize("rls_server", [18], indirect=True)
"""For what no version does differently."""

INVOICES = "CREATE TABLE invoices (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id))"
NOTES = "CREATE TABLE notes (id serial PRIMARY KEY, tenant_id int NOT NULL, body text)"
DECLARED = 'roles = ["app_user"]\n[tables]\n'
BOTH = DECLARED + "invoices = {}\nnotes = {}"
ROW_SECURITY = "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = $1"
POLICIES = "SELECT tablename, policyname, roles::text, cmd, qual, with_check FROM pg_policies ORDER BY 1, 2"
INDEXES = """
    SELECT indexrelid::regclass::text, indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid
     WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1"""
STATE = """
    SELECT relname, relacl::text, relrowsecurity, relforcerowsecurity, reloptions FROM pg_class
     WHERE relnamespace = 'public'::regnamespace ORDER BY 1"""


@pytest.fixture
def app_user(rls_databases: Databases) -> str:
    return rls_databases.role("app_user")


def test_a_second_plan_is_empty_and_a_second_apply_does_nothing(
    rls_databases: Databases, app_user: str
) -> None:
    url = rls_databases(INVOICES, NOTES)
    first = applied(url, BOTH)
    assert first.done == (
        "index public.notes by its tenant", "protect public.invoices", "protect public.notes",
    )  # fmt: skip
    assert planned(url, BOTH).steps == ()
    assert applied(url, BOTH).done == ()


def test_the_way_back_leaves_the_database_as_it_was(rls_databases: Databases, app_user: str) -> None:
    url = rls_databases(
        INVOICES,
        NOTES,
        "CREATE POLICY old ON notes FOR SELECT TO app_user USING (tenant_id = 1)",
        "CREATE POLICY tenant_isolation ON notes AS RESTRICTIVE USING (body <> '')",
        "GRANT SELECT, TRUNCATE ON notes TO app_user",
        "CREATE VIEW bodies WITH (security_invoker = false) AS SELECT body FROM notes",
        "GRANT SELECT ON bodies TO app_user",
    )
    declared = DECLARED + 'invoices = {}\nnotes = { replaces = ["old"] }'
    before = [ask(url, each) for each in (STATE, POLICIES, INDEXES)]
    back = planned(url, declared).back
    assert applied(url, declared).is_whole
    assert [ask(url, each) for each in (STATE, POLICIES, INDEXES)] != before
    run(url, *(statement for step in back for statement in step.up))
    # an ACL that was NULL is now written out, with the same meaning
    after = [ask(url, each) for each in (STATE, POLICIES, INDEXES)]
    assert after[1:] == before[1:]
    assert [_granted_to_others(row) for row in after[0]] == [_granted_to_others(row) for row in before[0]]


@on_newest
def test_another_policy_for_the_application_must_be_replaced_or_kept_by_name(
    rls_databases: Databases, app_user: str
) -> None:
    url = rls_databases(
        NOTES, "CREATE POLICY old ON notes USING (true)", "CREATE POLICY other ON notes USING (true)"
    )
    ended = applied(url, DECLARED + 'notes = { replaces = ["old"] }')
    assert ended.done == ()
    (objection,) = ended.left.objections
    assert "the policy other on public.notes allows application roles rows besides the tenant's" in objection
    ended = applied(url, DECLARED + 'notes = { replaces = ["old"], keeps = ["other"] }')
    assert [row[1] for row in ask(url, POLICIES)] == ["other", "tenant_isolation"]
    assert ended.is_whole
    assert (
        "the policy other on public.notes stays: public may do what it allows besides" in ended.left.remarks
    )


@pytest.mark.parametrize(
    "wrong",
    [
        "USING (tenant_id = current_setting('app.tenant_id')::int)",
        "USING (tenant_id = current_setting('app.tenant_id', true)::int)",
        "USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (true)",
        "USING (tenant_id = NULLIF(current_setting('app.other', true), '')::int)",
        "TO app_user USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) "
        "WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int)",
    ],
    ids=["no missing_ok", "no NULLIF", "open check", "another setting", "for some only"],
)
def test_a_policy_of_our_name_and_another_meaning_is_written_anew(
    rls_databases: Databases, app_user: str, wrong: str
) -> None:
    url = rls_databases(INVOICES, f"CREATE POLICY tenant_isolation ON invoices {wrong}")
    assert applied(url, DECLARED + "invoices = {}").is_whole
    expected = "(tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::integer)"
    assert ask(url, POLICIES) == [("invoices", "tenant_isolation", "{public}", "ALL", expected, expected)]


def test_every_partition_is_protected_and_the_index_is_joined_from_theirs(
    rls_databases: Databases, app_user: str
) -> None:
    url = rls_databases(
        "CREATE TABLE events (tenant_id uuid NOT NULL, day int NOT NULL) PARTITION BY RANGE (day)",
        "CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (1) TO (2)",
        "CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (2) TO (9) PARTITION BY RANGE (day)",
        "CREATE TABLE events_2_1 PARTITION OF events_2 FOR VALUES FROM (2) TO (3)",
        "GRANT ALL ON events_1 TO app_user",
    )
    declared = DECLARED + 'events = { type = "uuid" }'
    assert applied(url, declared).is_whole
    for name in ("events", "events_1", "events_2", "events_2_1"):
        assert ask(url, ROW_SECURITY, name) == [(True, True)]
    assert all(valid for _, valid in ask(url, INDEXES))
    assert [name for name, _ in ask(url, INDEXES)] == [
        f"{each}_tenant_id_idx" for each in ("events_1", "events_2_1", "events_2", "events")
    ]
    run(url, "CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM (20) TO (21)")
    assert [step.title for step in planned(url, declared).steps] == ["protect public.events_3"]


def test_views_between_the_application_and_tenants_rows_are_changed_and_no_others(
    rls_databases: Databases, app_user: str
) -> None:
    url = rls_databases(
        INVOICES,
        "CREATE VIEW inner_totals AS SELECT tenant_id, count(*) FROM invoices GROUP BY 1",
        "CREATE VIEW outer_totals AS SELECT * FROM inner_totals",
        "CREATE VIEW for_operators AS SELECT * FROM invoices",
        "GRANT SELECT ON inner_totals, outer_totals TO app_user",
        "INSERT INTO invoices VALUES (1, 1), (2, 1)",
    )
    assert applied(url, DECLARED + "invoices = {}").is_whole
    options = ask(url, f"SELECT relname, reloptions FROM ({STATE}) AS s WHERE relname !~ 'invoices'")
    assert options == [
        ("for_operators", None),
        ("inner_totals", ["security_invoker=true"]),
        ("outer_totals", ["security_invoker=true"]),
    ]
    assert ask(_as_tenant(url, "2"), "SELECT tenant_id FROM outer_totals") == [(2,)]


@on_newest
def test_a_schema_is_opened_when_nothing_in_it_is_open_any_more(
    rls_databases: Databases, app_user: str
) -> None:
    url = rls_databases(
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.invoices (tenant_id int NOT NULL, PRIMARY KEY (tenant_id))",
        "CREATE TABLE shop.rates (code text)",
        "CREATE VIEW shop.rated AS SELECT * FROM shop.invoices, shop.rates",
        "GRANT SELECT ON shop.invoices, shop.rated TO app_user",
    )
    declared = 'schema = "shop"\n' + DECLARED + "invoices = {}"
    (objection,) = planned(url, declared).objections
    assert "the view shop.rated would fail once it is read as who asks: it reads shop.rates" in objection
    run(url, "GRANT SELECT ON shop.rates TO app_user")
    ended = applied(url, declared)
    assert ended.done == (
        "protect shop.invoices",
        "read shop.rated as who asks",
        "let the application into shop",
    )
    assert ended.is_whole


@on_newest
def test_a_service_role_sees_all_tenants_and_only_it_does(rls_databases: Databases, app_user: str) -> None:
    rls_databases.role("reporting")
    url = rls_databases(
        INVOICES, "INSERT INTO invoices VALUES (1, 1), (2, 1)", "GRANT SELECT ON invoices TO reporting"
    )
    declared = DECLARED + 'invoices = {}\n[services]\nreporting = "nightly totals"'
    assert applied(url, declared).is_whole
    assert ask(_as(url, "reporting"), "SELECT count(*) FROM invoices") == [(2,)]
    assert ask(_as(url, "app_user"), "SELECT count(*) FROM invoices") == [(0,)]
    assert applied(url, DECLARED + "invoices = {}").done == ("protect public.invoices",)
    assert ask(_as(url, "reporting"), "SELECT count(*) FROM invoices") == [(0,)]


@on_newest
def test_an_application_role_that_can_reach_a_service_role_is_refused(
    rls_databases: Databases, app_user: str
) -> None:
    rls_databases.role("reporting")
    url = rls_databases(INVOICES, "GRANT reporting TO app_user")
    ended = applied(url, DECLARED + 'invoices = {}\n[services]\nreporting = "nightly totals"')
    assert ended.done == ()
    assert ended.left.objections == (
        "reporting serves all tenants: an application role must not reach it, and app_user inherits the "
        "rights of reporting. REVOKE reporting FROM app_user",
    )
    assert ask(url, ROW_SECURITY, "invoices") == [(False, False)]


@on_newest
def test_a_shared_table_is_read_and_not_written(rls_databases: Databases, app_user: str) -> None:
    url = rls_databases(INVOICES, "CREATE TABLE countries (code text)", "GRANT ALL ON countries TO app_user")
    declared = DECLARED + 'invoices = {}\n[shared]\ncountries = "one list"'
    assert applied(url, declared).is_whole
    assert ask(_as(url, "app_user"), "SELECT count(*) FROM countries") == [(0,)]
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        run(_as(url, "app_user"), "INSERT INTO countries VALUES ('x')")


@on_newest
def test_the_sequence_of_a_serial_column_can_be_drawn_from(rls_databases: Databases, app_user: str) -> None:
    url = rls_databases(NOTES)
    assert applied(url, DECLARED + "notes = {}").is_whole
    run(_as_tenant(url, "3"), "INSERT INTO notes (tenant_id, body) VALUES (3, 'mine')")
    assert ask(_as_tenant(url, "3"), "SELECT tenant_id FROM notes") == [(3,)]


def test_what_was_written_is_clean_to_the_audit(rls_databases: Databases, app_user: str) -> None:
    for role in ("app_owner", "reporting"):
        rls_databases.role(role)
    url = rls_databases("GRANT CREATE ON SCHEMA public TO app_owner")
    run(
        _as(url, "app_owner"),
        "CREATE TABLE invoices (tenant_id int NOT NULL, id int, amount int, PRIMARY KEY (tenant_id, id))",
        "CREATE TABLE parts (tenant_id bigint NOT NULL, k int NOT NULL) PARTITION BY LIST (k)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)",
        "CREATE TABLE docs (tenant_id varchar(20) NOT NULL, body text)",
        "CREATE TABLE countries (code text)",
        "CREATE VIEW totals AS SELECT tenant_id, sum(amount) FROM invoices GROUP BY 1",
        "CREATE VIEW outer_totals AS SELECT * FROM totals",
        "GRANT SELECT ON totals, outer_totals, invoices TO app_user",
    )
    declared = f"""
        {DECLARED}
        invoices = {{}}
        parts = {{ type = "bigint" }}
        docs = {{ type = "text" }}
        [shared]
        countries = "one list"
        [services]
        reporting = "nightly totals"
    """
    assert "rls-off: table public.invoices" in audited(url, declared)
    assert applied(_as(url, "app_owner"), declared).is_whole  # no superuser is needed
    assert audited(url, declared) == {}


@on_newest
def test_a_login_that_may_not_is_told_which_would_do(rls_databases: Databases, app_user: str) -> None:
    rls_databases.role("somebody")
    url = rls_databases(INVOICES)
    told = "must be owner of table invoices.*Use the login of the tables' owner"
    with pytest.raises(UsageError, match=told):
        applied(_as(url, "somebody"), DECLARED + "invoices = {}")


class TestWhileOthersHoldLocks:
    """The stated bound: attempts * lock_wait and the pauses between; then given up, nothing half done."""

    BOUNDS = Bounds(lock_wait=0.1, attempts=2)

    async def test_it_gives_up_within_the_bound_and_names_the_lock_and_its_holder(
        self, rls_databases: Databases, app_user: str
    ) -> None:
        url = rls_databases(INVOICES, NOTES)
        connection = await asyncpg.connect(url, server_settings={"application_name": "a long report"})
        await connection.execute("BEGIN; LOCK TABLE invoices IN ACCESS SHARE MODE")
        clock = SystemClock()
        begun = clock.monotonic()
        ended = await asyncio.to_thread(applied, url, BOTH, self.BOUNDS)
        took = clock.monotonic() - begun
        assert took < self.BOUNDS.longest() + 10  # beyond it: reading the catalogue, on a busy machine
        assert ended.blocked is not None
        assert (ended.blocked.what, ended.blocked.attempts) == ("protect public.invoices", 2)
        (holder,) = ended.blocked.holders
        assert (holder.pid, holder.application) == (connection.get_server_pid(), "a long report")
        assert holder.holds == "AccessShareLock on invoices"
        assert (holder.state, "LOCK TABLE" in holder.query) == ("idle in transaction", True)
        # nothing half done: neither a policy nor ENABLE nor FORCE
        assert ask(url, POLICIES) == []
        assert ask(url, ROW_SECURITY, "invoices") == [(False, False)]
        await connection.execute("COMMIT")
        await connection.close()
        assert (await asyncio.to_thread(applied, url, BOTH, self.BOUNDS)).is_whole

    @on_newest
    async def test_those_behind_it_wait_no_longer_than_one_attempt(
        self, rls_databases: Databases, app_user: str
    ) -> None:
        url = rls_databases(INVOICES)
        holder, reader = await asyncpg.connect(url), await asyncpg.connect(url)
        await holder.execute("BEGIN; LOCK TABLE invoices IN ACCESS SHARE MODE")
        clock = SystemClock()
        applying = asyncio.create_task(
            asyncio.to_thread(applied, url, DECLARED + "invoices = {}", Bounds(lock_wait=0.3, attempts=1))
        )
        longest = 0.0
        while not applying.done():
            begun = clock.monotonic()
            await reader.fetch("SELECT FROM invoices")
            longest = max(longest, clock.monotonic() - begun)
        assert (await applying).blocked is not None
        assert 0.05 < longest < 0.3 + 5  # it did wait behind the ALTER TABLE, and then went on
        await holder.close()
        await reader.close()

    @on_newest
    def test_a_statement_that_would_hold_its_lock_too_long_is_given_up(
        self, rls_databases: Databases, app_user: str
    ) -> None:
        url = rls_databases(
            "CREATE TABLE events (tenant_id int NOT NULL, day int NOT NULL) PARTITION BY LIST (day)",
            "CREATE TABLE events_1 PARTITION OF events DEFAULT WITH (autovacuum_enabled = false)",
            "INSERT INTO events SELECT g % 9, g FROM generate_series(1, 300000) g",
        )
        declared = DECLARED + "events = {}"
        step = next(each for each in planned(url, declared).steps if each.title.startswith("join"))
        (message,) = messages(step, Bounds(lock_wait=0.01, hold=0.02))
        with pytest.raises(asyncpg.QueryCanceledError):  # the partition has no index yet: it would be built
            run(url, message.sql)
        assert applied(url, declared).is_whole  # in the plan's order there is nothing to build

    @on_newest
    async def test_a_prepared_transaction_in_the_way_is_named(
        self, rls_databases: Databases, app_user: str
    ) -> None:
        url = rls_databases(INVOICES)
        run(url, "BEGIN; LOCK TABLE invoices; PREPARE TRANSACTION 'left'")
        ended = await asyncio.to_thread(applied, url, DECLARED + "invoices = {}", self.BOUNDS)
        assert ended.blocked is not None
        assert "a prepared transaction" in str(ended.blocked.holders[0])
        run(url, "ROLLBACK PREPARED 'left'")

    async def test_an_index_waits_for_older_transactions_and_no_one_for_it(
        self, rls_databases: Databases, app_user: str
    ) -> None:
        url = rls_databases(NOTES)
        older, other = await asyncpg.connect(url), await asyncpg.connect(url)
        await older.execute("BEGIN; INSERT INTO notes (tenant_id) VALUES (1)")
        ended = await asyncio.to_thread(
            applied, url, DECLARED + "notes = {}", Bounds(build_wait=0.2, attempts=2)
        )
        assert ended.blocked is not None
        assert ended.blocked.what == "index public.notes by its tenant"
        assert older.get_server_pid() in [each.pid for each in ended.blocked.holders]
        assert ("notes_tenant_id_idx", False) in ask(url, INDEXES)  # invalid, as PostgreSQL leaves it
        await other.execute("INSERT INTO notes (tenant_id) VALUES (2)")
        await older.execute("COMMIT")
        assert (await asyncio.to_thread(applied, url, DECLARED + "notes = {}")).is_whole
        assert ask(url, INDEXES) == [("notes_pkey", True), ("notes_tenant_id_idx", True)]
        await older.close()
        await other.close()


@on_newest
async def test_killed_while_it_builds_an_index_it_is_finished_by_the_next_run(
    rls_databases: Databases, app_user: str, tmp_path: Path
) -> None:
    url = rls_databases(INVOICES, NOTES)
    (tmp_path / "rls.toml").write_text(BOTH)
    older = await asyncpg.connect(url)
    await older.execute("BEGIN; INSERT INTO notes (tenant_id) VALUES (1)")
    command = [sys.executable, "-m", "tenantry.cli.main", "rls", "apply", "--database-url", url]
    first = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    await _until(url, "SELECT count(*) FROM pg_stat_progress_create_index", 1)
    first.send_signal(signal.SIGKILL)
    await first.wait()
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenantry rls apply'"
    await _until(url, sessions, 0)
    assert ("notes_tenant_id_idx", False) in ask(url, INDEXES)
    assert ask(url, ROW_SECURITY, "notes") == [(False, False)]
    await older.execute("COMMIT")
    await older.close()
    second = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=subprocess.PIPE)
    said, _ = await second.communicate()
    assert (second.returncode, b"3 steps carried out" in said) == (0, True)
    assert all(valid for _, valid in ask(url, INDEXES))
    assert planned(url, BOTH).steps == ()


@on_newest
@pytest.mark.parametrize("steps_before", [1, 8], ids=["between indexes", "between policies"])
async def test_killed_between_any_two_steps_it_leaves_whole_tables_and_is_finished_by_the_next_run(
    rls_databases: Databases, app_user: str, tmp_path: Path, steps_before: int
) -> None:
    names = [f"t{number}" for number in range(6)]
    url = rls_databases(*(f"CREATE TABLE {name} (tenant_id int NOT NULL)" for name in names))
    declared = DECLARED + "".join(f"{name} = {{}}\n" for name in names)
    (tmp_path / "rls.toml").write_text(declared)
    command = [sys.executable, "-u", "-m", "tenantry.cli.main", "rls", "apply", "--database-url", url]
    first = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=subprocess.PIPE)
    assert first.stdout is not None
    for _ in range(steps_before):
        await first.stdout.readline()
    first.send_signal(signal.SIGKILL)
    await first.communicate()
    for name in names:
        switches = ask(url, ROW_SECURITY, name)[0]
        policies = ask(url, "SELECT FROM pg_policies WHERE tablename = $1", name)
        grants = ask(url, "SELECT has_table_privilege('app_user', $1, 'SELECT')", name)[0][0]
        assert (switches, len(policies), grants) in (((True, True), 1, True), ((False, False), 0, False))
    assert applied(url, declared, Bounds(attempts=20)).is_whole
    assert planned(url, declared).steps == ()


@on_newest
async def test_two_at_once_take_turns_and_the_second_says_who_has_it(
    rls_databases: Databases, app_user: str
) -> None:
    url = rls_databases(INVOICES, NOTES)
    older = await asyncpg.connect(url)
    await older.execute("BEGIN; INSERT INTO notes (tenant_id) VALUES (1)")
    first = asyncio.create_task(asyncio.to_thread(applied, url, BOTH, Bounds(build_wait=60, attempts=1)))
    await _until(url, "SELECT count(*) FROM pg_stat_progress_create_index", 1)
    second = await asyncio.to_thread(applied, url, BOTH, Bounds(lock_wait=0.1, attempts=1))
    assert second.blocked is not None
    assert [each.holds for each in second.blocked.holders] == ["the turn"]
    await older.execute("COMMIT")
    await older.close()
    assert (await first).is_whole


async def _until(url: str, query: str, value: int) -> None:
    """Asks until the answer is ``value``; the test's own time limit is the end of patience."""
    connection = await asyncpg.connect(url)
    while await connection.fetchval(query) != value:
        await connection.execute("SELECT pg_sleep(0.02)")
    await connection.close()


def _as(url: str, user: str) -> str:
    return url.replace("postgres@", f"{user}@", 1)


def _as_tenant(url: str, tenant: str) -> str:
    return f"{_as(url, 'app_user')}&app.tenant_id={tenant}"


def _granted_to_others(row: tuple[object, ...]) -> tuple[object, ...]:
    name, acl, *rest = row
    parts = str(acl or "").strip("{}").split(",")
    others = sorted(part for part in parts if part and "postgres=" not in part)
    return (name, others, *rest)
