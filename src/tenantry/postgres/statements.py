"""SQL by name: ``statement("queue/settle")`` is the text of ``sql/queue/settle.sql``."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from tenantry.kernel.errors import InvariantBroken, nearest

_PACKAGE = "tenantry.postgres"


@cache
def statement(name: str) -> str:
    """The text of a named statement, read once. Safe to call from any thread.

    Raises :class:`InvariantBroken`, naming the nearest one, for a name without a file.
    """
    file = files(_PACKAGE).joinpath("sql", f"{name}.sql")
    if not file.is_file():
        near = nearest(name, names())
        hint = f"did you mean {near!r}?" if near else "there is none like it"
        raise InvariantBroken(f"no statement is named {name!r}; {hint}")
    return file.read_text(encoding="utf-8")


def names() -> tuple[str, ...]:
    """The names of every statement, sorted. Reads directories: for tests and for error messages."""
    root = files(_PACKAGE).joinpath("sql")
    return tuple(sorted(_names_below(root, ""))) if root.is_dir() else ()


def _names_below(directory: Traversable, prefix: str) -> list[str]:
    found = []
    for entry in directory.iterdir():
        if entry.is_dir():
            found += _names_below(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".sql"):
            found.append(prefix + entry.name.removesuffix(".sql"))
    return found
