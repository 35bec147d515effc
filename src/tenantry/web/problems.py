"""Every way in which a request can be refused, as RFC 9457 problems. One table; nothing else answers an
error.

``type`` is ``urn:tenantry:problem:NAME``: stable, for programs. ``detail`` is for people: it says what,
where, what is accepted and what to do, and never holds a credential.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from types import MappingProxyType
from typing import Final

from tenantry.kernel.errors import InvalidValue, UnknownKey
from tenantry.kernel.verdict import Refusal, Rule

MEDIA_TYPE: Final = "application/problem+json"
PREFIX: Final = "urn:tenantry:problem:"


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table."""

    name: str
    status: int
    title: str


_ROWS = (
    Kind("malformed-request", 400, "The request cannot be read"),
    Kind("invalid-parameter", 400, "A query parameter or header is not accepted"),
    Kind("credential-ambiguous", 400, "There is more than one credential"),
    Kind("credential-in-query", 400, "A credential does not belong in a URL"),
    Kind("unauthenticated", 401, "A valid API key is needed"),
    Kind("tenant-mismatch", 403, "The request names another tenant than its key"),
    Kind("unknown-tenant", 403, "The key's tenant is not in the registry"),
    Kind("not-found", 404, "There is nothing here"),
    Kind("method-not-allowed", 405, "This method is not for this resource"),
    Kind("request-timeout", 408, "The body did not arrive in time"),
    Kind("not-cancellable", 409, "The job can no longer be cancelled"),
    Kind("not-now", 409, "The replay is in a state that does not allow this"),
    Kind("body-too-large", 413, "The body is too large"),
    Kind("batch-over-bound", 413, "The batch alone is larger than the tenant's bound"),
    Kind("unsupported-media-type", 415, "The body is of a type that is not read here"),
    Kind("invalid-value", 422, "A value is not accepted"),
    Kind("idempotency-key-reused", 422, "The idempotency key came before with another body"),
    Kind("over-rate", 429, "The tenant's submit rate is used up"),
    Kind("over-bound", 429, "The tenant's queue bound is reached"),
    Kind("internal-fault", 500, "A fault of ours"),
    Kind("overloaded", 503, "The pool is overloaded, and this work is refused for now"),
    Kind("store-unavailable", 503, "The store cannot be reached"),
    Kind("source-unavailable", 503, "The source of a replay cannot be read"),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ROWS})
"""The closed set of problems, by name."""

_BY_RULE: Mapping[Rule, str] = MappingProxyType(
    {
        Rule.RATE: "over-rate",
        Rule.BOUND: "over-bound",
        Rule.OVERLOAD: "overloaded",
        Rule.KEY_REUSED: "idempotency-key-reused",
    }
)

_FIELDS: Mapping[str, str] = MappingProxyType({"job_class": "class"})
"""Names that differ between Python and JSON."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal: its kind, a sentence, further members of the body, and headers."""

    kind: Kind
    detail: str
    members: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        """The JSON object that is sent."""
        return {
            "type": PREFIX + self.kind.name,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
            **self.members,
        }


class Refused(Exception):
    """Ends the handling of a request with a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.kind.name)


def refused(name: str, detail: str, **members: object) -> Refused:
    """The refusal of this name, to be raised."""
    return Refused(Problem(KINDS[name], detail, members))


def refused_with(name: str, detail: str, headers: Mapping[str, str], **members: object) -> Refused:
    """As :func:`refused`, with headers."""
    return Refused(Problem(KINDS[name], detail, members, headers))


def of_refusal(refusal: Refusal, *, bulk_url: str | None = None) -> Problem:
    """A verdict of the queue as a problem: the rule, and when to come back, in whole seconds in the header
    (rounded up, never negative) and exactly in the body. ``bulk_url``: where a batch too large should go."""
    name = _BY_RULE[refusal.rule]
    if refusal.rule is Rule.BOUND and refusal.retry_after is None:
        name = "batch-over-bound"  # coming back cannot help, so it is not a 429
    members: dict[str, object] = {"rule": refusal.rule.value}
    if refusal.retry_after is not None:
        members["retry_after"] = refusal.retry_after
    if refusal.rule is Rule.BOUND and bulk_url is not None:
        members["bulk_url"] = bulk_url
    return Problem(KINDS[name], refusal.detail, members, retry_headers(refusal.retry_after))


def retry_headers(retry_after: float | None) -> dict[str, str]:
    """``Retry-After`` for that many seconds, rounded up; none for None."""
    return {} if retry_after is None else {"retry-after": str(max(0, ceil(retry_after)))}


def of_invalid(error: InvalidValue, *, within: str = "", line: int | None = None) -> Problem:
    """A value that is not accepted, by its path in the body. ``within``: the prefix that a single job's
    fields do not carry (``jobs[0].``). ``line``: where the row stands in an NDJSON body."""
    path = api_path(error.path.removeprefix(within))
    entry: dict[str, object] = {"path": _place(error, path), "accepted": error.accepted}
    if error.hint:
        entry["hint"] = error.hint
    if line is not None:
        entry["line"] = line
    return Problem(KINDS["invalid-value"], str(_named(error, path)), {"errors": [entry]})


def api_path(path: str) -> str:
    """A path in Python's names as one in JSON's: ``jobs[3].job_class`` is ``jobs[3].class``. Pure."""
    head, dot, last = path.rpartition(".")
    return f"{head}{dot}{_FIELDS.get(last, last)}"


def _place(error: InvalidValue, path: str) -> str:
    """Where the fault is: for an unknown key the key itself, in the object that ``path`` names."""
    if not isinstance(error, UnknownKey):
        return path
    return f"{path}.{error.key}" if path else error.key


def _named(error: InvalidValue, path: str) -> InvalidValue:
    if isinstance(error, UnknownKey):
        return UnknownKey(path, error.key, error.known)
    return InvalidValue(path, error.value, error.accepted, error.hint)
