"""What a database's catalogue says about who may see and do what: one immutable picture, of one moment.

Objects carry their OID and refer to each other by it; roles are known by name, which is unique in a server.
:data:`~tenantry.rls.roles.PUBLIC` stands for everybody. Nothing here judges: that is for the rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tenantry.rls.names import quoted
from tenantry.rls.roles import Grant, Membership, Role, RoleSetting


@dataclass(frozen=True, slots=True)
class Schema:
    oid: int
    name: str
    owner: str
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """``number`` is its attribute number. ``type`` as ``format_type`` writes it; ``type_oid`` of a domain is
    the domain's. ``generated``: '' or 'stored' or 'virtual'; ``identity``: '' or 'always' or 'by default'."""

    number: int
    name: str
    type: str
    type_oid: int
    not_null: bool = False
    default: str | None = None
    identity: str = ""
    generated: str = ""
    grants: tuple[Grant, ...] = ()

    @property
    def is_drawn(self) -> bool:
        """Whether what it takes where nothing is given meets no other row's: of a sequence, NULL, a UUID that
        is made."""
        if self.generated or self.identity:
            return bool(self.identity)
        default = self.default
        return default is None or "nextval(" in default or (self.type == "uuid" and "(" in default)


RelationKind = Literal["table", "partitioned table", "foreign table", "view", "materialized view", "sequence"]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, view, materialized view, foreign table or sequence.

    ``parents``: what it inherits from or is a partition of. ``reads``: for views, the relations of its query.
    ``tree``: for views, the query as the server keeps it. ``server``: for foreign
    tables. ``owned_by``: for sequences, the table and the column. ``extension``: the extension whose member
    it is, or "". ``rows``: the planner's estimate,
    -1 where never analysed.
    """

    oid: int
    schema: str
    name: str
    kind: RelationKind
    owner: str
    grants: tuple[Grant, ...] = ()
    columns: tuple[Column, ...] = ()
    rls_enabled: bool = False
    rls_forced: bool = False
    is_partition: bool = False
    parents: tuple[int, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[int, ...] = ()
    tree: str = ""
    server: str = ""
    owned_by: tuple[int, str] | None = None
    extension: str = ""
    temporary: bool = False
    rows: float = -1

    @property
    def title(self) -> str:
        """The qualified name, quoted where SQL needs it."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def is_table(self) -> bool:
        """Whether row policies can be set on it."""
        return self.kind in {"table", "partitioned table"}

    @property
    def security_invoker(self) -> bool:
        return self.options.get("security_invoker", "false") in TRUE

    @property
    def security_barrier(self) -> bool:
        return self.options.get("security_barrier", "false") in TRUE

    def column(self, name: str) -> Column | None:
        return next((each for each in self.columns if each.name == name), None)

    def numbered(self, number: int) -> Column | None:
        return next((each for each in self.columns if each.number == number), None)


TRUE = frozenset({"true", "on", "1", "yes"})
"""How a storage option says yes."""

Command = Literal["ALL", "SELECT", "INSERT", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class Policy:
    """``using`` and ``check`` are SQL as the server writes it; the trees are what it keeps, names resolved.

    ``roles`` holds :data:`PUBLIC` for a policy without TO.
    """

    oid: int
    relation: int
    name: str
    permissive: bool
    command: Command
    roles: tuple[str, ...]
    using: str | None = None
    check: str | None = None
    using_tree: str | None = None
    check_tree: str | None = None


ConstraintKind = Literal["primary key", "unique", "foreign key", "exclusion", "check"]
Action = Literal["no action", "restrict", "cascade", "set null", "set default"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """``columns`` and ``referenced_columns`` in the constraint's order. ``index`` is the OID of its index, 0
    without. ``inherited``: made by the parent's."""

    oid: int
    relation: int
    name: str
    kind: ConstraintKind
    columns: tuple[str, ...]
    references: int = 0
    referenced_columns: tuple[str, ...] = ()
    on_delete: Action = "no action"
    on_update: Action = "no action"
    index: int = 0
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class IndexKey:
    """One key: a column, or an expression with ``column`` None. ``leakproof``: every operator by which the
    index can be searched (of the operator class, on its own type) is; ``equality_leakproof``: its ``=``
    is."""

    column: str | None
    expression: str
    operator_class: str
    leakproof: bool
    equality_leakproof: bool


@dataclass(frozen=True, slots=True)
class Index:
    """``keys`` in order; ``included`` are columns of INCLUDE. ``predicate``: SQL of a partial index, or
    ''. ``immediate``: not that of a DEFERRABLE constraint, which ON CONFLICT cannot name."""

    oid: int
    relation: int
    name: str
    method: str
    keys: tuple[IndexKey, ...]
    unique: bool = False
    primary: bool = False
    exclusion: bool = False
    valid: bool = True
    immediate: bool = True
    included: tuple[str, ...] = ()
    predicate: str = ""


@dataclass(frozen=True, slots=True)
class Trigger:
    """``timing``: BEFORE, AFTER or INSTEAD OF; ``events``: of INSERT, DELETE, UPDATE, TRUNCATE.
    ``enabled``: 'O' origin, 'D' disabled, 'R' replica, 'A' always."""

    oid: int
    relation: int
    name: str
    function: int
    timing: str
    events: frozenset[str]
    for_each_row: bool
    enabled: str = "O"


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """A rule made with CREATE RULE; those that make views views are not listed. ``reads``: its relations."""

    oid: int
    relation: int
    name: str
    event: str
    instead: bool
    enabled: str = "O"
    reads: tuple[int, ...] = ()


Volatility = Literal["immutable", "stable", "volatile"]


@dataclass(frozen=True, slots=True)
class Function:
    """``arguments`` identify it: ``title`` is what ALTER FUNCTION takes. Those of the server itself are in
    :attr:`Facts.builtin`. ``source``: of SQL, PL and the like. ``kind``: 'f', 'p', 'a' or 'w'."""

    oid: int
    schema: str
    name: str
    arguments: str
    owner: str
    language: str
    returns: str
    kind: str = "f"
    security_definer: bool = False
    leakproof: bool = False
    strict: bool = False
    volatility: Volatility = "volatile"
    settings: tuple[str, ...] = ()
    source: str = ""
    grants: tuple[Grant, ...] = ()
    extension: str = ""
    reads: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}({self.arguments})"

    @property
    def is_trigger(self) -> bool:
        return self.returns == "trigger"

    @property
    def pins_names(self) -> bool:
        """Whether its search_path is set so that no temporary table of the caller's comes first: to nothing,
        or with pg_temp named last."""
        path = self.setting("search_path")
        schemas = [] if path is None else [each.strip().strip('"') for each in path.split(",")]
        return schemas == [""] or (len(schemas) > 1 and schemas[-1] == "pg_temp")

    def setting(self, name: str) -> str | None:
        """The value that ``SET`` of the function gives ``name``, or None."""
        found = (each.partition("=") for each in self.settings)
        return next((value for key, _, value in found if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A function of the server's own, by what rules ask of it. ``grants`` and ``arguments`` only where not
    everybody may run it, as the server was made."""

    oid: int
    name: str
    volatility: str
    leakproof: bool
    strict: bool
    arguments: str = ""
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    oid: int
    name: str
    function: int


@dataclass(frozen=True, slots=True)
class Publication:
    """``relations``: OIDs it publishes, all expanded; ``filters``: row filters by OID."""

    name: str
    owner: str
    all_tables: bool
    relations: tuple[int, ...] = ()
    filters: Mapping[int, str] = field(default_factory=dict)
    via_root: bool = False


@dataclass(frozen=True, slots=True)
class DefaultPrivileges:
    """What new objects get. ``schema`` is None for every schema; ``kind``: 'r', 'S', 'f', 'T', 'n' or 'L'."""

    owner: str
    schema: str | None
    kind: str
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class ForeignServer:
    """``mapped``: whom it has user mappings for, :data:`PUBLIC` among them."""

    name: str
    owner: str
    wrapper: str
    grants: tuple[Grant, ...] = ()
    mapped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """``trusted``: anyone with USAGE may write functions in it; in the others only superusers may."""

    name: str
    owner: str
    trusted: bool
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class LargeObjects:
    """How many there are by owner and ACL."""

    owner: str
    grants: tuple[Grant, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Server:
    """``version`` as the server counts: 160004 is 16.4. ``settings``: those that rules ask for."""

    version: int
    version_text: str
    database: str
    owner: str
    login: str
    grants: tuple[Grant, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def major(self) -> int:
        return self.version // 10000

    @property
    def minor(self) -> int:
        return self.version % 10000


@dataclass(frozen=True, slots=True)
class Facts:
    """The whole picture. What belongs to the server itself (``pg_catalog``, ``information_schema``, TOAST)
    and other sessions' temporary objects are left out."""

    server: Server
    roles: Mapping[str, Role] = field(default_factory=dict)
    memberships: tuple[Membership, ...] = ()
    settings: tuple[RoleSetting, ...] = ()
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    relations: Mapping[int, Relation] = field(default_factory=dict)
    policies: tuple[Policy, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    indexes: tuple[Index, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    rewrite_rules: tuple[RewriteRule, ...] = ()
    functions: Mapping[int, Function] = field(default_factory=dict)
    builtin: Mapping[int, BuiltIn] = field(default_factory=dict)
    operators: Mapping[int, Operator] = field(default_factory=dict)
    types: Mapping[int, str] = field(default_factory=dict)
    publications: tuple[Publication, ...] = ()
    default_privileges: tuple[DefaultPrivileges, ...] = ()
    foreign_servers: Mapping[str, ForeignServer] = field(default_factory=dict)
    languages: Mapping[str, Language] = field(default_factory=dict)
    large_objects: tuple[LargeObjects, ...] = ()
