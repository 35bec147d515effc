"""The statements that bind, ask and check. Pure; made once for a binding.

All travel without parameters, so that they can share a message with BEGIN and COMMIT. Functions are named
with their schema, and stand where operators would: what a session did to its search_path changes nothing
here, and to look an operator up in a schema takes the server longer. What is sent in every transaction is
kept cheap: its rows have no columns, which the server would have to describe, and it calls few functions."""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

from tenantry.bindings.model import Binding
from tenantry.bindings.names import literal

_FACTS = """
SELECT coalesce(pg_catalog.current_setting({setting}, true), '') OPERATOR(pg_catalog.<>) '' AS setting,
       current_user::pg_catalog.text AS "user",
       session_user::pg_catalog.text AS login,
       (SELECT r.rolsuper OR r.rolbypassrls FROM pg_catalog.pg_roles r
         WHERE r.rolname OPERATOR(pg_catalog.=) current_user) AS powerful,
       ARRAY(SELECT c.relname::pg_catalog.text FROM pg_catalog.pg_class c
              WHERE c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()
                AND c.relkind OPERATOR(pg_catalog.<>) ALL (ARRAY['i', 'I', 't']::pg_catalog."char"[])
              UNION ALL
             SELECT p.proname::pg_catalog.text FROM pg_catalog.pg_proc p
              WHERE p.pronamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()
              UNION ALL
             SELECT t.typname::pg_catalog.text FROM pg_catalog.pg_type t
              WHERE t.typnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()
                AND t.typtype OPERATOR(pg_catalog.=) ANY (ARRAY['d', 'e', 'r']::pg_catalog."char"[])
       ) AS temporary,
       ARRAY(SELECT c.name FROM pg_catalog.pg_cursor() c WHERE c.is_holdable) AS cursors
"""


_END = "tenantry_end"
_NO_SETTING = "tenantry_tenant_changed"
"""To set it fails: nobody can make a setting without a dot."""


@dataclass(frozen=True, slots=True)
class Statements:
    """``facts`` reads one row, in the order of :class:`~tenantry.bindings.model.Facts`."""

    facts: str
    _name: str
    _set: str
    _bind: tuple[str, str]
    _check: tuple[str, str]

    def opened(self, begin: str, value: str) -> str:
        """BEGIN and the binding in one message, whose last command has one row, or none: then the session is
        suspect and nothing is bound. May suspect an innocent session (its temporary tables are gone); never
        the other way round."""
        return f"{begin};{literal(value).join(self._bind)}"

    def executed(self, begin: str, value: str) -> str:
        """As :meth:`opened`, through the statement that :meth:`prepared` leaves in the session: to parse and
        plan it each time would cost the server more than the whole transaction else does."""
        return f"{begin};EXECUTE {self._name}({literal(value)})"

    def prepared(self, begin: str, value: str) -> str:
        """As :meth:`opened`, after ROLLBACK, and what :meth:`executed` needs from now on."""
        bind, check = "$1".join(self._bind), "$1".join(self._check)
        return (
            f"ROLLBACK;PREPARE {self._name}(pg_catalog.text) AS {bind};"
            f"PREPARE {self._name}_end(pg_catalog.text) AS {check};{self.opened(begin, value)}"
        )

    def bound(self, value: str) -> str:
        """The binding alone, in a transaction that has begun and whose session was judged."""
        return f"SELECT {self._set}{literal(value)}, true)"

    def committed(self, value: str) -> str:
        """COMMIT in one message behind a check that fails where tenant or role were changed.

        Through the statement that :meth:`prepared` left, behind a savepoint, since the body may have lost
        it (DEALLOCATE ALL, which psycopg sends after a DROP): then :meth:`committed_anyhow` goes on from
        there."""
        return f"SAVEPOINT {_END};EXECUTE {self._name}_end({literal(value)});COMMIT"

    def committed_anyhow(self, value: str) -> str:
        """As :meth:`committed`, after its prepared statement was found missing."""
        return f"ROLLBACK TO {_END};{literal(value).join(self._check)};COMMIT"

    def committed_at_once(self, value: str) -> str:
        """As :meth:`committed`, for sessions that keep no prepared statement."""
        return f"{literal(value).join(self._check)};COMMIT"


@lru_cache(maxsize=64)
def statements(binding: Binding) -> Statements:
    """The statements of ``binding``."""
    setting = literal(binding.setting)
    role = "session_user" if binding.role is None else literal(binding.role)
    as_role = f" AND pg_catalog.nameeq(current_user, {role})"
    same = f"pg_catalog.texteq(coalesce(pg_catalog.current_setting({setting}, true), ''), "
    # a cursor that is there before the transaction's first statement can only be WITH HOLD
    fit = (
        f"{same}''){as_role} AND pg_catalog.oideq(pg_catalog.pg_my_temp_schema(), 0)"
        " AND NOT EXISTS (SELECT FROM pg_catalog.pg_cursor())"
    )
    setter = f"pg_catalog.set_config({setting}, "
    # CASE and OR keep their order, as conditions that AND joins in a WHERE do not
    bind = (f"SELECT WHERE CASE WHEN {fit} THEN {setter}", ", true) IS NOT NULL END")
    failing = f"pg_catalog.set_config('{_NO_SETTING}', '', true) IS NULL"
    check = (f"SELECT WHERE {same}", f"){as_role} OR {failing}")
    return Statements(
        facts=_FACTS.format(setting=setting),
        _name=f"tenantry_{sha256(str((bind, check)).encode()).hexdigest()[:16]}",
        _set=setter,
        _bind=bind,
        _check=check,
    )


def begin(
    isolation: str | None = None, *, read_only: bool | None = None, deferrable: bool | None = None
) -> str:
    """BEGIN with the modes that are given. ``isolation`` is a level of SQL's, in capitals."""
    words = ["BEGIN"]
    if isolation:
        words.append(f"ISOLATION LEVEL {isolation}")
    if read_only is not None:
        words.append("READ ONLY" if read_only else "READ WRITE")
    if deferrable is not None:
        words.append("DEFERRABLE" if deferrable else "NOT DEFERRABLE")
    return " ".join(words)
