"""What a team says of its database, in a short file: which tables hold tenants' rows, and who the roles are.

A file is TOML or JSON::

    setting = "app.tenant_id"        # the session setting that names the tenant
    column = "tenant_id"             # the tenant column, and its type: int, bigint, uuid or text
    type = "int"
    roles = ["app_user"]             # as whom tenants' requests run

    [tables]                         # tenant tables; what differs from the above stands with the table
    invoices = {}
    "billing.notes" = { column = "org_id", grants = ["select"], replaces = ["old"] }

    [shared]                         # the same rows for every tenant: read, never written; with the reason
    countries = "one list for everybody"

    [services]                       # roles that serve all tenants; with the reason
    reporting = "nightly totals over all tenants"

Names are those of the catalogue: in lower case, unless they were made in quotes. A name without a schema is
of ``schema`` ("public"); a dot belongs to a name where it stands in double quotes. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast, get_args

from tenantry.config import rules
from tenantry.config.syntax import decoded, parse_json, parse_toml
from tenantry.config.validation import Problems, Rule, Table, at, refused, table
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantType
from tenantry.rls.names import quoted
from tenantry.rls.roles import PUBLIC

TENANT_TYPES: tuple[str, ...] = get_args(TenantType)

GRANTS = ("select", "insert", "update", "delete")
"""What an application role may be given on a tenant table. TRUNCATE passes by row policies: it never is."""

LONGEST_NAME = 63
"""Bytes of a name, see "Identifiers and Key Words" of PostgreSQL's documentation."""

_KEYS = ("setting", "column", "type", "schema", "roles", "grants", "tables", "shared", "services")
_TABLE_KEYS = ("column", "type", "grants", "replaces", "keeps")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)+", re.ASCII)
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


class TableName(NamedTuple):
    """A table by schema and name, both as the catalogue has them. The text form is SQL."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class TenantTable:
    """One tenant table. ``grants``: what application roles may do to its rows, of :data:`GRANTS`.
    ``replaces``: policies of other names that the new one takes the place of; ``keeps``: those that may stay,
    although what they allow is allowed besides."""

    name: TableName
    column: str
    type: TenantType
    grants: tuple[str, ...] = GRANTS
    replaces: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What :func:`parse_declaration` reads. Immutable; safe to share between threads.

    ``shared`` and ``services`` map to the reason. ``roles`` has one or more names, none of them in
    ``services``; no table is in both lists.
    """

    roles: tuple[str, ...]
    tables: tuple[TenantTable, ...]
    setting: str = "app.tenant_id"
    shared: Mapping[TableName, str] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)


def parse_declaration(text: str | bytes, *, format: Literal["toml", "json"] = "toml") -> Declaration:
    """The declaration that ``text`` holds.

    Raises :class:`InvalidValue` with line and column for text that is not in its format, and
    :class:`~tenantry.config.validation.RegistryErrors` with every fault of its content at once: the place
    (``tables.invoices.type``), what is accepted, and the nearest known key for one that nobody reads.
    """
    plain = decoded(text, wanted="a declaration with [tables] and roles")
    whole = parse_toml(plain) if format == "toml" else parse_json(plain)
    problems = Problems()
    found = _read(Table("", whole, _KEYS, problems), problems)
    problems.raise_any()
    return found


def name_of(path: str, value: object) -> str:
    """A name as the catalogue keeps it: 1 to 63 bytes without NUL. Raises :class:`InvalidValue`."""
    if isinstance(value, str) and value and "\x00" not in value and _bytes_of(value) <= LONGEST_NAME:
        return value
    raise refused(path, value, f"a name of 1 to {LONGEST_NAME} bytes")


def table_name(path: str, value: str, schema: str) -> TableName:
    """``value`` as a table of ``schema`` or of the schema that it names. Raises :class:`InvalidValue`."""
    parts = [(found[1] or "").replace('""', '"') or found[2] for found in _PART.finditer(value)]
    written = ".".join(found[0] for found in _PART.finditer(value))
    if written != value or len(parts) not in (1, 2):
        raise refused(path, value, 'a table, or schema.table; a name with a dot in double quotes ("a.b")')
    names = [name_of(path, part) for part in parts]
    return TableName(*names) if len(names) == 2 else TableName(schema, names[0])


def _bytes_of(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:  # a lone surrogate: no server has such a name
        return LONGEST_NAME + 1


def _read(whole: Table, problems: Problems) -> Declaration:
    schema = whole.take("schema", name_of, "public")
    roles: tuple[str, ...] = whole.need("roles", _roles, cast("tuple[str, ...]", ()))
    defaults = TenantTable(
        TableName(schema, ""),
        whole.take("column", name_of, "tenant_id"),
        whole.take("type", _type, "int"),
        whole.take("grants", _grants, GRANTS),
    )
    return Declaration(
        roles=roles,
        setting=whole.take("setting", _setting, "app.tenant_id"),
        tables=_tables(whole, defaults, problems),
        shared=_shared(whole, schema, problems),
        services=_services(whole, roles, problems),
    )


def _tables(whole: Table, defaults: TenantTable, problems: Problems) -> tuple[TenantTable, ...]:
    given = table("tables", whole.raw("tables"), problems)
    if not given and isinstance(whole.raw("tables"), dict):
        problems.note(refused("tables", "nothing", "at least one tenant table", "Such as: invoices = {}"))
    found: dict[TableName, TenantTable] = {}
    for key, value in given.items():
        path = at("tables", key)
        name = problems.attempt(_named(defaults.name.schema), path, key, TableName("", ""))
        if name in found and name.name:
            problems.note(refused(path, key, "each table once", f"It is {name}, which stands above."))
        found[name] = _table(Table(path, value, _TABLE_KEYS, problems), name, defaults)
    return tuple(found.values())


def _table(parts: Table, name: TableName, defaults: TenantTable) -> TenantTable:
    return TenantTable(
        name,
        parts.take("column", name_of, defaults.column),
        parts.take("type", _type, defaults.type),
        parts.take("grants", _grants, defaults.grants),
        parts.take("replaces", _names("names of policies"), ()),
        parts.take("keeps", _names("names of policies"), ()),
    )


def _shared(whole: Table, schema: str, problems: Problems) -> dict[TableName, str]:
    given = table("shared", whole.raw("shared", {}), problems)
    tenants = table("tables", whole.raw("tables", {}), Problems())
    own = {_quietly(key, schema) for key in tenants}
    found: dict[TableName, str] = {}
    for key, value in given.items():
        path = at("shared", key)
        name = problems.attempt(_named(schema), path, key, TableName("", ""))
        if name in own:
            problems.note(refused(path, key, "a table that is not among the tenant tables"))
        found[name] = problems.attempt(_reason, path, value, "")
    return found


def _services(whole: Table, roles: tuple[str, ...], problems: Problems) -> dict[str, str]:
    given = table("services", whole.raw("services", {}), problems)
    found: dict[str, str] = {}
    for key, value in given.items():
        path = at("services", key)
        if problems.attempt(_role, path, key, "") in roles:
            problems.note(refused(path, key, "a role that is not an application role as well"))
        found[key] = problems.attempt(_reason, path, value, "")
    return found


def _named(schema: str) -> Rule[TableName]:
    return lambda path, value: table_name(path, str(value), schema)


def _quietly(key: str, schema: str) -> TableName | None:
    try:
        return table_name("", key, schema)
    except InvalidValue:  # told where the tables are read
        return None


def _setting(path: str, value: object) -> str:
    if isinstance(value, str) and _SETTING.fullmatch(value) and len(value) <= LONGEST_NAME:
        return value
    hint = "PostgreSQL takes settings of one's own only with a dot." if isinstance(value, str) else ""
    raise refused(path, value, "the name of a setting with a dot in it, such as app.tenant_id", hint)


def _type(path: str, value: object) -> TenantType:
    return cast("TenantType", rules.one_of(TENANT_TYPES)(path, value))


def _grants(path: str, value: object) -> tuple[str, ...]:
    found = _listed(path, value, f"a list of {', '.join(GRANTS)}; an empty one for none")
    given = {rules.one_of(GRANTS)(f"{path}[{place}]", each) for place, each in enumerate(found)}
    return tuple(each for each in GRANTS if each in given)


def _role(path: str, value: object) -> str:
    name = name_of(path, value)
    if name == PUBLIC or name.startswith("pg_"):
        raise refused(path, value, "a role of your own", "PUBLIC and pg_… are the server's.")
    return name


def _roles(path: str, value: object) -> tuple[str, ...]:
    found = _listed(path, value, "a list of one or more application roles")
    names = tuple(_role(f"{path}[{place}]", each) for place, each in enumerate(found))
    if not names or len(set(names)) < len(names):
        raise refused(path, value, "a list of one or more application roles, each once")
    return names


def _names(of: str) -> Rule[tuple[str, ...]]:
    def rule(path: str, value: object) -> tuple[str, ...]:
        found = _listed(path, value, f"a list of {of}")
        return tuple(dict.fromkeys(name_of(f"{path}[{place}]", each) for place, each in enumerate(found)))

    return rule


def _reason(path: str, value: object) -> str:
    if isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= 200:
        return value.strip()
    raise refused(path, value, "the reason, as one line of text of at most 200 characters")


def _listed(path: str, value: object, accepted: str) -> list[object]:
    if isinstance(value, list):
        return value
    raise refused(path, value, accepted)
