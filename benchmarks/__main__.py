"""``python -m benchmarks [--name NAME] [--quick] [--only TEXT]``: a table, and ``results/NAME.json``."""

import argparse
import sys
from importlib import import_module

import uvloop

from benchmarks import environment, machine, report
from benchmarks.context import Context
from benchmarks.server import server

NAMES = ("queue", "lanes", "partition", "limiter", "replay", "rls")


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--name", choices=NAMES, help="one benchmark; all of them when left out")
    parser.add_argument("--quick", action="store_true", help="45 seconds at most: fewer cells, shorter runs")
    parser.add_argument(
        "--only",
        default="",
        metavar="TEXT",
        help="only cells whose name holds TEXT; writes nothing by itself",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="with --only: write these claims among those of earlier runs of today, in place of their own",
    )
    parser.add_argument("--runs", type=int, default=0, help="interleaved runs a cell (5; 3 when quick)")
    return parser.parse_args(arguments)


async def one(name: str, chosen: argparse.Namespace) -> bool:
    """Run one benchmark. False when a cell could not be measured."""
    with server() as running:
        context = Context(
            running,
            quick=chosen.quick,
            runs=chosen.runs or (3 if chosen.quick else 5),
            seconds=0.7 if chosen.quick else 2.0,
            only=chosen.only,
        )
        await import_module(f"benchmarks.{name}").run(context)
        took = context.elapsed
    report.show(name, context.claims)
    if chosen.keep or not chosen.only:
        described = machine.described(quick=chosen.quick, took=took)
        path = (report.keep if chosen.only else report.write)(name, context.claims, described)
        print(f"wrote {path.relative_to(path.parent.parent.parent)} after {took:.0f} s")
    missed = [claim.claim for claim in context.claims if claim.met is False]
    for what, names in (("goals not met", missed), ("cells that FAILED", context.failed)):
        if names:
            print(f"{name}: {what}: {'; '.join(names)}", file=sys.stderr)
    return not context.failed


def main() -> int:
    """The exit status is 1 when something could not be measured. A goal that is missed is reported."""
    chosen = options()
    environment.ensure()
    names = [chosen.name] if chosen.name else NAMES
    measured = [uvloop.run(one(name, chosen)) for name in names]
    return 0 if all(measured) else 1


if __name__ == "__main__":
    sys.exit(main())
