"""A limit around a function, async or not."""

import functools
import inspect
from collections.abc import Callable
from math import inf
from typing import Any, ParamSpec, TypeVar, cast

from tenantry.kernel.errors import InvalidValue, TenantryError
from tenantry.limiter.local import Limiter
from tenantry.limiter.model import Verdict
from tenantry.limiter.node import SharedLimiter

P = ParamSpec("P")
R = TypeVar("R")
Of = str | Callable[..., Any]
"""Which of a call's arguments it is: by the name of a parameter, or by a function of the same arguments."""


class RateLimited(TenantryError):
    """A limited function was not called. ``verdict`` says which limit refused and when to come back."""

    def __init__(self, tenant: str, verdict: Verdict) -> None:
        self.tenant, self.verdict = tenant, verdict
        when = (
            "it never passes" if verdict.retry_after == inf else f"come back in {verdict.retry_after:.3f} s"
        )
        super().__init__(f"{tenant} is over the {verdict.scope}'s rate: {when}")


def limited(
    limiter: Limiter,
    *,
    tenant: Of,
    key: Of | None = None,
    route: str | None = None,
    cost: float | Callable[..., float] = 1,
    timeout: float = 0.0,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function be called only as often as the tenant's plan allows; else :class:`RateLimited` is
    raised.

    ``tenant``, ``key``: the name of the function's parameter that holds it, or a function of its arguments.
    ``cost``: tokens, or a function of its arguments. ``timeout``: seconds that an async function may wait for
    tokens, with a :class:`SharedLimiter`. A function that then fails has been called: it is charged. Raises
    :class:`InvalidValue` when the function has no such parameter.
    """

    def around(function: Callable[P, R]) -> Callable[P, R]:
        call = _Call(function, tenant, key, cost)
        if inspect.iscoroutinefunction(function):
            return cast("Callable[P, R]", _around_async(limiter, function, call, route, timeout=timeout))
        if timeout:
            raise InvalidValue("timeout", timeout, "0 for a function that is not async", "It cannot wait.")
        return _around_sync(limiter, function, call, route)

    return around


class _Call:
    """How to find a call's tenant, key and cost among its arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        tenant: Of,
        key: Of | None,
        cost: float | Callable[..., float],
    ) -> None:
        self._signature = inspect.signature(function)
        self._tenant, self._key, self._cost = tenant, key, cost
        for name, of in (("tenant", tenant), ("key", key)):
            if isinstance(of, str) and of not in self._signature.parameters:
                known = ", ".join(self._signature.parameters) or "(none)"
                raise InvalidValue(name, of, f"a parameter of {function.__name__}: {known}")

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str | None, float]:
        """Tenant, key and cost of one call."""
        cost = self._cost(*args, **kwargs) if callable(self._cost) else self._cost
        key = None if self._key is None else self._read(self._key, args, kwargs)
        return self._read(self._tenant, args, kwargs), key, cost

    def _read(self, of: Of, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if callable(of):
            return of(*args, **kwargs)
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments[of]


def _around_sync(
    limiter: Limiter, function: Callable[P, R], call: _Call, route: str | None
) -> Callable[P, R]:
    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        tenant, key, cost = call.of(args, kwargs)
        verdict = limiter.try_acquire(tenant, key=key, route=route, cost=cost)
        if not verdict:
            raise RateLimited(tenant, verdict)
        return function(*args, **kwargs)

    return run


def _around_async(
    limiter: Limiter, function: Callable[..., Any], call: _Call, route: str | None, *, timeout: float
) -> Callable[..., Any]:
    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        tenant, key, cost = call.of(args, kwargs)
        if isinstance(limiter, SharedLimiter):
            verdict = await limiter.acquire(tenant, key=key, route=route, cost=cost, timeout=timeout)
        else:
            verdict = limiter.try_acquire(tenant, key=key, route=route, cost=cost)
        if not verdict:
            raise RateLimited(tenant, verdict)
        return await function(*args, **kwargs)

    return run
