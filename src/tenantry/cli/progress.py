"""Progress of long commands: on standard error, on a terminal, and nowhere else. rich is loaded only then."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tenantry.cli.output import Output
from tenantry.cli.sending import Tally
from tenantry.kernel.verdict import Refusal


@contextmanager
def waiting(output: Output, text: str) -> Iterator[Callable[[str], None]]:
    """A line that says what is being waited for; yields what changes it."""
    if not _shown(output):
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True, no_color=not output.colour).status(text) as status:
        yield status.update


@contextmanager
def sending(output: Output, total: int) -> Iterator[Callable[[Tally, Refusal | None], None]]:
    """A bar over ``total`` jobs; yields what moves it after each answer."""
    if not _shown(output):
        yield lambda tally, refusal: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, no_color=not output.colour)) as bar:
        task = bar.add_task("submitting", total=total)

        def told(tally: Tally, refusal: Refusal | None) -> None:
            bar.update(task, completed=tally.accepted, description=_said(refusal))

        yield told


@contextmanager
def advancing(output: Output, text: str, total: float) -> Iterator[Callable[[float], None]]:
    """A bar up to ``total`` of whatever; yields what moves it on."""
    if not _shown(output):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, no_color=not output.colour)) as bar:
        task = bar.add_task(text, total=total)
        yield lambda amount: bar.advance(task, amount)


def _said(refusal: Refusal | None) -> str:
    if refusal is None or refusal.retry_after is None:
        return "submitting"
    return f"refused by {refusal.rule.value}, back in {refusal.retry_after:.1f} s"


def _shown(output: Output) -> bool:
    return not output.json and sys.stderr.isatty()
