"""Every python block of the README and the docs runs as it is printed, in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        (f"{page.relative_to(ROOT)}:{page.read_text()[: found.start()].count(chr(10)) + 1}", found[1])
        for page in pages
        for found in _BLOCK.finditer(page.read_text())
    ]


BLOCKS = blocks()


def test_there_are_examples_to_run() -> None:
    assert len(BLOCKS) >= 10


@pytest.mark.parametrize("source", [source for _, source in BLOCKS], ids=[place for place, _ in BLOCKS])
def test_the_example_runs(source: str, server_home: Path) -> None:
    script = server_home / "example.py"
    script.write_text(source)
    command = [sys.executable, str(script)]
    run = subprocess.run(command, cwd=server_home, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
