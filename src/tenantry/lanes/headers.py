"""Which headers of a replayed message its target gets over HTTP. Pure.

A message of a broker brings its headers along, and whoever could write to the broker chose them. So a target
gets what describes the message and nothing that speaks for the connection or for its sender. Left out are:

- what belongs to one connection or frames the body: the hop-by-hop fields (RFC 9110, section 7.6.1),
  ``Host``, ``Expect``, ``Content-*``;
- what says who sends: ``Authorization``, ``Proxy-*``, cookies, ``Forwarded``, ``Via`` and the
  ``X-Forwarded-*`` family: a message that was put aside for a week must not act with somebody's rights, least
  of all with those of a stranger;
- what would make the ``POST`` another method;
- our own names: ``webhook-*``, ``tenantry-*``, ``User-Agent``, ``Accept-Encoding``;
- a name that is no token, a value that is not printable ASCII, the second of two names that differ in case
  only, and everything beyond 64 headers or 8 KiB of names and values together.

What is left out is left out in silence: the job is delivered, since a target must not lose a message over a
header that it never asked for.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

MOST_HEADERS: Final = 64
MOST_BYTES: Final = 8_192
"""Of names and values together: what common servers accept as a whole head is 8 KiB and more."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)

_KEPT_BACK = frozenset(
    {
        # of the connection
        "connection", "expect", "host", "http2-settings", "keep-alive", "max-forwards", "te", "trailer",
        "transfer-encoding", "upgrade",
        # of the sender
        "authorization", "cookie", "cookie2", "forwarded", "set-cookie", "set-cookie2", "via", "x-real-ip",
        # of the method
        "x-http-method", "x-http-method-override", "x-method-override",
        # ours
        "accept-encoding", "user-agent",
    }
)  # fmt: skip
_FAMILIES = ("content-", "proxy-", "sec-", "tenantry-", "webhook-", "x-forwarded-", "x-tenantry-")


def is_forwarded(name: str, value: str) -> bool:
    """Whether a target gets this header. O(length)."""
    folded = name.lower()
    return (
        _NAME.fullmatch(name) is not None
        and _VALUE.fullmatch(value) is not None
        and folded not in _KEPT_BACK
        and not folded.startswith(_FAMILIES)
    )


def forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of ``headers`` that a target gets, in their order. O(length)."""
    return dict(_within(headers)) if headers else {}


def _within(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    known: set[str] = set()
    left = MOST_BYTES
    for name, value in headers.items():
        size = len(name) + len(value)
        if size <= left and name.lower() not in known and is_forwarded(name, value):
            known.add(name.lower())
            left -= size
            yield name, value.strip()
            if len(known) == MOST_HEADERS:
                return
