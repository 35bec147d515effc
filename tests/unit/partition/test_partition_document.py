"""The document's printed output, figure for figure, whatever the process's hash seed."""

import subprocess
import sys
from pathlib import Path

import pytest

PRINTED = """\
tenant-A allowed set (new config): [0, 7, 14, 16, 22, 23, 25, 29]
  msg-0: old= 0  new=16
  msg-1: old= 7  new= 7
  msg-2: old=29  new=29
  msg-3: old=25  new=25
  msg-4: old=25  new=25
tenant-B allowed set (new config): [29]
  msg-0: old=29  new=29
  msg-1: old=29  new=29
  msg-2: old=29  new=29
  msg-3: old=29  new=29
  msg-4: old=29  new=29
tenant-A partitions used: 8 max share: 13.1%
tenant-B partitions used: 1 max share: 100.0%
old set: [0, 7, 25, 29] subset of new: True
messages whose partition changed at widening: 4957 of 10000
deterministic: True
"""


@pytest.mark.parametrize("seed", ["1", "31337"])
def test_the_document_s_whole_output_comes_out_of_a_process_of_any_hash_seed(seed: str) -> None:
    script = Path(__file__).with_name("document.py")
    run = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stdout == PRINTED
