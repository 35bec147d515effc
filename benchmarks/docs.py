"""Write figures into the docs: ``python -m benchmarks.docs`` fills each ``<!-- figures: NAME -->`` block.

A block reaches to its ``<!-- /figures -->``. Only full runs are quoted, each with its date and machine.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import markdown, read

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BLOCK = re.compile(r"(<!-- figures: (?P<name>[a-z]+) -->\n).*?(<!-- /figures -->)", re.DOTALL)


def block(name: str) -> str:
    """The figures of one benchmark as Markdown. Raises :class:`ValueError` for those of a quick run."""
    claims, run = read(name)
    if run["quick"]:
        raise ValueError(
            f"results/{name}.json is of a quick run: docs quote full ones (make bench NAME={name})"
        )
    peers = ", ".join(f"{peer} {version}" for peer, version in run["peers"].items())
    return f"Measured on {run['date']}: {run['machine']}. Peers: {peers}.\n\n{markdown(claims)}\n"


def filled(page: str, figures: Callable[[str], str]) -> str:
    """``page`` with each block replaced by ``figures(name)``. Pure."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{figures(found['name'])}\n{found[3]}", page)


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(), block))
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"nothing was written: {error}")
