"""Write figures into the docs: ``python -m benchmarks.docs`` fills each ``<!-- figures: NAME -->`` block.

A block reaches to its ``<!-- /figures -->``. Only full runs are quoted, each with its date and machine; a
block of which there is none stays as it is.
"""

import re
import sys
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


def filled(page: str, name: str, figures: str) -> str:
    """``page`` with the block of ``name`` replaced by ``figures``. Pure."""
    return BLOCK.sub(
        lambda found: f"{found[1]}\n{figures}\n{found[3]}" if found["name"] == name else found[0], page
    )


def main() -> None:
    """Fill what there are figures for, and say of the others why not."""
    page, kept = PAGE.read_text(), 0
    for name in [found["name"] for found in BLOCK.finditer(page)]:
        try:
            figures = block(name)
        except (OSError, ValueError) as error:
            kept += 1
            print(f"{name} stays as it is: {error}", file=sys.stderr)
        else:
            page = filled(page, name, figures)
    PAGE.write_text(page)
    print(f"wrote {PAGE.name}; {kept} stay as they were")


if __name__ == "__main__":
    main()
