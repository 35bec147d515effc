"""What a binding accepts: tenants by their column's type, settings, roles; and what it says of others."""

import re
import subprocess
import sys
from uuid import UUID

import pytest

from tenantry.bindings import Binding, LeftBehind, use_tenant
from tenantry.bindings.context import current_tenant, enter, leave
from tenantry.bindings.errors import OtherTenant, TenantMissing
from tenantry.bindings.model import Facts, Judged, Leftover, LeftoverKind
from tenantry.bindings.names import literal
from tenantry.bindings.rules import Envelope, drive, unfit, why_not_committed
from tenantry.bindings.statements import begin
from tenantry.bindings.values import tenant_value
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantType

ONE = UUID("6b1ff9f6-3a5e-4b6e-8e3e-1d8a5f0f7c11")
FIT = Facts(False, "app", "app", False, (), ())


@pytest.mark.parametrize(
    ("kind", "given", "bound"),
    [
        ("text", "acme-7.eu", "acme-7.eu"),
        ("int", 42, "42"),
        ("int", "-2147483648", "-2147483648"),
        ("int", 0, "0"),
        ("bigint", 1 << 40, "1099511627776"),
        ("uuid", ONE, str(ONE)),
        ("uuid", str(ONE).upper(), str(ONE)),
    ],
)
def test_a_tenant_has_one_text_by_the_type_of_its_column(kind: TenantType, given: object, bound: str) -> None:
    assert tenant_value(given, kind) == bound


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("text", ""), ("text", "a'b"), ("text", "a" * 64), ("text", 7), ("text", None),
        ("int", True), ("int", 1 << 31), ("int", "007"), ("int", "+1"), ("int", "-0"), ("int", ""),
        ("int", 1.0), ("int", "٣"), ("bigint", 1 << 63), ("bigint", "9223372036854775808"),
        ("uuid", "{" + str(ONE) + "}"),
        ("uuid", ONE.hex), ("uuid", 5), ("uuid", ""),
    ],
)  # fmt: skip
def test_what_is_no_tenant_of_that_type_is_refused_and_named(kind: TenantType, given: object) -> None:
    with pytest.raises(InvalidValue, match=r"tenant: .* is not accepted; expected"):
        tenant_value(given, kind)


@pytest.mark.parametrize(
    "setting", ["tenant_id", "App.tenant", "app.", "app.tenant;", "app.tenant id", "", 3]
)
def test_a_setting_that_could_be_the_servers_own_or_is_no_name_is_refused(setting: str) -> None:
    with pytest.raises(InvalidValue, match=r"binding\.setting"):
        Binding(setting=setting)


def test_other_bad_bindings_say_what_is_accepted() -> None:
    with pytest.raises(InvalidValue, match=r"binding\.type.*one of int, bigint, uuid, text"):
        Binding(type="integer")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"binding\.role"):
        Binding(role="")


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_a_text_that_postgresql_cannot_hold_is_no_literal(text: str) -> None:
    with pytest.raises(InvalidValue):
        literal(text)


def test_begin_has_the_modes_that_are_given() -> None:
    assert begin() == "BEGIN"
    assert begin("SERIALIZABLE", read_only=True, deferrable=True) == (
        "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"
    )
    assert begin(read_only=False, deferrable=False) == "BEGIN READ WRITE NOT DEFERRABLE"


def test_each_leftover_is_a_finding_and_a_fit_session_has_none() -> None:
    assert unfit(Binding(), FIT) == ()
    found = unfit(Binding(role="app"), Facts(True, "reader", "app", True, ("t",), ("c",)))
    assert [leftover.kind for leftover in found] == [
        LeftoverKind.SETTING, LeftoverKind.ROLE, LeftoverKind.POWERFUL, LeftoverKind.TEMPORARY,
        LeftoverKind.CURSOR,
    ]  # fmt: skip
    assert unfit(Binding(role="owner"), FIT) == (Leftover(LeftoverKind.ROLE, "app"),)


class Missing(Exception):
    """What a driver raises where there is no such prepared statement."""

    sqlstate = "26000"


class Session:
    """Answers for a server: how many rows the first message gave, then facts."""

    def __init__(self, rows: int, *facts: tuple[object, ...], prepared: bool = True) -> None:
        self.rows, self.facts, self.sent, self.prepared = rows, list(facts), list[str](), prepared

    def open(self, judged: Judged) -> None:
        envelope = Envelope(Binding(), "acme", begin="BEGIN", judged=judged)
        answer: int | Exception | None = None
        if (message := envelope.opening()) is not None:
            try:
                answer = self.run(message)
            except Missing as error:
                answer = error
            if envelope.is_fit(answer):
                return
        drive(envelope.steps(answer), self.run, self.read)

    def run(self, sql: str) -> int:
        self.sent.append(sql)
        if "EXECUTE" in sql and not self.prepared:
            raise Missing
        return self.rows

    def read(self, sql: str) -> tuple[object, ...]:
        self.sent.append("facts")
        return self.facts.pop(0)

    @property
    def shapes(self) -> list[str]:
        return [re.sub(r"tenantry_\w+|'.*?'.*|\(.*", "", sql).strip() for sql in self.sent]


CLEAN = (False, "app", "app", False, [], [])
TEMPORARY = (False, "app", "app", False, ["scratch"], [])


def test_a_session_that_was_judged_before_takes_one_message() -> None:
    session = Session(1)
    session.open(Judged(done=True))
    assert session.shapes == ["BEGIN;EXECUTE"]


def test_a_session_without_the_prepared_statement_gets_it_in_the_second_message() -> None:
    judged, session = Judged(done=True), Session(1, prepared=False)
    session.open(judged)
    assert session.shapes == ["BEGIN;EXECUTE", "ROLLBACK;PREPARE"]
    assert session.sent[1].count("THEN pg_catalog.set_config") == 2
    assert (judged.hits, judged.misses) == (0, 1)


def test_where_the_prepared_statement_keeps_being_gone_it_is_not_expected_any_more() -> None:
    judged, session = Judged(done=True), Session(1, prepared=False)
    for _ in range(40):
        session.open(judged)
    assert judged.misses < 40
    assert session.shapes[-1] == "BEGIN;SELECT WHERE CASE WHEN pg_catalog.texteq"


def test_another_error_of_the_first_message_is_the_callers() -> None:
    class Broken(Exception):
        sqlstate = "57P01"

    envelope = Envelope(Binding(), "acme", begin="BEGIN", judged=Judged(done=True))
    assert not envelope.is_fit(Broken())
    with pytest.raises(Broken):
        drive(envelope.steps(Broken()), lambda sql: 1, lambda sql: ())


def test_the_first_time_everything_is_judged_before_anything_is_bound() -> None:
    judged, session = Judged(), Session(1, CLEAN)
    session.open(judged)
    assert session.shapes == ["BEGIN", "facts", "SELECT pg_catalog.set_config"]
    assert judged.done


def test_the_end_is_checked_through_a_prepared_statement_once_there_is_one() -> None:
    judged = Judged(done=True)
    envelope = Envelope(Binding(), "acme", begin="BEGIN", judged=judged)
    assert "EXECUTE" not in envelope.closing()
    judged.misses = 1
    assert envelope.closing().startswith("SAVEPOINT tenantry_end;EXECUTE tenantry_")


def test_only_a_prepared_statement_that_is_missing_in_an_open_transaction_is_checked_again() -> None:
    envelope = Envelope(Binding(), "acme", begin="BEGIN", judged=Judged(done=True))
    message = envelope.closing_anyhow(Missing(), is_open=True) or ""
    assert message.startswith("ROLLBACK TO tenantry_end;SELECT WHERE pg_catalog.texteq(")
    assert envelope.closing_anyhow(Missing(), is_open=False) is None
    assert envelope.closing_anyhow(ValueError(), is_open=True) is None


def test_a_suspicion_that_comes_to_nothing_binds_in_the_same_transaction() -> None:
    session = Session(0, CLEAN)
    session.open(Judged(done=True))
    assert session.shapes == ["BEGIN;EXECUTE", "facts", "SELECT pg_catalog.set_config"]


def test_what_is_found_is_cleaned_in_the_same_transaction_and_refused() -> None:
    session = Session(0, TEMPORARY, CLEAN)
    with pytest.raises(LeftBehind, match="temporary object scratch is there") as refused:
        session.open(Judged(done=True))
    assert refused.value.cleaned
    assert session.sent[1:] == ["facts", "DISCARD TEMP", "facts", "COMMIT"]


def test_what_cannot_be_cleaned_is_refused_and_said() -> None:
    powerful = (False, "app", "app", True, [], [])
    session, judged = Session(1, powerful), Judged()
    with pytest.raises(LeftBehind, match="It cannot be cleaned from here, and was closed") as refused:
        session.open(judged)
    assert not refused.value.cleaned
    assert session.sent == ["BEGIN", "facts", "COMMIT"]
    assert not judged.done


def test_why_a_commit_failed_is_told_apart_from_a_deferred_triggers_error() -> None:
    assert "changed" in str(why_not_committed("42704", was_open=True, is_open=True))
    assert "changed" in str(why_not_committed("42704", was_open=False, is_open=False))
    assert why_not_committed("42704", was_open=True, is_open=False) is None
    assert "unnoticed" in str(why_not_committed("25P02", was_open=True, is_open=True))
    assert why_not_committed("23503", was_open=True, is_open=False) is None
    assert why_not_committed(None, was_open=True, is_open=False) is None


def test_the_current_tenant_nests_and_is_put_back() -> None:
    assert current_tenant() is None
    with use_tenant("acme"):
        with use_tenant("globex"):
            assert current_tenant() == "globex"
        assert current_tenant() == "acme"
    assert current_tenant() is None


def test_transactions_that_end_out_of_order_leave_nothing_open() -> None:
    binding = Binding()
    first = enter(binding, "acme", doing="a test")
    second = enter(binding, "acme", doing="a test")
    leave(first)
    leave(second)
    leave(enter(binding, "globex", doing="a test"))


def test_another_binding_has_transactions_of_its_own() -> None:
    """Two databases whose tenants are of different types are not nested in one another."""
    opened = enter(Binding(), "acme", doing="a test")
    leave(enter(Binding(type="int"), 7, doing="a test"))
    with pytest.raises(OtherTenant):
        enter(Binding(), "globex", doing="a test")
    leave(opened)
    with pytest.raises(TenantMissing, match="a test: no tenant is named"):
        enter(Binding(), None, doing="a test")


@pytest.mark.parametrize(
    ("room", "client", "extra"),
    [
        ("asyncpg", "asyncpg", "postgres"),
        ("psycopg", "psycopg", "psycopg"),
        ("sqlalchemy", "sqlalchemy", "sqlalchemy"),
        ("django", "django", "django"),
    ],
)
def test_a_missing_client_is_one_line_that_names_the_install_command(
    room: str, client: str, extra: str
) -> None:
    program = f"import sys; sys.modules[{client!r}] = None; import tenantry.bindings.{room}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last.endswith(
        f"tenantry.bindings.{room} needs an extra that is not installed: pip install 'tenantry[{extra}]'"
    )


def test_importing_the_room_loads_no_driver() -> None:
    program = (
        "import sys, tenantry.bindings\n"
        "assert not {'asyncpg', 'psycopg', 'sqlalchemy', 'django'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
