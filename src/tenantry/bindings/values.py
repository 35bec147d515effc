"""A tenant as the text that the setting holds, validated as the column's type demands. Pure."""

import re
from typing import assert_never
from uuid import UUID

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantType, tenant_id

_BITS = {"int": 31, "bigint": 63}
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def tenant_value(tenant: object, of: TenantType, *, path: str = "tenant") -> str:
    """``tenant`` as the text that policies cast to ``of``: one tenant has one text. O(length).

    Accepts a text, a number for ``int`` and ``bigint``, a :class:`~uuid.UUID` for ``uuid``. Raises
    :class:`InvalidValue`, naming ``path``; an empty text is never a tenant.
    """
    match of:
        case "text":
            return tenant_id(tenant, path=path)
        case "int" | "bigint":
            return _number(tenant, of, path)
        case "uuid":
            return _uuid(tenant, path)
        case _:
            assert_never(of)


def _number(tenant: object, of: str, path: str) -> str:
    limit = 1 << _BITS[of]
    if isinstance(tenant, int) and not isinstance(tenant, bool) and -limit <= tenant < limit:
        return str(tenant)
    if isinstance(tenant, str) and _NUMBER.fullmatch(tenant) and -limit <= int(tenant) < limit:
        return tenant
    raise InvalidValue(path, tenant, f"a whole number in [{-limit}, {limit - 1}], for the tenant is {of}")


def _uuid(tenant: object, path: str) -> str:
    if isinstance(tenant, UUID):
        return str(tenant)
    if isinstance(tenant, str) and _UUID.fullmatch(tenant):
        return tenant.lower()
    raise InvalidValue(path, tenant, "a UUID as 8-4-4-4-12 hexadecimal digits")
