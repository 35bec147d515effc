"""Starts a second, as one number: the instant at which the tenant's bucket was last empty.

The bucket holds ``max(1, rate)`` starts and fills at ``rate`` a second. Keeping the instant instead of a
count makes refilling free and exact: an hour at the limit starts ``3600 · rate`` jobs and one bucket.
"""

from math import inf

from tenantry.algorithms.fair_share.records import Tenant


def tokens(tenant: Tenant, now: float) -> int:
    """How many the tenant may start now, at least 1: it is asked only while it is not held."""
    if tenant.rate is None:
        return 1 << 30
    return max(1, int((now - _emptied(tenant, tenant.rate, now)) * tenant.rate + 1e-9))


def spend(tenant: Tenant, count: int, now: float) -> None:
    if tenant.rate is not None:
        tenant.spent_until = _emptied(tenant, tenant.rate, now) + count / tenant.rate


def next_at(tenant: Tenant) -> float:
    """The instant of the next start that the rate allows. The tenant must have one."""
    return tenant.spent_until + 1.0 / (tenant.rate or inf)


def _emptied(tenant: Tenant, rate: float, now: float) -> float:
    return max(tenant.spent_until, now - max(1.0, 1.0 / rate))
