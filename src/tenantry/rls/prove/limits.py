"""Which doors a rule speaks of, and which rules no attack of ours can show, with the reason. Data.

A rule of :data:`WHY_BEYOND` may still be confirmed, where an attempt happens to show it (but for those of
:data:`NEVER_SHOWN`); it is never refuted.
"""

from tenantry.rls.model import Family, Finding

ALL = frozenset({
    "read", "peek", "leakproof", "call", "flag", "member", "shadow", "kept plan", "insert", "update",
    "delete", "move", "truncate", "trigger", "collide", "upsert", "refer", "cascade", "view write", "fire",
    "become", "owner", "admin", "sequence",
})  # fmt: skip
"""Every door."""

_ROWS = frozenset(
    {
        "read",
        "peek",
        "insert",
        "update",
        "delete",
        "move",
        "flag",
        "kept plan",
        "view write",
        "call",
        "leakproof",
    }
)
_VIEWS = frozenset({"read", "peek", "leakproof", "view write"})

COVERED = {
    Family.ENFORCEMENT: ALL,
    Family.POLICY_TEXT: ALL - {"truncate", "trigger", "sequence", "admin", "owner"},
    Family.DOORS: _VIEWS,
    Family.COVERT: frozenset[str](),
    Family.PERFORMANCE: frozenset[str](),
    Family.OPERATIONS: frozenset[str](),
}
"""What a finding of a family may account for, where :data:`DOORS` does not say."""

DOORS = {
    "unforced-owner": frozenset({"become", "owner", "admin"}),
    "inherited-owner": _ROWS | {"become", "owner"},
    "admin-option": frozenset({"admin"}),
    "bypass-by-set-role": frozenset({"become"}),
    "service-role-reachable": frozenset({"become", "admin", "read", "peek"}),
    "tenant-column-nullable": frozenset({"insert", "move"}),
    "definer-function": frozenset({"call"}),
    "definer-dynamic-sql": frozenset({"call"}),
    "definer-search-path": frozenset({"call", "shadow"}),
    "definer-trigger": frozenset({"fire", "insert", "update", "delete", "move"}),
    "instead-of-trigger": frozenset({"view write", "fire"}),
    "writable-view": frozenset({"view write", "read", "peek"}),
    "rewrite-rule": frozenset({"fire", "insert", "update", "delete", "move", "view write"}),
    "truncate": frozenset({"truncate"}),
    "trigger-privilege": frozenset({"trigger"}),
    "unique-across-tenants": frozenset({"collide", "upsert", "move"}),
    "on-conflict": frozenset({"collide", "upsert", "move"}),
    "exclusion-across-tenants": frozenset({"collide", "move"}),
    "foreign-key-oracle": frozenset({"refer", "move", "delete", "collide"}),
    "foreign-key-cascade": frozenset({"cascade", "refer", "delete"}),
    "leakproof-function": frozenset({"leakproof"}),
    "sequence-readable": frozenset({"sequence"}),
}

KEYS = frozenset({
    "unique-across-tenants", "on-conflict", "exclusion-across-tenants", "foreign-key-oracle",
    "foreign-key-cascade",
})  # fmt: skip
"""Rules about one key: only what runs into that key shows it."""

WRITE_DOORS = frozenset({"insert", "move", "update", "collide", "upsert", "refer"})
"""Doors at which WITH CHECK stands."""

NEVER_SHOWN = frozenset({
    "no-policy-applies", "all-data", "public-grant", "default-privileges", "unclassified-table",
    "shared-table-writable", "createrole", "replication", "server-access", "monitor", "schema-owner",
    "database-owner", "undeclared-bypass", "service-role", "references", "create-on-schema", "publication",
    "large-objects", "foreign-table", "foreign-server",
})  # fmt: skip
"""Rules whose way no attempt takes: what leaks beside them is no evidence of them."""

_LATER = "it bites with the next change to the schema or the roles, and not today"
_ELSEWHERE = "it works outside of this database's tables: in files, programs or other sessions of the server"
_UNABLE = "the role that it becomes may not even enter the tables' schema, or holds nothing on them, today"
_TAKEN = "the tenant that the text names has rows already, or a value that cannot be planted"
_DESTROYS = "it destroys or replaces whole objects, for everybody, which is not carried out even to be undone"

WHY_BEYOND = {
    "no-policy-applies": "it shows too little, not too much",
    "unforced-owner": _LATER,
    "all-data": "the policies hold it as they hold others: it opens tables that have none",
    "bypass-by-set-role": _UNABLE,
    "owner-reachable": _UNABLE,
    "public-grant": "it concerns roles that are not the application",
    "default-privileges": _LATER,
    "unclassified-table": "nobody has said whose rows are in it",
    "shared-table-writable": "its rows are everybody's, so none of them can be another tenant's",
    "tenant-column-nullable": "a row without a tenant is nobody's",
    "createrole": "what may be granted in this way depends on the server's version and its other roles",
    "replication": _ELSEWHERE,
    "server-access": _ELSEWHERE,
    "monitor": _ELSEWHERE,
    "schema-owner": _DESTROYS,
    "database-owner": _DESTROYS,
    "undeclared-bypass": "it concerns a role that is not the application",
    "service-role": "it is declared to serve all tenants",
    "service-role-reachable": "the role sees what its policies show it, which may be nothing today",
    "admin-option": "before PostgreSQL 16 a grant of this kind cannot be told from membership",
    "policy-restricts-nothing": "it narrows nothing, and opens nothing either",
    "policy-by-login": "all tenants of one login are one to it: that needs two logins to show",
    "policy-null-safe": "it opens only rows without a tenant, and nobody's rows are planted",
    "policy-null-open": "it opens rows without a tenant, or a session of a kind that could not be had here",
    "policy-missing-nullif": "it fails, or takes '' for a tenant, and no tenant is called ''",
    "policy-missing-ok": "it fails instead of showing too much",
    "policy-setting-unqualified": "no session can set it, so none can be bound by it",
    "policy-setting-typo": "the other setting can be bound as well, and is",
    "policy-setting-types": "it fails instead of showing too much",
    "policy-literal": _TAKEN,
    "policy-default-tenant": _TAKEN,
    "role-default-tenant": _TAKEN,
    "policy-text-normalised": "it takes two tenants whose names differ in what the policy drops",
    "policy-editable-claim": "the token is made and signed elsewhere",
    "policy-recursion": "it fails instead of showing too much",
    "policy-unbound": "what the policy goes by instead could not be given from outside",
    "policy-check-unbound": "what the policy goes by instead could not be given from outside",
    "helper-immutable": "whether a plan is kept is the server's choice from one moment to the next",
    "helper-volatile": "it is slow, and wrong only when its answer changes within a statement",
    "helper-search-path": "the names in its body could not be taken over by temporary tables alone",
    "membership-writable": "what makes somebody a member could not be made up from the columns",
    "lookup-unprotected": "its rows are not known to be a tenant's",
    "definer-view": "the planner ran the view's own condition first, this time",
    "materialized-of-one": "it depends on who refreshes it, and what was bound then",
    "definer-function": "what its arguments mean is its body's affair",
    "definer-dynamic-sql": "which text it takes as SQL is its body's affair",
    "definer-search-path": "what it calls in the caller's schemas is its body's affair",
    "definer-trigger": "what it writes is its body's affair: what it was given concerned one tenant",
    "instead-of-trigger": "what it writes is its body's affair",
    "rewrite-rule": "which rows it concerns is its condition's affair",
    "foreign-table": _ELSEWHERE,
    "foreign-server": _ELSEWHERE,
    "references": "a key that refers to the table must be made in a schema where the application may create",
    "create-on-schema": "which names others then look up there is theirs to say",
    "publication": _ELSEWHERE,
    "large-objects": "nothing can be planted in an object that is there, and a new one is its maker's",
    "leakproof-function": "the planner ran it after the policies, this time: that depends on its cost",
    "unique-across-tenants": "the key cannot be chosen by the caller, or holds values that could not be made",
    "on-conflict": "the key cannot be chosen by the caller, or holds values that could not be made",
    "exclusion-across-tenants": "the key holds values that could not be made",
}
"""Rules whose finding stands though no attempt leaked."""

_BY_FAMILY = {
    Family.PERFORMANCE: "it is about time, and no row of another tenant comes out",
    Family.OPERATIONS: "it is about how the server is run, and no row of another tenant comes out here",
}


def why_beyond(finding: Finding) -> str:
    return WHY_BEYOND.get(finding.rule) or _BY_FAMILY[finding.family]
