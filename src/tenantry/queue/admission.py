"""What may enter the queue: pure rules over one job, a batch, a bound and an idempotency key.

The rules raise :class:`~tenantry.kernel.errors.InvalidValue` with a path such as ``jobs[3].cost``: the caller
can repair those by changing the call. What the caller can only wait out is a
:class:`~tenantry.kernel.verdict.Refusal`, a value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeGuard

from tenantry.config.model import TenantDocument
from tenantry.config.url import LONGEST_URL, check_url
from tenantry.kernel.errors import InvalidValue, nearest
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId, identifier
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.lanes import address
from tenantry.lanes.model import HANDLER_PREFIX, Target
from tenantry.queue.model import JobClass, NewJob

LEAST_RETRY: Final[Seconds] = 1.0
MOST_LISTED: Final = 1_000
MOST_RETRY: Final[Seconds] = 300.0
_UNKNOWN_DRAIN_RETRY: Final[Seconds] = 5.0

TargetCheck = Callable[[str, Target], None]
"""``(path, target)``; raises :class:`InvalidValue` naming ``path`` for a target that is not accepted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one submit may hold. ``payload``: bytes a job. ``batch``: jobs a call. ``bulk``: jobs a bulk set.
    ``batch_bytes`` and ``bulk_bytes``: of all their payloads, so that a call stays a message that a database
    takes. ``stored``: jobs of one tenant that may be stored and not fed in. ``delay_for`` and ``cost`` in
    seconds. ``target`` and ``text`` (a key, a content type): bytes."""

    payload: int = 1_048_576
    batch: int = 1_000
    batch_bytes: int = 16 * 1_048_576
    bulk: int = 1_000_000
    bulk_bytes: int = 128 * 1_048_576
    stored: int = 1_000_000
    delay_for: Seconds = 366 * 86_400.0
    cost: Seconds = 86_400.0
    target: int = LONGEST_URL
    text: int = 255


DEFAULT_LIMITS: Final = Limits()


def check_batch(jobs: Sequence[NewJob], limits: Limits, check_target: TargetCheck) -> None:
    """Every rule for a batch of 1 to ``limits.batch`` jobs. Pure, O(bytes). Raises :class:`InvalidValue`."""
    _check_size(jobs, limits.batch, "Send several batches, or one bulk set.")
    for position, job in enumerate(jobs):
        check_job(job, position=position, limits=limits, check_target=check_target)
    _check_bytes(jobs, limits.batch_bytes, "Send several batches.")


def check_bulk(jobs: Sequence[NewJob], limits: Limits, check_target: TargetCheck) -> None:
    """Every rule for a bulk set: those for a batch, and no idempotency keys. Raises :class:`InvalidValue`."""
    _check_size(jobs, limits.bulk, "Send several sets.")
    for position, job in enumerate(jobs):
        check_job(job, position=position, limits=limits, check_target=check_target)
    _check_bytes(jobs, limits.bulk_bytes, "Send several sets.")
    refuse_keys(jobs)


def refuse_keys(jobs: Sequence[NewJob]) -> None:
    """A set's jobs carry no idempotency keys: they are fed in later, when nobody is there to be answered."""
    for position, job in enumerate(jobs):
        if job.idempotency_key is not None:
            path = f"jobs[{position}].idempotency_key"
            raise InvalidValue(path, job.idempotency_key, "no key in a bulk set", "Submit it in a batch.")


def check_job(job: NewJob, *, position: int, limits: Limits, check_target: TargetCheck) -> None:
    """Every rule for one job. ``position``: its row in the batch, from 0, which error paths name.

    Pure, O(bytes). Raises :class:`InvalidValue` for the first value that is not accepted.
    """
    path = f"jobs[{position}]"
    _check_target_text(f"{path}.target", job.target, limits.target)
    check_target(f"{path}.target", job.target)
    _check_payload(f"{path}.payload", job.payload, limits.payload)
    _check_class(f"{path}.job_class", job.job_class)
    _check_span(f"{path}.delay_for", job.delay_for, 0.0, limits.delay_for)
    if job.cost is not None:
        _check_cost(f"{path}.cost", job.cost, limits.cost)
    for name in ("ordering_key", "idempotency_key"):
        if (key := getattr(job, name)) is not None:
            _check_text(f"{path}.{name}", key, limits.text)
    _check_content_type(f"{path}.content_type", job.content_type, limits.text)


def target_of(document: TenantDocument) -> TargetCheck:
    """The rule for a tenant's targets: an HTTP URL, ``handler:NAME``, or a name its document declares."""

    def check(path: str, target: Target) -> None:
        if target in document.targets:
            return
        if target.lower().startswith(("http:", "https:")):
            check_url(target, path=path)
        elif address.scheme_of(target) is not None:
            address.parse(target, path=path)
        elif not _is_handler(target):
            accepted = (
                "an http(s):// URL, handler:NAME, a broker's address, or a name in the tenant's targets"
            )
            near = nearest(target, tuple(document.targets))
            raise InvalidValue(path, target, accepted, f"Did you mean {near!r}?" if near else "")

    return check


def check_any_target(path: str, target: Target) -> None:
    """The rule without a document: an HTTP URL and a broker's address must be sound, any other text may be a
    name. Pure."""
    if target.lower().startswith(("http:", "https:")):
        check_url(target, path=path)
    elif address.scheme_of(target) is not None:
        address.parse(target, path=path)


def check_listed(limit: int) -> None:
    """Raises :class:`InvalidValue` unless ``limit`` jobs may be listed at once. Pure."""
    if not 1 <= limit <= MOST_LISTED:
        raise InvalidValue("limit", limit, f"1 to {MOST_LISTED:,}")


def over_bound(*, bound: int, unended: int, wanted: int, drain_rate: float) -> Refusal:
    """The refusal of ``wanted`` new jobs beside ``unended`` ones. ``drain_rate``: jobs that ended a second
    lately. The bare estimate of when there is room; None when the batch alone is over the bound. Pure."""
    detail = f"{wanted} more would make {unended + wanted} jobs that have not ended; the bound is {bound}"
    if wanted > bound:
        hint = f"send at most {bound} at once, or one bulk set, which is fed in as room appears"
        return Refusal(Rule.BOUND, f"{detail}: {hint}", None)
    return Refusal(Rule.BOUND, detail, room_in(unended + wanted - bound, drain_rate))


def over_stored(*, most: int, stored: int, wanted: int) -> Refusal:
    """The refusal of a set of ``wanted`` jobs beside ``stored`` ones, where ``most`` may be stored. A guess
    of when there is room; None when the set alone is too large. Pure."""
    detail = f"{wanted:,} more would make {stored + wanted:,} stored jobs; the tenant may have {most:,}"
    return Refusal(Rule.BOUND, detail, None if wanted > most else _UNKNOWN_DRAIN_RETRY)


def room_in(jobs: int, drain_rate: float) -> Seconds:
    """About when ``jobs`` more will have ended, from 1 s to 5 min; a guess when none ended lately. Pure."""
    if not drain_rate > 0:
        return _UNKNOWN_DRAIN_RETRY
    return min(MOST_RETRY, max(LEAST_RETRY, jobs / drain_rate))


def jittered(retry_after: Seconds, draw: float) -> Seconds:
    """An estimate spread over the next half of itself and never earlier, so that a crowd that was refused
    together does not come back together. ``draw`` is uniform in [0, 1]. Pure."""
    return retry_after * (1.0 + 0.5 * draw)


def key_digest(tenant: TenantId, key: str) -> bytes:
    """What is stored of an idempotency key: 32 bytes, different for every tenant. Pure."""
    return _digest(tenant.encode(), key.encode())


def body_digest(job: NewJob) -> bytes:
    """What must be equal for two submits under one key to be the same job: 32 bytes over target, payload,
    class and content type. Pure, O(payload)."""
    return _digest(job.target.encode(), job.payload, bytes([job.job_class]), job.content_type.encode())


def key_reused(position: int) -> Refusal:
    """The refusal of a key that came before with another body. Pure."""
    detail = f"jobs[{position}]: this idempotency key was used with another body; use a new key"
    return Refusal(Rule.KEY_REUSED, detail, None)


def _digest(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=32)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))  # so that no two lists of parts read alike
        digest.update(part)
    return digest.digest()


def _check_size(jobs: Sequence[NewJob], most: int, hint: str) -> None:
    if not jobs:
        raise InvalidValue("jobs", jobs, f"1 to {most:,} jobs", "Send at least one.")
    if len(jobs) > most:
        raise InvalidValue("jobs", f"{len(jobs):,} jobs", f"1 to {most:,} jobs", hint)


def _check_bytes(jobs: Sequence[NewJob], most: int, hint: str) -> None:
    size = sum(len(job.payload) for job in jobs)
    if size > most:
        raise InvalidValue("jobs", f"payloads of {size:,} bytes", f"at most {most:,} bytes in all", hint)


def _check_target_text(path: str, value: object, most: int) -> None:
    if not isinstance(value, str) or not 0 < _stored_length(value) <= most:
        # the text itself is not echoed: the paths of webhook URLs carry credentials
        found = f"{len(value):,} characters" if isinstance(value, str) else value
        raise InvalidValue(path, found, f"text of 1 to {most:,} bytes without NUL or lone surrogates")


def _stored_length(text: str) -> int:
    """Bytes in UTF-8; 0 for what cannot be stored."""
    try:
        return 0 if "\x00" in text else len(text.encode())
    except UnicodeEncodeError:
        return 0


def _check_text(path: str, value: object, most: int) -> None:
    text = identifier(value, path=path)
    if len(text.encode()) > most:
        raise InvalidValue(path, value, f"text of 1 to {most} bytes without NUL")


def _check_payload(path: str, value: object, most: int) -> None:
    if not isinstance(value, bytes):
        raise InvalidValue(path, value, "bytes", "Encode it first, e.g. with json.dumps(...).encode().")
    if len(value) > most:
        accepted = f"at most {most:,} bytes"
        raise InvalidValue(path, f"{len(value):,} bytes", accepted, "Send a reference to large bodies.")


def _check_class(path: str, value: object) -> None:
    if not isinstance(value, JobClass):
        raise InvalidValue(path, value, "one of " + ", ".join(each.name.lower() for each in JobClass))


def _check_span(path: str, value: object, low: float, high: float) -> None:
    if not (_is_number(value) and low <= value <= high):  # false for NaN
        raise InvalidValue(path, value, f"a number of seconds from {low:g} to {high:,.0f}")


def _check_cost(path: str, value: object, high: float) -> None:
    if not (_is_number(value) and 0 < value <= high):
        accepted = f"a number of slot-seconds above 0, at most {high:,.0f}"
        raise InvalidValue(path, value, accepted, "Leave it out to go by the lane's average.")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_content_type(path: str, value: object, most: int) -> None:
    if not (isinstance(value, str) and 0 < len(value) <= most and value.isascii() and value.isprintable()):
        accepted = f"1 to {most} printable ASCII characters, like application/json"
        raise InvalidValue(path, value, accepted, "It becomes a header: no line breaks.")


def _is_handler(target: str) -> bool:
    name = target.removeprefix(HANDLER_PREFIX)
    return name != target and name.isprintable() and name.split() == [name]
