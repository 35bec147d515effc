"""The exception tree: who is at fault decides the class, and fields carry what a handler needs.

::

    TenantryError
    ├── UsageError                the caller's misuse: fix the call
    │   ├── InvalidValue          one value, with its path, what is accepted and what to do
    │   │   └── UnknownKey        a key nobody reads, with the nearest one that exists
    │   ├── UnknownTenant         no such tenant in the operator's registry
    │   ├── MissingExtra          an optional dependency is not installed
    │   └── Closed                used after close() or before start
    ├── PeerError                 the other side misbehaved: a target, a broker, a client
    │   ├── ConnectionRefusedByPolicy   the address is not allowed (private, loopback, link-local)
    │   └── DeliveryFailed        a delivery that did not succeed
    ├── DependencyError           our own dependency failed: retry later
    │   ├── StoreUnavailable      the database cannot be reached or refused us
    │   ├── SourceUnavailable     a source of messages cannot be read, or a broker not reached
    │   └── PlaceLost             the planner's term ended; memory must be rebuilt
    └── InvariantBroken           our bug: report it

An expected refusal (over the bound, over the rate) is never an exception: it is a
:class:`~tenantry.kernel.verdict.Refusal`, a value.
"""

from difflib import get_close_matches


class TenantryError(Exception):
    """Everything that Tenantry raises on purpose."""


class UsageError(TenantryError):
    """The caller can repair this by changing the call."""


class InvalidValue(UsageError):
    """One value is not acceptable.

    ``path`` says where (``tiers.gold.weight``, ``jobs[3].target``), ``value`` what was found, ``accepted``
    what would do, ``hint`` (may be empty) what to do next. A secret is never passed as ``value``.
    """

    def __init__(self, path: str, value: object, accepted: str, hint: str = "") -> None:
        self.path, self.value, self.accepted, self.hint = path, value, accepted, hint
        super().__init__(path, value, accepted, hint)

    def __str__(self) -> str:
        text = f"{self.path}: {_shown(self.value)} is not accepted; expected {self.accepted}"
        return f"{text}. {self.hint}" if self.hint else text


class UnknownKey(InvalidValue):
    """A key that nothing reads. Names the nearest known key, since most of these are typing slips. ``hint``:
    what more to say of keys here."""

    def __init__(self, path: str, key: str, known: tuple[str, ...], hint: str = "") -> None:
        near = nearest(key, known)
        hint = f"Did you mean {near!r}? {hint}".rstrip() if near else hint
        self.key, self.known = key, known
        super().__init__(path, key, "one of " + ", ".join(sorted(known)), hint)

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        text = f"{where}unknown key {_shown(self.key)}; expected {self.accepted}"
        return f"{text}. {self.hint}" if self.hint else text


class UnknownTenant(UsageError):
    """The operator's registry names no such tenant."""

    def __init__(self, tenant: str, known: tuple[str, ...] = ()) -> None:
        self.tenant = tenant
        near = nearest(tenant, known)
        self.hint = f"Did you mean {near!r}?" if near else "`tenantry tenants list` shows those that exist."
        super().__init__(f"unknown tenant {_shown(tenant)}. {self.hint}")


class MissingExtra(UsageError):
    """A feature needs an optional dependency; the message is the command that installs it."""

    def __init__(self, extra: str, feature: str) -> None:
        self.extra, self.feature = extra, feature
        super().__init__(f"{feature} needs an extra that is not installed: pip install 'tenantry[{extra}]'")


class Closed(UsageError):
    """Used after it was closed, or before it was started."""


class PeerError(TenantryError):
    """The other side misbehaved; we and the caller are fine."""


class ConnectionRefusedByPolicy(PeerError):
    """The resolved address is one that the operator does not allow deliveries to."""


class DeliveryFailed(PeerError):
    """A delivery did not succeed; ``error_class`` is a stable, low-cardinality name of why."""

    def __init__(self, error_class: str, message: str) -> None:
        self.error_class = error_class
        super().__init__(message)


class DependencyError(TenantryError):
    """A dependency of ours failed. Trying again later is reasonable."""


class StoreUnavailable(DependencyError):
    """The store cannot be reached, or ended the connection."""


class SourceUnavailable(DependencyError):
    """A source of messages cannot be read now, or its broker not reached. The text holds no credentials."""


class PlaceLost(DependencyError):
    """This planner no longer holds the planner's place: everything it remembers must be discarded."""


class InvariantBroken(TenantryError):
    """Something that cannot happen happened. This is our bug."""


def nearest(word: str, known: tuple[str, ...]) -> str | None:
    """The known word most like ``word``, or None when nothing is close. O(len(known))."""
    found = get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
