"""From a credential to the tenant that it proves, or nothing. The one place where a request gets an identity.

A wrong secret and an unknown key take the same path: one look-up, one hash, one comparison in constant time
(against a hash that nothing has, where there is no key). Nothing is remembered of a refused key, so that
guesses fill no memory; verified ones are trusted for a few seconds, so that the store is asked once in a
while instead of on each request, and a revocation acts within those seconds.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

from tenantry.config.api_keys import ApiKey, matches, parse_api_key
from tenantry.config.keys_port import ApiKeys, StoredKey, StoredOperatorKey
from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Instant, Seconds, Timestamp
from tenantry.kernel.tenant import TenantId

K = TypeVar("K", StoredKey, StoredOperatorKey)

NOBODY = StoredKey(TenantId("nobody"), bytes(32), revoked=True)
"""Stands in for a key that does not exist, so that the same work is done. No secret hashes to zeros."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The tenant that the credential proves."""

    tenant: TenantId


@dataclass(frozen=True, slots=True)
class Rejected:
    """``reason`` is for the operator's events (``malformed``, ``unknown``, ``expired``, ``revoked``). The
    caller gets one answer for all of them."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Trusted:
    tenant: TenantId
    until: Instant
    expires_at: Timestamp | None


class Authenticator:
    """Verifies API keys. For the tasks of one event loop."""

    def __init__(self, keys: ApiKeys, clock: Clock, *, kept_for: Seconds, kept: int) -> None:
        self._keys, self._clock, self._kept_for, self._kept = keys, clock, kept_for, kept
        self._trusted: OrderedDict[bytes, _Trusted] = OrderedDict()

    async def verify(self, text: str) -> Verified | Rejected:
        """Who shows the key ``text``. Raises :class:`~tenantry.kernel.errors.StoreUnavailable`."""
        mark = hashlib.sha256(text.encode()).digest()  # the key itself is not kept
        known = self._remembered(mark)
        return Verified(known) if known is not None else await self._look_up(text, mark)

    async def _look_up(self, text: str, mark: bytes) -> Verified | Rejected:
        try:
            presented = parse_api_key(text)
        except InvalidValue:
            return Rejected("malformed")  # its form is public: refusing early tells nobody anything
        began = self._clock.monotonic()  # trust counts from before the look-up: a revocation may overtake it
        stored = await self._keys.find(presented.key_id)
        verdict = judge(presented, stored, self._clock.now())
        if isinstance(verdict, Verified) and stored is not None:
            self._remember(mark, _Trusted(stored.tenant, Instant(began + self._kept_for), stored.expires_at))
        return verdict

    def _remembered(self, mark: bytes) -> TenantId | None:
        trusted = self._trusted.get(mark)
        if trusted is None:
            return None
        expired = trusted.expires_at is not None and self._clock.now() >= trusted.expires_at
        if expired or self._clock.monotonic() >= trusted.until:
            del self._trusted[mark]
            return None
        return trusted.tenant

    def _remember(self, mark: bytes, trusted: _Trusted) -> None:
        self._trusted[mark] = trusted
        self._trusted.move_to_end(mark)
        while len(self._trusted) > self._kept:
            self._trusted.popitem(last=False)


def judge(presented: ApiKey, stored: StoredKey | None, now: Timestamp) -> Verified | Rejected:
    """Whether ``presented`` proves the tenant of ``stored``. Pure, and the same work for every outcome."""
    found = proven(presented, stored, now)
    return found if isinstance(found, Rejected) else Verified(found.tenant)


def proven(presented: ApiKey, stored: K | None, now: Timestamp) -> K | Rejected:
    """``stored``, if ``presented`` is that key and may be used. Pure, and the same work for every outcome."""
    fits = matches(presented, (stored or NOBODY).secret_hash)
    if stored is None or not fits:
        return Rejected("unknown")
    if stored.usable_at(now):
        return stored
    return Rejected("revoked" if stored.revoked else "expired")
