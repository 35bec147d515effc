"""Conditions as EXPLAIN writes them, taken apart: which column, which operator, what it is compared with.

The text is PostgreSQL's own (ruleutils.c), so it is regular: operators stand between operands, casts that
matter are written out, everything nested is in parentheses. What is not understood keeps its text and has
no column.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

_TOKEN = re.compile(
    r"(?P<string>[eE]?'(?:[^']|'')*')|(?P<quoted>\"(?:[^\"]|\"\")*\")|(?P<param>\$\d+)|(?P<number>\d[\d.]*)"
    r"|(?P<word>[^\W\d][\w$]*)|(?P<cast>::)|(?P<operator>[-+*/<>=~!@#%^&|`?]+)|(?P<other>\S)"
)
_TYPE = re.compile(r"::([a-z][\w .\"]*(?:\[\])?)\)?$")


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition of several joined by AND. ``text`` is without its outer parentheses.

    ``column``: of a table's alias, compared by ``operator`` with ``value``; ("", "") where it is no such
    comparison. ``cast``: the type that the column is taken as, or ''. ``operand``: the whole side that has
    the column. ``functions``: called in it, by name. ``columns``: all it mentions.
    """

    text: str
    column: tuple[str, str] = ("", "")
    operator: str = ""
    value: str = ""
    cast: str = ""
    operand: str = ""
    functions: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def sides(self) -> "tuple[Clause, ...]":
        """Itself and, where the value is a column too, the same seen from there: for what joins tables."""
        other = _columns(self.value)
        if len(other) != 1 or not self.operator:
            return (self,)
        cast = _TYPE.search(self.value)
        kind = cast[1] if cast else ""
        return self, replace(self, column=other[0], value=self.operand, operand=self.value, cast=kind)

    @property
    def value_type(self) -> str:
        """The type that the value is written with, or ''."""
        if re.fullmatch(r"-?\d+", self.value):
            return "integer"
        found = _TYPE.search(self.value)
        return found[1] if found else ""

    @property
    def value_is_constant(self) -> bool:
        """Whether the value stands in the query itself, neither a parameter nor another column."""
        kinds = {kind for kind, _ in _tokens(self.value)}
        return bool(self.value) and "param" not in kinds and not _columns(self.value)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int
    depth: int


def clauses(text: str) -> tuple[Clause, ...]:
    """The conditions that ``text`` joins by AND. Linear in its length times the depth of its parentheses."""
    return tuple(_clause(part) for part in _conjuncts(text))


def bare(text: str) -> str:
    """``text`` without table aliases, spaces and outer parentheses: to compare expressions by."""
    tokens = list(_tokens(_without_parentheses(text)))
    aliases = {place for place in range(len(tokens)) if _is_alias(tokens, place)}
    dots = {place + 1 for place in aliases}
    return "".join(each for place, (_, each) in enumerate(tokens) if place not in aliases | dots)


def _is_alias(tokens: list[tuple[str, str]], place: int) -> bool:
    after = [token for _, token in tokens[place + 1 : place + 2]]
    return tokens[place][0] in {"word", "quoted"} and after == ["."]


def _clause(text: str) -> Clause:
    tokens = _placed(text)
    functions = tuple(dict.fromkeys(_functions(text)))
    columns = tuple(dict.fromkeys(_columns(text)))
    plain = Clause(text, functions=functions, columns=columns)
    middle = [each for each in tokens if each.depth == 0 and each.kind == "operator"]
    if len(middle) != 1 or any(each.depth == 0 and each.text in ("OR", "NOT") for each in tokens):
        return plain
    operator = middle[0]
    left, right = text[: operator.start].strip(), text[operator.end :].strip()
    if not _columns(left):
        left, right = right, left
    found = _columns(left)
    if len(found) != 1:
        return plain
    cast = _TYPE.search(left)
    return Clause(text, found[0], operator.text, right, cast[1] if cast else "", left, functions, columns)


def _conjuncts(text: str) -> Iterator[str]:
    inner = _without_parentheses(text)
    start = 0
    for token in _placed(inner):
        if token.depth == 0 and token.text == "AND":
            yield _without_parentheses(inner[start : token.start])
            start = token.end
    yield _without_parentheses(inner[start:])


def _without_parentheses(text: str) -> str:
    found = text.strip()
    while found.startswith("(") and found.endswith(")") and _closes_at_end(found):
        found = found[1:-1].strip()
    return found


def _closes_at_end(text: str) -> bool:
    return all(token.depth > 0 for token in _placed(text) if token.start > 0 and token.end < len(text))


def _placed(text: str) -> list[_Token]:
    """With the depth of parentheses that each stands in; a parenthesis itself counts as inside."""
    found, depth = [], 0
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup or "", match[0]
        depth += token in {"(", "["} and kind == "other"
        found.append(_Token(kind, token, match.start(), match.end(), depth))
        depth -= token in {")", "]"} and kind == "other"
    return found


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    return ((match.lastgroup or "", match[0]) for match in _TOKEN.finditer(text))


def _columns(text: str) -> list[tuple[str, str]]:
    """``alias.column`` wherever it stands: VERBOSE writes every column so."""
    tokens = list(_tokens(text))
    found = []
    for place in range(len(tokens) - 2):
        three = tokens[place : place + 3]
        names = three[0][0] in {"word", "quoted"} and three[2][0] in {"word", "quoted"}
        called = place + 3 < len(tokens) and tokens[place + 3][1] == "("
        typed = place > 0 and tokens[place - 1][0] == "cast"
        if names and three[1][1] == "." and not called and not typed:
            found.append((_unquoted(three[0][1]), _unquoted(three[2][1])))
    return list(dict.fromkeys(found))


def _functions(text: str) -> Iterator[str]:
    tokens = list(_tokens(text))
    for place in range(len(tokens) - 1):
        (kind, token), (_, after) = tokens[place : place + 2]
        if after == "(" and kind in {"word", "quoted"} and token not in _NO_FUNCTIONS:
            yield _unquoted(token)


_NO_FUNCTIONS = frozenset(
    {"AND", "OR", "NOT", "ANY", "ALL", "NULLIF", "COALESCE", "ROW", "ARRAY", "CASE", "WHEN", "THEN", "ELSE"}
    | {"IN", "GREATEST", "LEAST", "SubPlan", "InitPlan", "hashed"}
)
"""Words before a parenthesis that call nothing with a function of its own in the catalogue."""


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
