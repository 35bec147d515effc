"""One request on its way, and one answer: what handlers take and give."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec
from starlette.types import Receive, Scope

from tenantry.kernel.tenant import TenantId
from tenantry.web.problems import MEDIA_TYPE, Problem
from tenantry.web.services import ApiServices, OperatorServices, OrderServices

JSON: Final = "application/json"

_encoder = msgspec.json.Encoder()


class _Request:
    """What can be read of any request."""

    __slots__ = ()

    scope: Scope

    def header(self, name: bytes) -> list[bytes]:
        """Every value of a header; ``name`` in lower case."""
        return [value for key, value in self.scope["headers"] if key == name]

    def path_value(self, name: str) -> str:
        """A part of the path, decoded."""
        return str(self.scope["path_params"][name])


@dataclass(frozen=True, slots=True)
class Call(_Request):
    """An authenticated request. ``tenant``: whom the credential proves."""

    services: ApiServices
    scope: Scope
    receive: Receive
    tenant: TenantId


@dataclass(frozen=True, slots=True)
class OperatorCall(_Request):
    """A request of an operator. ``by``: who, as the key's name says. ``orders``: what its work is done on."""

    services: OperatorServices
    scope: Scope
    receive: Receive
    by: str
    orders: OrderServices


AnyCall = Call | OperatorCall


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent: ``body`` is a record to be written as JSON, bytes as they are, or None for none.
    ``stream``: sent in its place, as it comes, for as long as somebody listens."""

    status: int
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON
    problem: str = ""
    stream: AsyncIterator[bytes] | None = None

    def encoded(self) -> bytes:
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else _encoder.encode(self.body)


def answer_to(problem: Problem) -> Answer:
    """A problem as an answer."""
    headers = {"cache-control": "no-store", **problem.headers}
    return Answer(problem.kind.status, problem.body(), headers, MEDIA_TYPE, problem.kind.name)
