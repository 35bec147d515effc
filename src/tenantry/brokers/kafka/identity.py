"""The key of a record: the tenant, 0x1F, the entity, in UTF-8. A tenant's id holds no 0x1F, so it is
exact."""

from tenantry.brokers.kafka.model import Identity, Record
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import tenant_id

SEPARATOR = "\x1f"


def entity_key(tenant: str, entity: str) -> bytes:
    """The key that :func:`from_key` reads. Raises :class:`InvalidValue` for a bad tenant or entity."""
    if not isinstance(entity, str):
        raise InvalidValue("entity", entity, "text: whose events stay in order, or the message's own id")
    try:
        return f"{tenant_id(tenant)}{SEPARATOR}{entity}".encode()
    except UnicodeEncodeError:
        raise InvalidValue("entity", entity, "text that UTF-8 can hold") from None


def read_key(key: bytes | None) -> Identity:
    """Whose ``key`` is; a tenant alone is one without an entity. Raises :class:`InvalidValue`."""
    try:
        tenant, cut, entity = (key or b"").decode().partition(SEPARATOR)
    except UnicodeDecodeError:
        raise InvalidValue("key", key, "UTF-8: the tenant, 0x1F, the entity") from None
    return Identity(tenant_id(tenant, path="key"), entity if cut else None)


def from_key(record: Record) -> Identity:
    """Whose ``record`` is, by its key: the default of :class:`Handling`. Raises :class:`InvalidValue`."""
    return read_key(record.key)
