"""Names as SQL writes them. Pure."""


def quoted(name: str) -> str:
    """``name`` as an SQL identifier: bare where it is plain lower case and no keyword could be meant."""
    plain = name[:1].isascii() and (name[:1].islower() or name[:1] == "_")
    safe = plain and all(c.isascii() and (c.islower() or c.isdigit() or c == "_") for c in name)
    return name if safe and name not in RESERVED else '"' + name.replace('"', '""') + '"'


_WORDS = (
    "all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate "
    "collation column concurrently constraint create cross current_catalog current_date current_role "
    "current_schema current_time current_timestamp current_user default deferrable desc distinct do else end "
    "except false fetch for foreign freeze from full grant group having ilike in initially inner intersect "
    "into is isnull join lateral leading left like limit localtime localtimestamp natural not notnull null "
    "offset on only or order outer overlaps placing primary references returning right select session_user "
    "similar some symmetric system_user table tablesample then to trailing true union unique user using "
    "variadic verbose when where window with"
)
RESERVED = frozenset(_WORDS.split())
"""PostgreSQL's words that need quotes as a name (appendix C: reserved, and those that may be a type or
function)."""
