"""A decision as HTTP response headers. Pure.

``RateLimit-Policy`` and ``RateLimit`` as draft-ietf-httpapi-ratelimit-headers-10 has them: an item a limit,
named by its scope; at most ``q`` at once, which is refilled in ``w`` seconds; ``r`` left, one more in ``t``
seconds. ``Retry-After`` (RFC 9110, section 10.2.3) in whole seconds, rounded up: who sleeps so long passes.
"""

from collections.abc import Iterable
from math import ceil, inf
from typing import Final

from tenantry.limiter.model import Limit, Standing, Verdict

LONGEST: Final = 999_999_999_999_999
"""The largest integer that a structured field holds (RFC 8941, section 3.3.1)."""


def policy(standings: Iterable[Standing]) -> str:
    """The value of ``RateLimit-Policy``."""
    return ", ".join(
        f'"{each.scope}";q={_whole(each.limit.capacity)};w={window_of(each.limit)}' for each in standings
    )


def service(standings: Iterable[Standing]) -> str:
    """The value of ``RateLimit``."""
    return ", ".join(f'"{each.scope}";r={_whole(each.remaining)}{_more(each)}' for each in standings)


def _more(standing: Standing) -> str:
    return f";t={max(1, _up(standing.more_in))}" if standing.more_in > 0 else ""


def retry_after(verdict: Verdict) -> str | None:
    """The value of ``Retry-After``, at least 1; None where coming back does not help, or need not be."""
    if verdict.allowed or verdict.retry_after == inf:
        return None
    return str(max(1, _up(verdict.retry_after)))


def headers_of(verdict: Verdict, standings: list[Standing]) -> list[tuple[str, str]]:
    """All that apply to a response; empty where there is no limit."""
    found = []
    if standings:
        found += [("RateLimit-Policy", policy(standings)), ("RateLimit", service(standings))]
    wait = retry_after(verdict)
    if wait is not None:
        found.append(("Retry-After", wait))
    return found


def window_of(limit: Limit) -> int:
    """Seconds in which a limit's capacity refills, rounded up."""
    return max(1, _up(limit.window))


def _up(seconds: float) -> int:
    return min(LONGEST, ceil(seconds - 1e-9))


def _whole(tokens: float) -> int:
    return min(LONGEST, int(tokens))
