"""The operator's commands on a database of its own."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_commands import REGISTRY, Command, said

from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.urls import DatabaseUrls

pytestmark = pytest.mark.needs_postgres


def test_a_registry_is_shown_before_it_is_applied_and_not_without_a_yes(on: Command, tmp_path: Path) -> None:
    file = tmp_path / "registry.toml"
    file.write_text(REGISTRY)
    refused = on("tenants", "import", str(file), code=2)
    assert "+ tenant acme: tier gold" in refused
    assert "--yes" in refused
    assert said(on("tenants", "list", "--json"))["tenants"] == []
    applied = on("tenants", "import", str(file), "--yes")
    assert "Version 1 is in force." in applied
    assert "Nothing changes." in on("tenants", "import", str(file), "--yes")


def test_an_export_of_tenants_keeps_the_tiers_that_are_in_force(registered: Command, tmp_path: Path) -> None:
    file = tmp_path / "services.csv"
    file.write_text("tenant,tier\ninitech,gold\nacme,gold\n")
    shown = registered("tenants", "import", str(file), "--yes")
    assert "- tenant globex" in shown
    listed = said(registered("tenants", "list", "--json"))
    assert [each["tenant"] for each in listed["tenants"]] == ["acme", "initech"]
    assert {tier["name"]: tier["weight"] for tier in listed["tiers"]}["gold"] == 3


def test_one_tenant_is_added_or_moved_and_the_rest_stays(registered: Command) -> None:
    assert "+ tenant initech: tier standard" in registered("tenants", "add", "initech")
    assert "~ tenant globex: tier free -> critical" in registered(
        "tenants", "add", "globex", "--tier", "critical"
    )
    shown = registered("tenants", "show", "globex")
    assert "orders: url https://example.com/orders" in shown
    assert "signed yes" in shown
    assert "whsec" not in shown
    assert "Did you mean 'globex'?" in registered("tenants", "show", "globx", code=2)
    assert "'gold'" in registered("tenants", "add", "x", "--tier", "glod", code=2)


def test_a_key_is_shown_once_listed_by_its_id_and_revoked(registered: Command) -> None:
    made = said(registered("tenants", "key", "create", "acme", "--note", "for CI", "--json"))
    assert made["api_key"].startswith(f"tk_{made['key_id']}_")
    listed = registered("tenants", "key", "list", "acme")
    assert "for CI" in listed
    assert made["api_key"] not in listed
    assert "Revoked." in registered("tenants", "key", "revoke", made["key_id"])
    assert said(registered("tenants", "key", "list", "acme", "--json"))[0]["revoked_at"] is not None
    assert "the id of a key" in registered("tenants", "key", "revoke", "nothing", code=2)


def test_a_key_may_expire_and_the_list_says_when(registered: Command) -> None:
    registered("tenants", "key", "create", "acme", "--expires-in", "30")
    (listed,) = said(registered("tenants", "key", "list", "acme", "--json"))
    assert listed["expires_at"] - listed["created_at"] == pytest.approx(30 * 86_400, abs=60)
    registered("tenants", "key", "create", "acme", "--expires-in", "0", code=2)


def test_a_waiting_job_is_listed_explained_and_cancelled(registered: Command) -> None:
    job = said(registered("submit", "handler:x", "-d", '{"a":1}', "-t", "acme", "--json"))["id"]
    [listed] = said(registered("jobs", "list", "-t", "acme", "--json"))
    assert (listed["id"], listed["state"]) == (job, "waiting")
    explained = said(registered("jobs", "explain", job, "-t", "acme", "--json"))
    assert [reason["waits_for"] for reason in explained["reasons"]][:2] == ["planner", "no_slot"]
    assert "pool 'gold' has no live slots" in registered("jobs", "explain", job, "-t", "acme")
    assert "has no job" in registered("jobs", "show", job, "-t", "globex", code=2)
    assert "Cancelled." in registered("jobs", "cancel", job, "-t", "acme")
    assert "It has ended: cancelled" in registered("jobs", "explain", job, "-t", "acme")
    assert "cancelled" in registered("jobs", "show", job, "-t", "acme")
    assert said(registered("jobs", "counts", "--json"))["cancelled"] == 1
    assert registered("jobs", "audit") == "The books add up.\n"


def test_one_key_is_one_job_and_another_body_under_it_is_refused(registered: Command) -> None:
    first = said(registered("submit", "handler:x", "-d", "1", "--key", "k", "-t", "acme", "--json"))
    again = said(registered("submit", "handler:x", "-d", "1", "--key", "k", "-t", "acme", "--json"))
    assert again == {"id": first["id"], "existing": True}
    refused = registered("submit", "handler:x", "-d", "2", "--key", "k", "-t", "acme", "--json", code=1)
    assert said(refused)["refused"]["rule"] == "idempotency_key_reused"


def test_a_file_of_jobs_goes_in_whole_or_not_at_all(registered: Command, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text("".join(f'{{"target":"handler:x","payload":{n}}}\n' for n in range(25)))
    sent = said(registered("submit", "--jobs", str(file), "--batch", "10", "-t", "acme", "--json"))
    assert (sent["accepted"], len(sent["ids"])) == (25, 25)
    assert said(registered("jobs", "counts", "--json"))["waiting"] == 25


def test_the_doctor_warns_of_what_does_not_run_and_fails_for_what_is_broken(
    registered: Command, database_urls: DatabaseUrls
) -> None:
    checks = {
        each["name"]: each for each in said(registered("doctor", "--json", code=_doctors_code()))["checks"]
    }
    assert {checks[name]["verdict"] for name in ("planner", "workers")} == {"warn"}
    assert {
        checks[name]["verdict"] for name in ("server", "migrations", "logins", "row policies", "books")
    } == {"ok"}
    execute(database_urls.admin, "ALTER TABLE tenantry.jobs NO FORCE ROW LEVEL SECURITY")
    told = registered("doctor", code=1)
    assert "fail  row policies" in told
    assert "not in force on jobs" in told


def test_the_schema_is_brought_up_to_date_and_looked_at_before(
    command: Command, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENANTRY_DATABASE_URL", empty_database_url)
    assert "tenantry migrate" in command("jobs", "counts", code=3)
    lacking = said(command("migrate", "--dry-run", "--json"))["pending"]
    assert lacking[0] == "0001_roles"
    assert said(command("migrate", "--json"))["applied"] == lacking
    assert "up to date" in command("migrate")
    assert said(command("jobs", "counts", "--json"))["waiting"] == 0


@pytest.fixture
def over_tcp(embedded_server_factory: Callable[..., EmbeddedServer]) -> Iterator[str]:
    """HOST:PORT of a server that asks for passwords."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with embedded_server_factory(settings={"listen_addresses": "127.0.0.1", "port": str(port)}):
        yield f"127.0.0.1:{port}"


def test_a_wrong_password_is_told_without_it(command: Command, over_tcp: str) -> None:
    told = command("migrate", "--database-url", f"postgresql://postgres:hunter2@{over_tcp}/postgres", code=3)
    assert "refused the login" in told
    assert "hunter2" not in told


def _doctors_code() -> int:
    """Test servers run without fsync, which the doctor rightly calls broken."""
    return 1


def execute(url: str, statement: str) -> None:
    import asyncio

    from tenantry.postgres.database import connect_once

    async def go() -> None:
        connection = await connect_once(url)
        await connection.execute(statement)
        await connection.close()

    asyncio.run(go())


def test_the_doctor_names_a_pool_that_sheds_since_when_and_why(
    registered: Command, database_urls: DatabaseUrls
) -> None:
    since, until = "clock_timestamp() - interval '41 s'", "clock_timestamp() + interval '60 s'"
    row = f"'shared', 2, 9.25, 1.0, 30.0, {since}, {until}"
    execute(database_urls.admin, f"INSERT INTO tenantry.shedding VALUES ({row})")
    (found,) = (
        each
        for each in said(registered("doctor", "--json", code=_doctors_code()))["checks"]
        if each["name"] == "shedding"
    )
    assert found["verdict"] == "warn"
    assert "shared: level retries for 4" in found["found"]
    assert "wait 9.2 s within their quota, 100% of its slots in use" in found["found"]


def test_the_operator_who_submits_for_a_tenant_is_told_what_its_pool_sheds(
    registered: Command, database_urls: DatabaseUrls
) -> None:
    row = "'shared', 3, 9.25, 1.0, 45.0, clock_timestamp(), clock_timestamp() + interval '60 s'"
    execute(database_urls.admin, f"INSERT INTO tenantry.shedding VALUES ({row})")
    told = registered("submit", "handler:x", "-d", "1", "-t", "globex", "--json", code=1)
    assert said(told)["refused"]["rule"] == "overload"
