"""Names that become part of a statement, and the quoting of texts. Pure."""

import re
from functools import lru_cache

from tenantry.kernel.errors import InvalidValue

_SETTING = re.compile(r"[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_]{0,62})+", re.ASCII)


def checked_setting(name: object) -> str:
    """The name of a custom setting. Raises :class:`InvalidValue`: one without a dot is the server's own."""
    if isinstance(name, str) and _SETTING.fullmatch(name):
        return name
    raise InvalidValue(
        "binding.setting", name, "two words or more with dots between, in small letters, as app.tenant_id"
    )


def checked_role(name: object) -> str:
    """The name of a role as the catalogue has it. Raises :class:`InvalidValue`."""
    if isinstance(name, str) and name.isprintable() and name.isascii() and 1 <= len(name) <= 63:
        return name
    raise InvalidValue("binding.role", name, "a role's name: 1 to 63 printable ASCII characters")


@lru_cache(maxsize=1024)
def literal(text: str) -> str:
    """``text`` as a literal of SQL, whatever ``standard_conforming_strings`` says. O(length).

    Source of the rule: libpq's ``PQescapeLiteral``. Raises :class:`InvalidValue` for NUL, which PostgreSQL
    cannot hold, and for a lone surrogate, which has no bytes.
    """
    if "\x00" in text or not _encodes(text):
        raise InvalidValue("literal", text, "text without NUL or lone surrogates")
    quoted = text.replace("'", "''")
    return f"E'{quoted}'".replace("\\", "\\\\") if "\\" in text else f"'{quoted}'"


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
