"""The pure parts of this room: URLs of the three logins, and statements by name."""

import pytest

from tenantry.kernel.errors import InvalidValue, InvariantBroken
from tenantry.postgres import statements
from tenantry.postgres.urls import DatabaseUrls, password_of, redacted, with_database

SOCKET = "postgresql://postgres@/app?host=/tmp/x&port=5432"


@pytest.mark.parametrize(
    ("admin", "engine"),
    [
        ("postgresql://root:p%40ss@db:5432/app", "postgresql://tenantry_engine:p%40ss@db:5432/app"),
        ("postgres://root@db/app", "postgresql://tenantry_engine@db/app"),
        ("postgresql://db/app", "postgresql://tenantry_engine@db/app"),
        (
            "postgresql://u:p@a:1,b:2/app?sslmode=require",
            "postgresql://tenantry_engine:p@a:1,b:2/app?sslmode=require",
        ),
        ("postgresql:///app?user=root&host=/tmp", "postgresql://tenantry_engine@/app?host=/tmp"),
        ("postgresql://[::1]:5/app", "postgresql://tenantry_engine@[::1]:5/app"),
        (SOCKET, SOCKET.replace("postgres@", "tenantry_engine@")),
    ],
)
def test_the_engines_url_is_the_operators_with_another_login(admin: str, engine: str) -> None:
    urls = DatabaseUrls.derived(admin)
    assert urls.engine == engine
    assert urls.tenant == engine.replace("tenantry_engine", "tenantry_tenant")


def test_a_given_url_wins() -> None:
    urls = DatabaseUrls.derived("postgresql://root@db/app", engine="postgresql://e@pool/app")
    assert (urls.engine, urls.tenant) == ("postgresql://e@pool/app", "postgresql://tenantry_tenant@db/app")


def test_passwords_are_carried_decoded_and_never_shown() -> None:
    urls = DatabaseUrls.derived("postgresql://root:p%40ss@db/app?sslpassword=key")
    assert urls.engine_password == urls.tenant_password == "p@ss"
    assert "p%40ss" not in repr(urls)
    assert "key" not in repr(urls)
    assert redacted("postgresql:///app?password=abc") == "postgresql:///app?password=***"


def test_a_url_without_a_password_carries_none() -> None:
    assert DatabaseUrls.derived(SOCKET).engine_password is None
    assert password_of("postgresql:///app?password=abc") == "abc"


@pytest.mark.parametrize(
    "option", ["pgbouncer=true", "pgbouncer=TRUE&sslmode=require", "sslmode=require&pgbouncer=true"]
)
def test_the_pgbouncer_option_is_ours_and_not_sent_on(option: str) -> None:
    urls = DatabaseUrls.derived(f"postgresql://root@db/app?{option}")
    assert urls.pgbouncer
    assert "pgbouncer" not in urls.admin + urls.engine + urls.tenant


def test_the_pgbouncer_flag_can_be_given_as_an_argument() -> None:
    assert DatabaseUrls.derived(SOCKET, pgbouncer=True).pgbouncer
    assert not DatabaseUrls.derived(SOCKET + "&pgbouncer=true", pgbouncer=False).pgbouncer


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "mysql://root:secret@db/app",
        "db/app",
        "postgresql://root:secret@db",
        "postgresql://root:secret@db/",
        "postgresql://root:secret@[db/app",
        "postgresql://root:secret@db:notaport/app",
        "postgresql://root:secret@one:5432,two:70000/app",
        "postgresql://root:secret@/app?host=/tmp&port=0",
        "postgresql://root:secret@db/app?pgbouncer=maybe",
    ],
)
def test_what_is_no_url_of_postgresql_is_refused_without_its_password(wrong: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        DatabaseUrls.derived(wrong)
    assert "secret" not in str(caught.value)


def test_another_database_of_the_same_server() -> None:
    assert with_database(SOCKET, "o/ther") == "postgresql://postgres@/o%2Fther?host=/tmp/x&port=5432"


def test_an_unknown_statement_is_our_bug_and_names_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "names", lambda: ("queue/settle", "queue/claim"))
    with pytest.raises(InvariantBroken, match="did you mean 'queue/settle'"):
        statements.statement("queue/setle")


def test_every_statement_can_be_read_by_its_name() -> None:
    for name in statements.names():
        assert statements.statement(name).strip()
