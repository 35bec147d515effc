"""Which tables the body of a function names, as far as that can be read without its language's parser. Pure.

A body in a procedural language is text to the server too. Names are taken from behind the words that tables
stand behind; what is built at run time (EXECUTE) is not seen, and is asked for by :func:`builds_statements`.
"""

import re
from functools import lru_cache

_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_\x80-\uffff][\w$]*)'
_QUALIFIED = re.compile(rf"(?:({_NAME})\s*\.\s*)?({_NAME})")
_BEHIND = re.compile(r"\b(from|join|into|update|table|truncate|using)\s+(?:only\s+)?", re.IGNORECASE)
_LIST_END = re.compile(
    r"\b(where|group|order|limit|join|left|right|inner|full|cross|union|returning|set|on|loop|into|window|for)\b"
    r"|[;()]",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_DYNAMIC = re.compile(r"\bexecute\b(?!\s+(?:function|procedure)\b)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def tables_named(source: str) -> frozenset[tuple[str, str]]:
    """(schema, name) of what stands where tables do; the schema is "" where none is written."""
    text = _COMMENT.sub(" ", source)
    found = set()
    for keyword in _BEHIND.finditer(text):
        rest = text[keyword.end() :]
        end = _LIST_END.search(rest)
        part = rest[: end.start()] if end else rest
        for item in part.split(",") if keyword[1].lower() in {"from", "using"} else [part]:
            match = _QUALIFIED.match(item.strip())
            if match:
                found.add((_plain(match[1] or ""), _plain(match[2])))
    return frozenset(found)


def builds_statements(source: str) -> bool:
    """Whether it runs text as SQL, so that its tables cannot be told."""
    return _DYNAMIC.search(_COMMENT.sub(" ", source)) is not None


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
