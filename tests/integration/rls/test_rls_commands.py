"""``tenantry rls plan``, ``apply`` and ``explain`` as people and machines use them."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest
from rls_servers import Databases, run

from tenantry.cli import main as cli

pytestmark = [
    pytest.mark.needs_postgres,
    pytest.mark.parametrize("rls_server", [18], indirect=True),  # versions differ below, not here
]

DECLARED = 'roles = ["app_user"]\n[tables]\nnotes = {}\n'
NOTES = "CREATE TABLE notes (tenant_id int NOT NULL, kind text NOT NULL, body text)"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(rls_databases: Databases, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A database with notes, the declaration in ``rls.toml``, and both where the commands look for them."""
    rls_databases.role("app_user")
    found = rls_databases(NOTES)
    monkeypatch.setenv("TENANTRY_DATABASE_URL", found)
    monkeypatch.chdir(tmp_path)
    Path("rls.toml").write_text(DECLARED)
    return found


@pytest.fixture
def rls(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `tenantry rls …` here: exit code, standard output, standard error."""

    def run_it(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tenantry", "rls", *words])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run_it


def test_plan_apply_and_plan_again(url: str, rls: Command) -> None:
    code, out, _ = rls("plan", "--check")
    assert code == 1
    assert "CREATE POLICY tenant_isolation ON public.notes" in out
    code, out, err = rls("apply", "--down", "back.sql")
    assert (code, err) == (0, "")
    assert "2 steps carried out: the database is as declared." in out
    assert "DISABLE ROW LEVEL SECURITY" in Path("back.sql").read_text()
    assert rls("plan", "--check") == (0, "Nothing is missing: the database is as declared.\n", "")
    code, out, _ = rls("plan", "--json")
    assert json.loads(out) == {"steps": [], "objections": [], "remarks": [], "text": ""}


def test_a_way_back_is_never_written_over(url: str, rls: Command) -> None:
    assert rls("apply", "--down", "back.sql")[0] == 0
    first = Path("back.sql").read_text()
    Path("rls.toml").write_text(DECLARED + '[services]\nnightly = "totals over all"\n')
    code, out, err = rls("apply", "--down", "back.sql")
    assert (code, out) == (2, "")
    assert "back.sql is there already. It may be the way back of an earlier run" in err
    assert "give --down another file and keep both. To take all back, run the newest first" in err
    assert Path("back.sql").read_text() == first
    assert rls("plan", "--check")[0] == 1  # nothing was applied
    assert rls("apply", "--down", "back2.sql")[0] == 0
    assert "service_access" in Path("back2.sql").read_text()


def test_a_way_back_that_is_not_written_is_said(url: str, rls: Command) -> None:
    for attempt in ("something", "nothing"):
        code, _, err = rls("apply", "--down", "none/back.sql")
        assert (code, attempt) == (2, attempt)
        assert "none/back.sql cannot be written: none is no directory that you may write in" in err
        assert rls("apply")[0] == 0
    code, out, _ = rls("apply", "--down", "back.sql")
    assert code == 0
    assert out.endswith("back.sql was not written: nothing was done that could be taken back.\n")
    assert not Path("back.sql").exists()


def test_a_file_that_another_run_wrote_meanwhile_is_kept(
    url: str, rls: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenantry.cli.rls_write._refuse_no_way_back", lambda file: file.write_text("theirs"))
    code, _, err = rls("apply", "--down", "back.sql")
    assert (code, Path("back.sql").read_text()) == (2, "theirs")
    assert "back.sql is there already" in err
    assert rls("plan", "--check")[0] == 1


def test_an_index_that_a_wider_key_made_redundant_is_dropped_and_not_built_again(
    url: str, rls: Command
) -> None:
    assert "index public.notes by its tenant" in rls("apply")[1]
    run(url, "ALTER TABLE notes ADD id int NOT NULL, ADD PRIMARY KEY (tenant_id, id)")
    found = json.loads(rls("audit", "--declaration", "rls.toml", "--rule", "redundant-index", "--json")[1])
    (only,) = found["findings"]
    assert only["message"] == (
        "notes_tenant_id_idx finds nothing that notes_pkey does not: drop notes_tenant_id_idx, and keep "
        "notes_pkey, which begins with it."
    )
    run(url, only["fix_sql"])
    assert rls("plan", "--check")[:2] == (0, "Nothing is missing: the database is as declared.\n")


def test_what_stands_in_the_way_is_told_and_nothing_is_begun(url: str, rls: Command) -> None:
    Path("rls.toml").write_text(DECLARED + "note = {}\n")
    for words in (("plan",), ("apply",)):
        code, out, _ = rls(*words)
        assert code == 1
        assert "Nothing can be done yet, for 1 reason:" in out
        assert "there is no table public.note: did you mean public.notes?" in out
    code, out, _ = rls("apply", "--json")
    assert (code, json.loads(out)["done"], len(json.loads(out)["objections"])) == (1, [], 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "--declaration", "none.toml"), "there is no none.toml. A declaration names"),
        (("plan", "--down", "--format", "django"), "--down is for SQL"),
        (("plan", "--after", "x"), "--after is for migrations"),
        (("plan", "--format", "django", "--after", "x"), "app_label.name"),
        (("apply", "--attempts", "0"), "attempts: 0 is not accepted"),
        (("apply", "--lock-timeout", "nan"), "lock_wait: nan is not accepted"),
        (("explain",), "which queries?"),
        (("explain", "SELECT 1", "--top", "3"), "which queries?"),
        (("explain", "SELECT 1"), "which tenant?"),
        (("explain", "SELECT 1", "--tenant", "1", "--role", "app_usr"), "did you mean 'app_user'?"),
        (("explain", "--top", "3", "--tenant", "1"), "CREATE EXTENSION pg_stat_statements"),
    ],
    ids=["no file", "down", "after", "django", "attempts", "timeout", "no query", "two", "no tenant",
         "role", "no statistics"],
)  # fmt: skip
def test_a_call_that_must_be_changed_is_told_how(
    url: str, rls: Command, words: tuple[str, ...], said: str
) -> None:
    code, out, err = rls(*words)
    assert (code, out) == (2, "")
    assert said in err


def test_without_a_database_the_option_is_named(
    url: str, rls: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TENANTRY_DATABASE_URL")
    code, _, err = rls("plan")
    assert (code, "which database? Name it with --database-url" in err) == (2, True)


async def test_giving_up_is_exit_code_1_with_the_holder(url: str, rls: Command) -> None:
    holder = await asyncpg.connect(url)
    await holder.execute("BEGIN; LOCK TABLE notes IN ROW EXCLUSIVE MODE")
    words = ("apply", "--attempts", "1", "--lock-timeout", "0.1", "--build-timeout", "0.1")
    code, out, _ = await asyncio.to_thread(rls, *words)
    assert code == 1
    assert "Gave up after 1 attempt: index public.notes by its tenant" in out
    assert f"process {holder.get_server_pid()} (postgres) holds RowExclusiveLock on notes" in out
    code, out, _ = await asyncio.to_thread(rls, *words, "--json")
    assert json.loads(out)["blocked"]["holders"][0]["pid"] == holder.get_server_pid()
    await holder.close()


def test_explain_tells_people_and_machines_the_same(url: str, rls: Command) -> None:
    assert rls("apply")[0] == 0
    run(url, "INSERT INTO notes SELECT g % 9, 'k' || g, 'x' FROM generate_series(1, 5000) g",
        'CREATE INDEX by_kind ON notes (tenant_id, kind COLLATE "C")', "ANALYZE notes")  # fmt: skip
    Path("queries.sql").write_text("SELECT * FROM notes WHERE kind LIKE 'k12%';\nSELECT FROM nowhere;")
    code, out, _ = rls("explain", "--tenant", "3", "--file", "queries.sql", "--check")
    assert code == 1
    assert "held back: notes.kind ~~ 'k12%'::text" in out
    assert "instead: kind ^@ 'k12'" in out
    assert "Plan were pg_catalog.textlike(text, text) leakproof:" in out
    assert 'not planned: [42P01] relation "nowhere" does not exist' in out
    assert out.endswith("Of 2 statements, 1 slowed down and 1 not planned.\n")
    code, out, _ = rls("explain", "--tenant", "3", "--file", "queries.sql", "--json")
    first, second = json.loads(out)["queries"]
    assert (code, first["well"], first["held_back"][0]["indexes"]) == (0, False, ["by_kind"])
    assert first["readings"][0]["tenant_leads"] is True
    assert first["plan_if_leakproof"] is not None
    assert second["error"].startswith("[42P01]")
