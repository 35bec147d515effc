"""How figures are shown and kept."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Claim, as_json, from_json, short

RESULTS = Path(__file__).parent / "results"
COLUMNS = ("claim", "unit", "ours", "floor", "peers", "ratio", "goal", "met", "spread")


def cells(claim: Claim) -> tuple[str, ...]:
    """One line of the table, as text."""
    peers = ", ".join(f"{name} {short(value)}" for name, value in claim.peers.items())
    verdict = {True: "yes", False: "no", None: "–"}[claim.met]
    return (
        claim.claim, claim.unit, short(claim.ours), short(claim.floor), peers or "–", short(claim.ratio),
        claim.goal or "–", verdict, f"{claim.spread:.0%}",
    )  # fmt: skip


def show(name: str, claims: Sequence[Claim]) -> None:
    """The table, to the terminal."""
    table = Table(*COLUMNS, title=f"{name}: medians; a ratio above 1 is better", show_lines=True)
    for claim in claims:
        table.add_row(*cells(claim))
    Console(width=150).print(table)


def markdown(claims: Sequence[Claim]) -> str:
    """The table, for the docs."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(cells(claim) for claim in claims)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write(name: str, claims: Sequence[Claim], run: dict[str, Any]) -> Path:
    """``results/NAME.json`` (the claims) and ``results/NAME.run.json`` (date, machine, versions)."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.run.json").write_text(json.dumps(run, indent=2) + "\n")
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(as_json(claims), indent=2, ensure_ascii=False) + "\n")
    return path


def keep(name: str, claims: Sequence[Claim], run: dict[str, Any]) -> Path:
    """As :func:`write`, but claims of other cells stay, where they are of the same day, machine and kind of
    run."""
    others: list[Claim] = []
    try:
        before, told = read(name)
    except OSError:
        before, told = [], {}
    if all(told.get(key) == run[key] for key in ("date", "machine", "quick")):
        mine = {claim.claim for claim in claims}
        others = [claim for claim in before if claim.claim not in mine]
        run = {**run, "took_seconds": run["took_seconds"] + told["took_seconds"]}
    return write(name, [*others, *claims], run)


def read(name: str, results: Path = RESULTS) -> tuple[list[Claim], dict[str, Any]]:
    """What :func:`write` wrote."""
    claims = from_json(json.loads((results / f"{name}.json").read_text()))
    return claims, json.loads((results / f"{name}.run.json").read_text())
