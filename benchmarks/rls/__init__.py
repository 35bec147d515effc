"""Row policies: how long an audit takes, what it finds beside other tools, what a bound transaction costs."""

from benchmarks.context import Context
from benchmarks.rls import audit_speed, beside, bound

CELLS = (audit_speed, beside, bound)


async def run(context: Context) -> None:
    """Every cell."""
    await context.each(CELLS)
