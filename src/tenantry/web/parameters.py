"""Query parameters: each known one at most once, and no others."""

from urllib.parse import parse_qsl

from tenantry.kernel.errors import nearest
from tenantry.web.calls import AnyCall
from tenantry.web.problems import refused


def parameters(call: AnyCall, known: tuple[str, ...]) -> dict[str, str]:
    """The query's parameters. Raises :class:`~tenantry.web.problems.Refused` (400) for unknown and repeated
    ones."""
    found: dict[str, str] = {}
    for name, value in _pairs(call.scope["query_string"]):
        if name not in known:
            raise refused("invalid-parameter", _unknown(name, known))
        if name in found:
            raise refused("invalid-parameter", f"The query parameter {name} stands twice; give it once.")
        found[name] = value
    return found


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise refused("invalid-parameter", "The query string cannot be read as UTF-8 parameters.") from None


def _unknown(name: str, known: tuple[str, ...]) -> str:
    near = nearest(name, known)
    hint = f" Did you mean {near!r}?" if near else ""
    accepted = "one of " + ", ".join(known) if known else "none"
    return f"Unknown query parameter {name[:40]!r}; expected {accepted}.{hint}"
