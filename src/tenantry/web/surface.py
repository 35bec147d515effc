"""What an application can do, as a table: its router and its OpenAPI document are both made from it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tenantry.web.calls import Answer

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query or a header, as the document describes it."""

    name: str
    place: str
    meaning: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Operation(Generic[C]):
    """One method of one path. ``problems``: those it can answer beside the surface's ``always``.

    ``body``: media type to record. ``status``, ``answer`` and ``media_type``: what success looks like.
    """

    name: str
    method: str
    path: str
    handler: Callable[[C], Awaitable[Answer]]
    summary: str
    status: int
    answer: type
    body: dict[str, type] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    problems: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Surface(Generic[C]):
    """One application. ``always``: what any operation that needs a key can answer. ``health``: where the
    process and its store are asked for, the first without the second."""

    title: str
    summary: str
    operations: tuple[Operation[C], ...]
    always: tuple[str, ...]
    health: tuple[str, str]
