"""How the front doors look API keys up, whoever keeps them. For keys: :mod:`tenantry.config.api_keys`."""

from dataclasses import dataclass, field
from typing import Protocol

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId


class _Kept:
    """What every key in a store has beside its owner."""

    __slots__ = ()

    secret_hash: bytes
    expires_at: Timestamp | None
    revoked: bool

    def usable_at(self, now: Timestamp) -> bool:
        """Whether the key may still be used at ``now``. Pure, O(1)."""
        return not self.revoked and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, eq=False)
class StoredKey(_Kept):
    """What a store keeps of one key. The secret itself is kept nowhere.

    ``secret_hash``: 32 bytes, see :func:`tenantry.config.api_keys.hash_secret`. ``expires_at``: from this
    instant on the key is refused; None for never. ``revoked``: refused for good.
    """

    tenant: TenantId
    secret_hash: bytes = field(repr=False)
    expires_at: Timestamp | None = None
    revoked: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StoredOperatorKey(_Kept):
    """The same of an operator's key. ``name``: who shows it, as the log of orders names whoever gave one."""

    name: str
    secret_hash: bytes = field(repr=False)
    expires_at: Timestamp | None = None
    revoked: bool = False


class ApiKeys(Protocol):
    """Safe to call from many tasks of one event loop."""

    async def find(self, key_id: str) -> StoredKey | None:
        """The key under ``key_id`` (17 letters or digits), revoked and expired ones too. None: no such key.

        One look-up by primary key, the same work whether the id exists or not. Raises
        :class:`~tenantry.kernel.errors.StoreUnavailable` when the store cannot be reached: the caller then
        refuses to serve, it never lets a key pass unseen.
        """
        ...


class OperatorKeys(Protocol):
    """As :class:`ApiKeys`, for operators. The two are apart: a tenant's key is never an operator's."""

    async def find(self, key_id: str) -> StoredOperatorKey | None: ...
