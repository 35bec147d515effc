"""Where and when figures were made: they mean nothing without it."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import environment


def described(*, quick: bool, took: float) -> dict[str, Any]:
    """What ``benchmarks/results/NAME.run.json`` holds."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "quick": quick,
        "took_seconds": round(took),
        "peers": environment.versions(),
    }


def machine() -> str:
    """Processors, memory, kernel and Python, as one line. No name of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} × {_processor()}, {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}"
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
