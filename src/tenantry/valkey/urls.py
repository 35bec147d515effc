"""Where the authority is, as a URL. Pure.

=============================================  ==========================================================
``redis://user:password@host:6379/0``          one server; also ``valkey://``; ``rediss://`` and
                                               ``valkeys://`` speak TLS; ``unix:///path`` is a socket
``redis+sentinel://host:26379,host2/mymaster``  the master that Sentinels name; ``/mymaster/0`` for a database
``redis+cluster://host:6379,host2:6379``       a cluster, from any of its nodes
=============================================  ==========================================================
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from tenantry.kernel.errors import InvalidValue

_PORTS: Final = {"one": 6379, "sentinel": 26379, "cluster": 6379}
_TLS: Final = {"redis": False, "valkey": False, "rediss": True, "valkeys": True}
_ACCEPTED: Final = (
    "redis://host:port/0, redis+sentinel://host,host2/name, redis+cluster://host,host2 or unix:///path"
)


class Kind(StrEnum):
    """How servers are found."""

    ONE = "one"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class ValkeyUrl:
    """A parsed URL. ``hosts``: (host, port), at least one, or a path alone. ``service``: Sentinel's name of
    the master. The password is not shown."""

    kind: Kind
    hosts: tuple[tuple[str, int], ...] = ()
    path: str | None = None
    service: str = ""
    database: int = 0
    tls: bool = False
    username: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        where = self.path or ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"ValkeyUrl({self.kind}, {where})"


def parse(text: str, *, path: str = "authority") -> ValkeyUrl:
    """The URL. Raises :class:`InvalidValue`, naming ``path`` and never showing a password."""
    parts = urlsplit(text)
    scheme, _, how = parts.scheme.partition("+")
    if scheme == "unix" and not how and parts.path:
        return ValkeyUrl(Kind.ONE, path=parts.path, username=_name(parts), password=_secret(parts))
    try:
        kind = Kind(how or "one")
        found = _at_hosts(parts, kind, tls=_TLS[scheme])
    except (KeyError, ValueError, IndexError):
        raise InvalidValue(path, _without_secret(parts, text), _ACCEPTED) from None
    return found


def _at_hosts(parts: SplitResult, kind: Kind, *, tls: bool) -> ValkeyUrl:
    """Raises ValueError and IndexError for what is missing or too much."""
    hosts = tuple(_host(each, _PORTS[kind]) for each in parts.netloc.rpartition("@")[2].split(","))
    steps = [step for step in parts.path.split("/") if step]
    service = steps.pop(0) if kind is Kind.SENTINEL else ""
    database = int(steps.pop(0)) if steps else 0
    if steps or (kind is Kind.ONE and len(hosts) > 1) or (kind is Kind.CLUSTER and database):
        raise ValueError
    return ValkeyUrl(kind, hosts, None, service, database, tls, _name(parts), _secret(parts))


def _host(text: str, port: int) -> tuple[str, int]:
    split = urlsplit(f"//{text}")
    if not split.hostname:
        raise ValueError
    return split.hostname, split.port or port


def _name(parts: SplitResult) -> str | None:
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    return unquote(user) or None


def _secret(parts: SplitResult) -> str | None:
    secret = parts.netloc.rpartition("@")[0].partition(":")[2]
    return unquote(secret) or None


def _without_secret(parts: SplitResult, text: str) -> str:
    secret = parts.netloc.rpartition("@")[0]
    return text.replace(secret, "…") if secret else text
