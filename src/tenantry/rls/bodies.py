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

_TEXT = re.compile(r"'(?:[^']|'')*'")
_CALLED = re.compile(rf"(?:({_NAME})\s*\.\s*)?({_NAME})\s*\(")
_COALESCE = re.compile(r"\bcoalesce\s*\(", re.IGNORECASE)
_PARTS = re.compile(r"'(?:[^']|'')*'|[(),]|[^'(),]+|'")
_LITERAL = re.compile(r"(?:'(?:[^']|'')+'|-?\d+)(?:\s*::\s*[\w\s.\"]+)?")


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


@lru_cache(maxsize=4096)
def functions_named(source: str) -> frozenset[tuple[str, str]]:
    """(schema, name) of what is called, keywords that look like a call among them; "" as above."""
    text = _TEXT.sub("''", _COMMENT.sub(" ", source))
    return frozenset((_plain(each[1] or ""), _plain(each[2])) for each in _CALLED.finditer(text))


def builds_statements(source: str) -> bool:
    """Whether it runs text as SQL, so that its tables cannot be told."""
    return _DYNAMIC.search(_COMMENT.sub(" ", source)) is not None


def falls_back(source: str) -> bool:
    """Whether it puts something written down in place of a setting that is not there: COALESCE around
    ``current_setting``, ending in a literal that is neither NULL nor ''."""
    text = _COMMENT.sub(" ", source)
    return any(_puts_a_literal(_arguments(text[found.end() :])) for found in _COALESCE.finditer(text))


def _puts_a_literal(arguments: list[str]) -> bool:
    first, last = arguments[0], arguments[-1].strip()
    return len(arguments) > 1 and "current_setting" in first.lower() and _LITERAL.fullmatch(last) is not None


def _arguments(text: str) -> list[str]:
    """Those of a call, from behind its parenthesis on."""
    found, depth = [""], 0
    for part in _PARTS.findall(text):
        if part == ")" and not depth:
            break
        depth += {"(": 1, ")": -1}.get(part, 0)
        if part == "," and not depth:
            found.append("")
        else:
            found[-1] += part
    return found


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
