"""Who: the tenant's identity, and the two relative numbers that every room speaks of."""

import re
from typing import Literal, NewType

from tenantry.kernel.errors import InvalidValue

TenantId = NewType("TenantId", str)
"""``[A-Za-z0-9][A-Za-z0-9._-]{0,62}``; no two alike when case is folded. Made only by :func:`tenant_id`."""

TierName = NewType("TierName", str)
"""The name of a class of service, from the operator's registry."""

Weight = NewType("Weight", float)
"""A relative share, > 0. Two tenants of weights 1 and 2 with work waiting are served 1:2."""

TenantType = Literal["int", "bigint", "uuid", "text"]
"""The type of a column that names the tenant, as a row policy casts the session's setting to it."""

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_ACCEPTED = "1 to 63 letters, digits, '.', '_' or '-', starting with a letter or digit"


def tenant_id(text: object, *, path: str = "tenant") -> TenantId:
    """``text`` as a tenant's identity. Pure, O(length).

    Raises :class:`InvalidValue`, naming ``path``, for anything that is not one.
    """
    if isinstance(text, str) and _TENANT.fullmatch(text):
        return TenantId(text)
    raise InvalidValue(path, text, _ACCEPTED)


def folded(tenant: TenantId) -> str:
    """The form in which two identities must differ: ``Acme`` and ``acme`` cannot both exist."""
    return tenant.casefold()


def identifier(text: object, *, path: str) -> str:
    """Any other id: text of 1 to 255 UTF-8 bytes without NUL. Raises :class:`InvalidValue`."""
    if isinstance(text, str) and text and "\x00" not in text and _utf8_length(text) <= 255:
        return text
    raise InvalidValue(path, text, "text of 1 to 255 bytes without NUL")


def _utf8_length(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:  # a lone surrogate cannot be stored
        return 1 << 30
