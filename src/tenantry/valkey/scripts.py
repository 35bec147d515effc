"""The scripts, each with what it shares with others written before it."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text, and the digest under which a server keeps it."""

    text: str
    sha: str


def script(name: str, *, clock: str | None = None) -> Script:
    """``lua/NAME.lua`` behind the clock and the balance's arithmetic. ``clock``: Lua text that defines
    another ``clock()``, for tests."""
    text = "\n".join([clock or _read("time"), _read("balance"), _read(name)])
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


@cache
def _read(name: str) -> str:
    return (files("tenantry.valkey") / "lua" / f"{name}.lua").read_text(encoding="utf-8")
