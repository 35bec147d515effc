"""schemathesis as people run it, from the command line, against a served document."""

import asyncio
import sys
from pathlib import Path


async def run_against(url: str, key: str, home: Path) -> tuple[int | None, bytes]:
    """Its exit code and what it told.

    What is valid by the schema may still be refused (a target must exist, one credential and not two).
    """
    arguments = [
        *("run", f"{url}/v1/openapi.json", "--header", f"Authorization: Bearer {key}"),
        *("--exclude-checks", "positive_data_acceptance", "--suppress-health-check", "all"),
        *("--phases", "coverage", "--seed", "1"),
    ]
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("schemathesis")), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=home,
        env={"NO_COLOR": "1", "HOME": str(home)},
    )
    told, _ = await process.communicate()
    return process.returncode, told
