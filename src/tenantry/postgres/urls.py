"""The URLs of the three logins, derived from one. Pure, except that nothing here connects.

A URL is ``postgresql://user:password@host:port/database?option=value``; for a Unix socket the host is the
option ``host=/directory``. ``pgbouncer=true`` is an option of ours: the server is a PgBouncer in transaction
mode, so nothing may be kept on a session (no settings at start, no prepared statements, no LISTEN).
"""

from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from tenantry.kernel.errors import InvalidValue

ENGINE_LOGIN = "tenantry_engine"
TENANT_LOGIN = "tenantry_tenant"

_ACCEPTED = "postgresql://user:password@host:port/database"
_FLAG = "pgbouncer"


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseUrls:
    """Where each login connects. Made by :meth:`derived`; the text form shows no password.

    ``pgbouncer``: the engine and the tenants go through a PgBouncer in transaction mode.
    """

    admin: str
    engine: str
    tenant: str
    pgbouncer: bool = False

    @classmethod
    def derived(
        cls,
        admin: str,
        *,
        engine: str | None = None,
        tenant: str | None = None,
        pgbouncer: bool | None = None,
    ) -> Self:
        """The three URLs from the operator's; ``engine`` and ``tenant`` win where given.

        A derived URL has the same host, database, options and password, and its own login. ``pgbouncer`` is
        read from the engine's URL (else the operator's) unless given. Raises :class:`InvalidValue`, without
        showing a password, for a text that is no URL of PostgreSQL.
        """
        given = {"admin": admin, "engine": engine, "tenant": tenant}
        flags = [_flag(url, path) for path, url in given.items() if url is not None]
        return cls(
            admin=_plain(admin),
            engine=_plain(engine) if engine else _with_login(_plain(admin), ENGINE_LOGIN),
            tenant=_plain(tenant) if tenant else _with_login(_plain(admin), TENANT_LOGIN),
            pgbouncer=any(flags) if pgbouncer is None else pgbouncer,
        )

    @property
    def engine_password(self) -> str | None:
        """The password in the engine's URL, for ``migrate`` to set."""
        return password_of(self.engine)

    @property
    def tenant_password(self) -> str | None:
        """The password in the tenants' URL, for ``migrate`` to set."""
        return password_of(self.tenant)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={redacted(getattr(self, name))!r}" for name in ("admin", "engine", "tenant")
        )
        return f"DatabaseUrls({shown}, pgbouncer={self.pgbouncer})"


def redacted(url: str) -> str:
    """``url`` for people and logs: its password, wherever it stands, is replaced by ``***``."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    kept = [
        (name, "***" if name in ("password", "sslpassword") else value) for name, value in _options(parts)
    ]
    netloc = f"{user}{':***' if colon else ''}{at}{host}"
    return _joined(parts._replace(netloc=netloc), kept)


def with_database(url: str, database: str) -> str:
    """``url``, but of another database of the same server."""
    parts = urlsplit(url)
    return _joined(parts._replace(path="/" + quote(database, safe="")), _options(parts))


def password_of(url: str) -> str | None:
    """The password that ``url`` carries, or None."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    _, colon, password = login.partition(":")
    return unquote(password) if colon else dict(_options(parts)).get("password")


def _with_login(url: str, login: str) -> str:
    parts = urlsplit(url)
    old, _, host = parts.netloc.rpartition("@")
    _, colon, password = old.partition(":")
    kept = [(name, value) for name, value in _options(parts) if name != "user"]
    return _joined(parts._replace(netloc=f"{login}{colon}{password}@{host}"), kept)


def _plain(url: str) -> str:
    """``url`` without the option that is ours: the driver would send it to the server."""
    parts = urlsplit(url)
    return _joined(parts, [(name, value) for name, value in _options(parts) if name != _FLAG])


def _flag(url: str, path: str) -> bool:
    value = dict(_options(_checked(url, path))).get(_FLAG, "false")
    if value.lower() not in ("true", "false"):
        raise InvalidValue(f"{path}?{_FLAG}", value, "true or false")
    return value.lower() == "true"


def _checked(url: str, path: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidValue(path, "a text that is no URL", _ACCEPTED) from None
    if parts.scheme not in ("postgresql", "postgres"):
        raise InvalidValue(path, f"{parts.scheme}:…", _ACCEPTED)
    if len(parts.path) < 2:
        raise InvalidValue(path, redacted(url), _ACCEPTED, "It names no database.")
    for port in _ports(parts):
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise InvalidValue(
                f"{path} port", port, "a whole number from 1 to 65535", "It stands behind the host."
            )
    return parts


def _ports(parts: SplitResult) -> list[str]:
    """Those that are given, of each host."""
    hosts = parts.netloc.rpartition("@")[2].split(",")
    behind = (each.rpartition("]")[2] if each.startswith("[") else each for each in hosts)
    given = [each.rpartition(":")[2] for each in behind if ":" in each]
    return [each for each in (*given, *dict(_options(parts)).get("port", "").split(",")) if each]


def _options(parts: SplitResult) -> list[tuple[str, str]]:
    return parse_qsl(parts.query, keep_blank_values=True)


def _joined(parts: SplitResult, options: list[tuple[str, str]]) -> str:
    query = urlencode(options, safe="/*", quote_via=quote)
    text = urlunsplit(("", parts.netloc, parts.path, query, ""))
    rest = text.removeprefix("//") if parts.netloc else text.lstrip("/")
    return f"postgresql://{rest}" if parts.netloc else f"postgresql:///{rest}"
