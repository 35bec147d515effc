"""``benchmarks`` is no part of the installed package: it is found from the root of the checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
