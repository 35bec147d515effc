"""Which failures are alike: a fingerprint over error class, status and what the target said. Pure.

What changes from one message to the next (numbers, ids, times, quoted text) is replaced by marks first, so
that "order 4711 not found" and "order 4712 not found" are one class of failure. The marks are those of
Sentry's message parameterization for grouping, less what an excerpt of an answer seldom holds; replacing what
is plainly a variable before texts are compared is the first step of Drain (He, Zhu, Zheng, Lyu: "Drain: An
Online Log Parsing Approach with Fixed Depth Tree", ICWS 2017, section III.A).
"""

import re
from hashlib import blake2b

from tenantry.lanes.outcome import EXCERPT_LIMIT

_MARKS = (
    # Larger things first: what is left of them would be taken for smaller ones.
    ("uuid", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    ("time", r"\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?"),
    ("time", r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"),
    ("email", r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]+(?:\.[\w-]+)+"),
    ("url", r"\bhttps?://[^\s\"'<>]+"),
    ("ip", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"),
    ("hex", r"\b0x[0-9a-f]+\b"),
    ("quoted", r"\"[^\"]*\"|(?<![\w'])'[^']*'(?!\w)|`[^`]*`|\u201c[^\u201d]*\u201d"),
    ("hex", r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b"),
    # A word with digits in it is an id: ord_8f3K, user42.
    ("id", r"\b(?=\w*\d)(?=\w*[a-z_])\w{4,}(?:-\w+)*\b"),
    ("n", r"[-+]?\d+(?:[.,]\d+)*"),
)
_PATTERN = re.compile("|".join(f"(?P<m{at}>{mark[1]})" for at, mark in enumerate(_MARKS)), re.IGNORECASE)
_NAMES = tuple(name for name, _ in _MARKS)


def normalised(excerpt: str) -> str:
    """The excerpt with marks such as ``<n>`` and ``<uuid>`` where it differs from message to message, in
    lower case. Pure, O(length); reads the first 500 characters."""
    marked = _PATTERN.sub(_mark, excerpt[:EXCERPT_LIMIT])
    return " ".join(marked.lower().split())


def fingerprint_of(error_class: str, status: int | None, excerpt: str) -> str:
    """16 hex digits, equal for failures that are alike. Pure, O(length); the same on every machine and, until
    the marks change, in every version."""
    known = "\x00".join((error_class, "" if status is None else str(status), normalised(excerpt)))
    return blake2b(known.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _mark(match: "re.Match[str]") -> str:
    group = match.lastgroup or "m0"
    return f"<{_NAMES[int(group[1:])]}>"
