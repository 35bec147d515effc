"""Queries as people and pg_stat_statements give them: several in one text, with parameters. Pure."""

import re

_PARTS = re.compile(
    r"--[^\n]*|/\*.*?\*/|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
    r"|\$(?P<tag>[^\W\d]\w*)?\$.*?\$(?(tag)(?P=tag))\$|\$(?P<number>\d+)|;|[^\W\d][\w$]*",
    re.DOTALL,
)


def statements(text: str) -> tuple[str, ...]:
    """The statements of ``text``, without the semicolons between them and without empty ones. Semicolons in
    strings, quoted names, dollar quotes and comments are not between."""
    found, start = [], 0
    for match in _PARTS.finditer(text):
        if match[0] == ";":
            found.append(text[start : match.start()])
            start = match.end()
    kept = (each.strip() for each in (*found, text[start:]))
    return tuple(each for each in kept if _says_something(each))


def parameters(query: str) -> int:
    """How many parameters it takes: the highest $n outside of strings, names and comments."""
    return max((int(each["number"]) for each in _PARTS.finditer(query) if each["number"]), default=0)


def _says_something(text: str) -> bool:
    return bool(re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).strip())
