"""Foreign exceptions of an exchange as outcomes: the one place that knows the HTTP client's tree."""

import errno
import ssl

import aiohttp

from tenantry.delivery.guard import AddressNotAllowed
from tenantry.lanes.outcome import CAUSES, Outcome, excerpt_of

_BY_ERRNO = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.ECONNABORTED: "reset",
    errno.EPIPE: "reset",
    errno.ETIMEDOUT: "connect_timeout",
    errno.EMFILE: "exhausted",
    errno.ENFILE: "exhausted",
    errno.ENOBUFS: "exhausted",
    errno.ENOMEM: "exhausted",
    errno.EADDRNOTAVAIL: "exhausted",  # no local port left
}


def class_of_exception(error: BaseException) -> Outcome:
    """The outcome that ``error``, raised by an exchange, stands for. Pure.

    The excerpt is the operating system's own words or the table's, never the request: no URL, no header.
    """
    refused = _refused_address(error)
    if refused is not None:
        return Outcome("address_not_allowed", excerpt=str(refused))
    name = _name(error)
    return Outcome(name, excerpt=excerpt_of(_words(error) or CAUSES[name].meaning))


def _refused_address(error: BaseException) -> AddressNotAllowed | None:
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return inner if isinstance(inner, AddressNotAllowed) else None


_BY_TYPE: tuple[tuple[str, tuple[type[BaseException], ...]], ...] = (
    ("connect_timeout", (aiohttp.ConnectionTimeoutError,)),
    ("dns", (aiohttp.ClientConnectorDNSError,)),
    ("tls", (aiohttp.ClientSSLError, ssl.SSLError)),
    ("protocol", (aiohttp.ClientResponseError, aiohttp.ClientPayloadError)),
    ("invalid_url", (aiohttp.InvalidURL,)),
    ("timeout", (TimeoutError,)),
)
"""The most telling class first: the client's tree has many double parents."""


def _name(error: BaseException) -> str:
    found = next((name for name, types in _BY_TYPE if isinstance(error, types)), None)
    return found or _by_errno(error)


def _by_errno(error: BaseException) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, aiohttp.ClientConnectorError):
        return _BY_ERRNO.get(number or 0, "unreachable")
    return _BY_ERRNO.get(number or 0, "reset")


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return str(error.strerror)
    return ""
