"""Row policies: how long an audit takes, and what it finds beside other tools."""

from benchmarks.context import Context
from benchmarks.rls import audit_speed, beside

CELLS = (audit_speed, beside)


async def run(context: Context) -> None:
    """Every cell."""
    await context.each(CELLS)
