"""What makes two messages one, and what is done with one that was seen before.

A message is known by tenant, target, its source's id and the digest of its body as it was before any edit
(case R5: the same id with another body is another message). Headers are not in it: brokers rewrite some at
each failure. What is known lives from the *first* sight on, as long as the tenant's setting says, whether or
not the source still has the message (case R6). The table of fates is :func:`fate_of`; the SQL of the feed is
held to it by the conformance suite.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.replay.model import Fate, Known, MessageKey, OnUnknown, ReplayId, ReplaySpec

KEY_BYTES: Final = 16
"""Of a key: two messages of one tenant share one by accident once in about 2^64 of them."""

LIFETIME: Final[Seconds] = 14 * 86_400.0
"""How long a key lives where no tier says: as long as brokers commonly keep. The most that a tier may say is
:data:`tenantry.config.tiers.LONGEST_DEDUP`, which the registry holds it to."""

GENERATION: Final[Seconds] = 86_400.0
"""Keys first seen on one UTC day expire as one generation, which is dropped whole."""


def key_of(tenant: TenantId, target: Target, id_: str, body: bytes) -> MessageKey:
    """The key of a message. Pure, O(bytes of the body).

    ``target``: where it is to go in this replay: one that was delivered elsewhere is not a duplicate.
    ``id_``: its source's own. ``body``: before the edits."""
    digest = blake2b(digest_size=KEY_BYTES)
    for part in (tenant.encode(), target.encode(), id_.encode("utf-8", "surrogatepass"), body):
        digest.update(len(part).to_bytes(8, "big"))  # lengths first: no two lists of parts read alike
        digest.update(part)
    return MessageKey(digest.digest())


@dataclass(frozen=True, slots=True)
class Record:
    """What the store knows of a key. ``replay``: the one that had it last. ``failings``: in how many replays
    it ended dead or parked."""

    state: Known
    replay: ReplayId
    failings: int = 0


def fate_of(known: Record | None, replay: ReplayId, spec: ReplaySpec, *, unsendable: bool) -> Fate:
    """What ``replay`` does with a message of which the store knows ``known``. Pure, O(1).

    ``unsendable``: it is broken or of a held class, so it is put aside where it would be sent. What is
    beyond its lifetime is not known. What else decides (the dead letter is gone, a quota) is the store's."""
    if known is None:
        return Fate.PARKED if unsendable else Fate.STAGED
    if known.replay == replay:
        return Fate.AGAIN
    if known.state is Known.STAGED or (known.state is Known.DELIVERED and not spec.again):
        return Fate.DUPLICATE
    held = known.state is Known.UNKNOWN and spec.on_unknown is OnUnknown.HOLD
    return Fate.PARKED if held or unsendable else Fate.STAGED
