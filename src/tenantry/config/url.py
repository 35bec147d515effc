"""Which text is a URL that jobs may be delivered to. A pure rule, one for the registry, admission and
delivery.

Two parsers that disagree about a URL are how address checks are got round, so this accepts only what every
parser reads alike: one scheme of two, no user name, no backslash, no control or non-ASCII character, and a
host that is a plain name, a canonical dotted quad or a bracketed IPv6 address. ``http://0x7f.1/`` and
``http://2130706433/`` are addresses to some and names to others (WHATWG URL, "ends in a number"): refused.
Where the host *leads* is not decided here: a name is looked up, and its address checked, when it is used.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from tenantry.kernel.errors import InvalidValue

LONGEST_URL = 2_048

_ACCEPTED = "an absolute http:// or https:// URL"
_URL = re.compile(
    r"(?i:https?)://(?P<host>\[[^\]/?]*\]|[^:/?\[\]]*)(?::(?P<port>[^/?]*))?(?:[/?].*)?", re.ASCII | re.DOTALL
)
_FORBIDDEN = re.compile(r"[^!-~]|[\"<>\\]")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)
_START = re.compile(r"[^/?#@\s]{0,63}(?://[^/?#@\s]{0,253})?(?=[/?#]|\Z)")
_NUMERIC = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*", re.ASCII)


def check_url(text: str, *, path: str = "target") -> None:
    """Returns for a URL that may be delivered to. Pure, O(length).

    Raises :class:`InvalidValue`, naming ``path`` and what to change. Of a refused URL at most the scheme and
    host are echoed: the rest carries credentials.
    """
    problem = problem_of(text)
    if problem is not None:
        raise InvalidValue(path, _shown(text), _ACCEPTED, problem)


def problem_of(text: object) -> str | None:
    """What is wrong with ``text`` as a delivery URL and how to repair it, or None. Pure, O(length)."""
    if not isinstance(text, str) or len(text) > LONGEST_URL:
        return f"It must be text of at most {LONGEST_URL} characters."
    if _FORBIDDEN.search(text):
        return "Percent-encode spaces, control characters, quotes, '<', '>', '\\' and all that is not ASCII."
    if "#" in text:
        return "Leave out the fragment ('#…'): it is never sent to a target."
    if "@" in _authority(text):
        return "Leave out the user name and password; sign deliveries with a secret instead."
    match = _URL.fullmatch(text)
    if match is None:
        return "It must start with http:// or https://, then a host."
    return _port_problem(match["port"]) or _host_problem(match["host"])


def _authority(text: str) -> str:
    return re.split(r"[/?]", text.partition("://")[2], maxsplit=1)[0]


def _port_problem(port: str | None) -> str | None:
    if port is None or (re.fullmatch(r"[0-9]{1,5}", port, re.ASCII) and 1 <= int(port) <= 65_535):
        return None
    return "The port must be a number from 1 to 65535."


def _host_problem(host: str) -> str | None:
    if host.startswith("["):
        return None if _is_ipv6(host[1:-1]) else "The part in brackets is not an IPv6 address without a zone."
    labels = host.removesuffix(".").split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return (
            "The host must be a DNS name (international ones as xn--…), an IPv4 or a bracketed IPv6 address."
        )
    if _NUMERIC.fullmatch(labels[-1]) and not _is_ipv4(host):
        return "Write an IPv4 address as four decimal numbers, like 192.0.2.7."
    return None


def _is_ipv4(host: str) -> bool:
    try:
        return str(IPv4Address(host)) == host
    except AddressValueError:
        return False


def _is_ipv6(host: str) -> bool:
    try:
        return IPv6Address(host).scope_id is None
    except AddressValueError:
        return False


def _shown(text: object) -> object:
    """The scheme and host at most: paths, queries and user names of webhook URLs carry credentials."""
    start = _START.match(text) if isinstance(text, str) else None
    return text if not isinstance(text, str) else start[0] + "…" if start else "a URL"
