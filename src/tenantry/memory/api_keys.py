"""API keys in memory: for library use, and the small world that the tests of the front doors live in."""

from dataclasses import replace

from tenantry.config.api_keys import NewApiKey, make_api_key
from tenantry.config.keys_port import StoredKey, StoredOperatorKey
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.randomness import Randomness
from tenantry.kernel.tenant import TenantId


class MemoryApiKeys:
    """Implements :class:`~tenantry.config.keys_port.ApiKeys`. Safe from any thread."""

    def __init__(self) -> None:
        self._keys: dict[str, StoredKey] = {}

    def issue(
        self, tenant: TenantId, randomness: Randomness, *, expires_at: Timestamp | None = None
    ) -> NewApiKey:
        """A new key of ``tenant``. Its text is in the answer and nowhere else."""
        made = make_api_key(randomness)
        self._keys[made.key_id] = StoredKey(tenant, made.secret_hash, expires_at)
        return made

    def revoke(self, key_id: str) -> bool:
        """Refuse the key from now on. False when there is no such key."""
        stored = self._keys.get(key_id)
        if stored is None:
            return False
        self._keys[key_id] = replace(stored, revoked=True)
        return True

    async def find(self, key_id: str) -> StoredKey | None:
        return self._keys.get(key_id)


class MemoryOperatorKeys:
    """Implements :class:`~tenantry.config.keys_port.OperatorKeys`. Safe from any thread."""

    def __init__(self) -> None:
        self._keys: dict[str, StoredOperatorKey] = {}

    def issue(self, name: str, randomness: Randomness, *, expires_at: Timestamp | None = None) -> NewApiKey:
        """A new key of the operator ``name``. Its text is in the answer and nowhere else."""
        made = make_api_key(randomness)
        self._keys[made.key_id] = StoredOperatorKey(name, made.secret_hash, expires_at)
        return made

    def revoke(self, key_id: str) -> None:
        """Refuse the key from now on."""
        self._keys[key_id] = replace(self._keys[key_id], revoked=True)

    async def find(self, key_id: str) -> StoredOperatorKey | None:
        return self._keys.get(key_id)
