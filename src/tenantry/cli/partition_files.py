"""What the partition commands read and write: layouts, traffic, moments, a heat map's file."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.options import Shown
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from tenantry.partition import History


@dataclass(frozen=True, kw_only=True)
class OfLayouts(Shown):
    """A file of layouts."""

    layouts: Annotated[
        Path, typer.Option(metavar="FILE", help="The layouts, TOML or JSON (.json); - for standard input.")
    ] = Path("partitions.toml")


TrafficOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Measured traffic: CSV with tenant,rate, or JSON lines; - for stdin."),
]
SvgOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a heat map of the load to this SVG file.")
]


def history_of(file: Path) -> "History":
    """The layouts of ``file``. Raises :class:`UsageError` where it cannot be read."""
    from tenantry.partition import parse_history

    return parse_history(read(file), format="json" if file.suffix == ".json" else "toml")


def traffic_of(file: Path) -> dict[str, float]:
    """The traffic of ``file``, as :func:`history_of`."""
    from tenantry.partition import parse_traffic

    return parse_traffic(read(file))


def read(file: Path) -> bytes:
    """The bytes of ``file``, or of standard input for ``-``."""
    if str(file) == "-":
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error


def write(file: Path, text: str) -> None:
    """``text`` as ``file``. Raises :class:`UsageError`."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error


def moment_of(path: str, text: str) -> float:
    """Seconds since 1970, or an ISO 8601 time; one without a zone is UTC. Raises :class:`InvalidValue`."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        accepted = "seconds since 1970, or a time such as 2026-03-01T00:00:00Z"
        raise InvalidValue(path, text, accepted) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
