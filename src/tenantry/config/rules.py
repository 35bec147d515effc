"""What one value of a document may be: one rule a kind. A rule takes ``(path, value)`` and gives the value.

Each raises :class:`~tenantry.kernel.errors.InvalidValue` naming path, value and what is accepted. All pure.
A boolean is never a number here, although Python's is; NaN and the infinities are in no range.
"""

from base64 import b64decode
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from tenantry.config.url import problem_of
from tenantry.config.validation import SECRET, Rule, refused
from tenantry.kernel.errors import InvalidValue, nearest
from tenantry.kernel.tenant import TenantId, identifier, tenant_id

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

NONE = "none"
"""How a text says "no limit" where a number could stand: TOML has no null."""

SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of secrets, not one
_SECRET_BYTES = range(24, 65)
_SECRET_ACCEPTED = "whsec_ and base64 of 24 to 64 random bytes, or several of these separated by one space"  # noqa: S105
_URL_ACCEPTED = "an absolute http:// or https:// URL"


def number(low: float, high: float, *, above: bool = False, of: str = "") -> Rule[float]:
    """A finite number in [low, high], or in (low, high] when ``above``. Whole numbers become floats.

    ``of``: the unit, as people read it (``" of seconds"``).
    """
    fences = (
        f"above {_plain(low)}, at most {_plain(high)}" if above else f"from {_plain(low)} to {_plain(high)}"
    )

    def rule(path: str, value: object) -> float:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            inside = low < value <= high if above else low <= value <= high  # both are false for NaN
            if inside:
                return float(value)
        hint = "Write a plain number, without quotes or unit." if isinstance(value, str) else ""
        raise refused(path, value, f"a number{of} {fences}", hint)

    return rule


def whole(low: int, high: int) -> Rule[int]:
    """A whole number in [low, high]; ``3.0`` is not one."""

    def rule(path: str, value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise refused(path, value, f"a whole number from {_plain(low)} to {_plain(high)}")

    return rule


def boolean(path: str, value: object) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise refused(path, value, "true or false")
    return value


def optional(rule: Rule[T]) -> Rule[T | None]:
    """What ``rule`` accepts, or null, or the text ``"none"``."""

    def either(path: str, value: object) -> T | None:
        if value is None or value == NONE:
            return None
        try:
            return rule(path, value)
        except InvalidValue as error:
            raise InvalidValue(path, error.value, f'{error.accepted}, or "{NONE}"', error.hint) from None

    return either


def one_of(known: tuple[str, ...]) -> Rule[str]:
    """One of the texts ``known``; the error names the nearest of them."""

    def rule(path: str, value: object) -> str:
        if isinstance(value, str) and value in known:
            return value
        near = nearest(value, known) if isinstance(value, str) else None
        hint = f"Did you mean {near!r}?" if near else ""
        raise refused(path, value, "one of " + ", ".join(sorted(known)), hint)

    return rule


def choice(kind: type[E]) -> Rule[E]:
    """One of an enumeration's values, as text."""
    text = one_of(tuple(member.value for member in kind))
    return lambda path, value: kind(text(path, value))


def tenant(path: str, value: object) -> TenantId:
    """A tenant's id, see :func:`tenantry.kernel.tenant.tenant_id`."""
    return _from_kernel(tenant_id, path, value)


def name(path: str, value: object) -> str:
    """A tier's or a pool's name: the alphabet of tenant ids, so that it fits labels and URLs."""
    return _from_kernel(tenant_id, path, value)


def target(path: str, value: object) -> str:
    """A target's name or text: an identifier of 1 to 255 bytes; where it is an HTTP URL, a sound one."""
    text = _from_kernel(identifier, path, value)
    return url(path, text) if text.lower().startswith(("http:", "https:")) else text


def url(path: str, value: object) -> str:
    """An HTTP URL that jobs may be delivered to: the rule of :mod:`tenantry.config.url`."""
    problem = problem_of(value)
    if problem is not None:
        raise refused(path, value, _URL_ACCEPTED, problem)
    assert isinstance(value, str)
    return value


def secret(path: str, value: object) -> str:
    """A signing secret as Standard Webhooks serialises it (its "Signature scheme"), or several, the new one
    first, one space between them: while a secret is rotated, deliveries are signed with each. Never shown."""
    if isinstance(value, str) and all(_is_secret(each) for each in value.split(" ")):
        return value
    raise InvalidValue(
        path, SECRET, _SECRET_ACCEPTED, "`openssl rand -base64 32` draws one; put whsec_ before it."
    )


def _is_secret(text: str) -> bool:
    return text.startswith(SECRET_PREFIX) and _decodes(text.removeprefix(SECRET_PREFIX))


def _decodes(text: str) -> bool:
    try:
        return len(b64decode(text, validate=True)) in _SECRET_BYTES
    except ValueError:
        return False


def _from_kernel(rule: Callable[..., T], path: str, value: object) -> T:
    """A rule of the kernel, with the value shown as this room shows values."""
    try:
        return rule(value, path=path)
    except InvalidValue as error:
        raise refused(path, value, error.accepted) from None


def _plain(figure: float) -> str:
    return f"{figure:,.6f}".rstrip("0").rstrip(".")
