"""Row policies: how long an audit takes."""

from benchmarks.context import Context
from benchmarks.rls import audit_speed

CELLS = (audit_speed,)


async def run(context: Context) -> None:
    """Every cell."""
    await context.each(CELLS)
