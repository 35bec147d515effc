"""Which places beyond our own a tenant may read and write: the operator's word, and nobody else's. Pure.

A tenant names a connection and a place in it; the address of the system and its credentials are here. What is
not listed for a tenant is not there for it: a connection that does not exist, one that is not opened to this
tenant and a place that is not in its list are refused alike, so that nobody learns what others have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tenantry.config import rules
from tenantry.config.syntax import decoded, parse_toml
from tenantry.config.validation import Described, Problems, Table, at, refused, table
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId

KINDS = ("jsonl", "table", "rabbitmq", "kafka", "sqs", "nats")
EVERYONE = "*"
"""Stands for all tenants where a tenant's id could stand."""

_NOTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})
_EMPTY: Mapping[str, str] = MappingProxyType({})
_KEYS = ("kind", "url", "options", "tenants")
_GRANT_KEYS = ("sources", "targets")
_HINT = "The operator lists, per tenant, what may be used of each connection; see docs/replay-sources.md."


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One system. ``url``: where it is, with its credentials (for ``jsonl``: an absolute directory); never
    shown. ``options``: the kind's own, flat text to text; may hold secrets. ``sources`` and ``targets``: for
    a tenant, or :data:`EVERYONE`, the places that it may read, and write: each exact, or a beginning and
    ``*``."""

    name: str
    kind: str
    url: str = field(repr=False)
    options: Mapping[str, str] = field(default_factory=lambda: _EMPTY, repr=False)
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)


class Connections:
    """All that the operator has configured. Immutable: any task, any thread."""

    def __init__(self, connections: Mapping[str, Connection] | None = None) -> None:
        self._by_name = dict(connections or {})

    def __iter__(self) -> Any:
        return iter(self._by_name.values())

    def for_source(self, tenant: TenantId, *, kind: str, connection: str, place: str) -> Connection:
        """The connection through which ``tenant`` may read ``place``. Raises :class:`InvalidValue`, the same
        for whatever is not there for this tenant."""
        found = self._by_name.get(connection)
        if found is not None and found.kind == kind and _is_granted(found.sources, tenant, place):
            return found
        accepted = f"a place of a {kind} connection that is open to {tenant} for reading"
        raise InvalidValue("source", Described(f"{connection!r} with {place!r}"), accepted, _HINT)

    def for_target(self, tenant: TenantId, *, connection: str, place: str) -> Connection | None:
        """The connection through which ``tenant`` may write to ``place``, or None."""
        found = self._by_name.get(connection)
        return found if found is not None and _is_granted(found.targets, tenant, place) else None


NO_CONNECTIONS = Connections()


def parse_connections(text: str | bytes) -> Connections:
    """The operator's TOML document of connections.

    Raises :class:`InvalidValue` for text that is not TOML and
    :class:`~tenantry.config.validation.RegistryErrors` for what it must not say; neither shows a URL.
    """
    problems = Problems()
    body = Table("", parse_toml(decoded(text, wanted="connections")), ("connections",), problems)
    found = {
        problems.attempt(rules.name, at("connections", name), name, name): _connection(name, obj, problems)
        for name, obj in table("connections", body.raw("connections", {}), problems).items()
    }
    problems.raise_any()
    return Connections(found)


def _connection(name: str, obj: object, problems: Problems) -> Connection:
    path = at("connections", name)
    keys = Table(path, obj, _KEYS, problems)
    grants = table(at(path, "tenants"), keys.raw("tenants", {}), problems)
    read = {tenant: _grant(at(at(path, "tenants"), tenant), tenant, each, problems)
            for tenant, each in grants.items()}  # fmt: skip
    options = table(at(path, "options"), keys.raw("options", {}), problems)
    return Connection(
        name=name,
        kind=keys.need("kind", rules.one_of(KINDS), KINDS[0]),
        url=keys.need("url", _url, ""),
        options=MappingProxyType(
            {
                key: problems.attempt(_text, at(at(path, "options"), key), value, "")
                for key, value in options.items()
            }
        ),
        sources=MappingProxyType({tenant: sources for tenant, (sources, _) in read.items()}),
        targets=MappingProxyType({tenant: targets for tenant, (_, targets) in read.items()}),
    )


def _grant(
    path: str, tenant: str, obj: object, problems: Problems
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if tenant != EVERYONE:
        problems.attempt(rules.tenant, path, tenant, TenantId(tenant))
    keys = Table(path, obj, _GRANT_KEYS, problems)
    return keys.take("sources", _places, ()), keys.take("targets", _places, ())


def _is_granted(grants: Mapping[str, tuple[str, ...]], tenant: TenantId, place: str) -> bool:
    patterns = grants.get(tenant, ()) + grants.get(EVERYONE, ())
    return any(_matches(pattern, place) for pattern in patterns)


def _matches(pattern: str, place: str) -> bool:
    return place.startswith(pattern[:-1]) if pattern.endswith("*") else place == pattern


def _url(path: str, value: object) -> str:
    if isinstance(value, str) and value and value.isprintable():
        return value
    raise InvalidValue(path, Described("this value"), "the URL of the system, or a directory for jsonl")


def _text(path: str, value: object) -> str:
    """Numbers and booleans are as TOML writes them. Not shown: it may be a secret."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)):
        return str(value)
    raise InvalidValue(path, Described("this value"), "text, a whole number, true or false")


def _places(path: str, value: object) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(each, str) and each for each in value):
        for each in value:
            if "*" in each[:-1]:
                raise refused(path, each, "places, each exact or a beginning with * at its end")
        return tuple(value)
    raise refused(path, value, "a list of places, each exact or a beginning with * at its end")
