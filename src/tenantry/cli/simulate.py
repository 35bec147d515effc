"""``tenantry simulate``: the product's own rules in virtual time, beside what there is without them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import Shown, command, group
from tenantry.cli.output import Output
from tenantry.cli.partition_files import read, write
from tenantry.cli.progress import advancing
from tenantry.kernel.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from tenantry.simulation.incident import IncidentReport, Scale
    from tenantry.simulation.world import World, WorldReport

app = group("The scheduler and the shapers in virtual time: hours in seconds. Needs no database.")

SeedOption = Annotated[int, typer.Option(metavar="N", help="The same number gives the same answer.")]
PngOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw it as PNG; needs pip install 'tenantry[plots]'."),
]
SvgOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it as SVG.")]


@dataclass(frozen=True, kw_only=True)
class WorldOptions(Shown):
    """Tenants, targets, slots."""

    world: Annotated[
        Path | None,
        typer.Argument(metavar="[WORLD]", help="A TOML or JSON file, - for stdin (TOML); else an hour."),
    ] = None
    policy: Annotated[
        list[str] | None, typer.Option(help="Only this one: FIFO, equal share, weighted share, ours.")
    ] = None
    seed: SeedOption = 1
    svg: SvgOption = None
    png: PngOption = None


@dataclass(frozen=True, kw_only=True)
class ShapersOptions(Shown):
    """Rules on targets."""

    target: Annotated[list[str] | None, typer.Option(help="Only this target; all nine.")] = None
    rule: Annotated[list[str] | None, typer.Option(help="Only this rule beside ours; all five.")] = None
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Runs of each pair; the median counts.")] = 5
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw goodput as SVG; latency beside it, in -latency.")
    ] = None
    png: PngOption = None
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as Markdown.")] = None


@dataclass(frozen=True, kw_only=True)
class IncidentOptions(Shown):
    """Replays, slots."""

    replays: Annotated[int, typer.Option(min=5, max=5_000, help="Tenants that replay at once.")] = 60
    slots: Annotated[int, typer.Option(min=1, max=100_000, help="Of the pool.")] = 400
    median: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Messages of a replay; one has 100 times that.")
    ] = 1_000
    largest: Annotated[int, typer.Option(min=1, max=100_000_000, help="Messages of the largest.")] = 100_000
    live: Annotated[float, typer.Option(min=0.0, max=100.0, help="Live jobs a second of each tenant.")] = 0.2
    seed: SeedOption = 1
    svg: SvgOption = None
    png: PngOption = None


@command(app, "world", WorldOptions)
def world(options: WorldOptions) -> None:
    """Many tenants and their targets under four policies: first in first out, equal, by weight, ours.

    Without a file: 300 tenants, 50 jobs a second in all, bursts and black holes, for an hour.
    """
    from tenantry.simulation.world import HEADINGS, picture, plain, provisioning, rows

    found, output = _world(options.world), Output.of(options)
    chosen = _chosen("--policy", options.policy, ("FIFO", "equal share", "weighted share", "ours"))
    with advancing(output, "simulating", len(chosen) * found.lasts) as advance:
        reports = [_under(found, name, options.seed, advance) for name in chosen]
    output.data(plain(found, reports, seed=options.seed))
    output.table(HEADINGS, rows(reports))
    slots = provisioning(found)
    output.line(
        f"\nSlots: {slots['floors']} for what all do steadily, {slots['provisioned']} with the buffer (these "
        f"ran), {slots['peaks']} for every peak at once: {slots['avoided']:.0%} avoided."
    )
    _draw(lambda: picture(found, reports), options.svg, options.png)


@command(app, "shapers", ShapersOptions)
def shapers(options: ShapersOptions) -> None:
    """Our shaper beside five published rules on nine targets: who gets how much, and how gently.

    Score = (goodput / capacity) x (1 - share of calls slower than 1.5 x reference, or failed).
    """
    from tenantry.simulation.shaping import RULES, TARGETS, goodput_chart, latency_chart, markdown, scored
    from tenantry.simulation.shaping.contest import played

    output = Output.of(options)
    names = _chosen("--target", options.target, tuple(model.name for model in TARGETS))
    rules = _chosen("--rule", options.rule, tuple(name for name in RULES if name != "ours"))
    targets = [model for model in TARGETS if model.name in names]
    playing = {name: make for name, make in RULES.items() if name == "ours" or name in rules}
    results = []
    with advancing(output, "simulating", len(targets) * len(playing)) as advance:
        for result in played(seeds=range(1, options.seeds + 1), targets=targets, rules=playing):
            results.append(result)
            advance(1)
    lines = scored(results)
    output.data([{"target": line.target, "scores": line.scores, "behind": line.behind()} for line in lines])
    cells = [(line.target, *(f"{each:.3f}" for each in line.scores.values())) for line in lines]
    output.table(("target", *playing), cells)
    if options.markdown:
        write(options.markdown, markdown(lines))
    drawn = {
        model.name: {rule: runs[0] for target, rule, runs in results if target == model.name}
        for model in targets
    }
    _draw(lambda: goodput_chart(drawn), options.svg, options.png)
    _draw(lambda: latency_chart(drawn), _beside(options.svg), _beside(options.png))


@command(app, "incident", IncidentOptions)
def incident(options: IncidentOptions) -> None:
    """A mass incident: everybody replays at once, beside the fluid schedule of the same slots.

    One backlog is the largest, one has 100 times the median, one target is a black hole, one backlog is all
    poison. About 15,000 messages are simulated in a second; --replays 300 --slots 2000 --median 8000
    --largest 5000000 is the full form.
    """
    from tenantry.simulation.incident import HEADINGS, Judged, Scale, lines, picture, plain, rows

    output = Output.of(options)
    scale = Scale(
        replays=options.replays,
        bystanders=max(1, options.replays // 15),
        slots=options.slots,
        median=options.median,
        largest=options.largest,
        live=options.live,
    )
    judged = Judged(_replayed(scale, options.seed, output))
    output.data(plain(judged))
    output.table(HEADINGS, rows(judged))
    output.line("\n" + "\n".join(lines(judged)))
    _draw(lambda: picture(judged), options.svg, options.png)


def _replayed(scale: "Scale", seed: int, output: Output) -> "IncidentReport":
    from tenantry.simulation.incident import IncidentRun, mass_incident

    incident = mass_incident(scale, seed=seed)
    with advancing(output, "simulating", incident.messages) as advance:
        return IncidentRun(incident, seed).run(advance)


def _world(file: Path | None) -> "World":
    from tenantry.simulation.world import an_hour, parse_world

    if file is None:
        return an_hour()
    return parse_world(read(file), format="json" if file.suffix == ".json" else "toml", name=file.stem)


def _under(world: "World", name: str, seed: int, advance: Callable[[float], None]) -> "WorldReport":
    from tenantry.kernel.randomness import SeededRandomness
    from tenantry.simulation.world import WorldRun, policies

    return WorldRun(world, policies(SeededRandomness(seed))[name](), seed).run(advance)


def _chosen(option: str, asked: list[str] | None, known: tuple[str, ...]) -> list[str]:
    from tenantry.config.rules import one_of

    for each in asked or ():
        one_of(known)(option, each)
    return [name for name in known if not asked or name in asked]


def _beside(file: Path | None) -> Path | None:
    return None if file is None else file.with_stem(f"{file.stem}-latency")


def _draw(picture: Callable[[], str], svg: Path | None, png: Path | None) -> None:
    if svg is None and png is None:
        return
    drawn = picture()
    if svg is not None:
        write(svg, drawn)
    if png is not None:
        _write_png(png, drawn)


def _write_png(file: Path, svg: str) -> None:
    """Raises :class:`MissingExtra`, and :class:`UsageError` where the file cannot be written."""
    try:
        import resvg_py
    except ModuleNotFoundError:
        raise MissingExtra("plots", "drawing as PNG") from None
    image = resvg_py.svg_to_bytes(svg_string=svg, sans_serif_family="DejaVu Sans")
    try:
        file.write_bytes(bytes(image))
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
