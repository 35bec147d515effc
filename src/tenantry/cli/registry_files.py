"""Reading a registry file as options describe it: its format, its columns, its words for tiers."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tenantry.cli.options import Shown
from tenantry.kernel.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from tenantry.config.backstage import BackstagePlaces
    from tenantry.config.csv_registry import CsvColumns
    from tenantry.config.registry import Format, Registry
    from tenantry.config.tiers import Tier

_BY_NAME = {
    ".toml": "toml",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".yaml": "backstage",
    ".yml": "backstage",
}


@dataclass(frozen=True, kw_only=True)
class FileOptions(Shown):
    """How a file is to be read."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="The registry, or - for standard input.")]
    format: Annotated[
        str | None, typer.Option(help="toml, json, csv or backstage; unless given, by the file's name.")
    ] = None
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=COLUMN", help="CSV: the column of the tenant or the tier: tenant=service."
        ),
    ] = None
    delimiter: Annotated[str | None, typer.Option(help="CSV: what stands between columns, if no comma.")] = (
        None
    )
    alias: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD=TIER", help="CSV, Backstage: what the file calls a tier: tier-1=critical."
        ),
    ] = None
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Backstage: which entities are tenants; Component unless given."),
    ] = None
    tier_from: Annotated[
        list[str] | None,
        typer.Option(metavar="PLACE", help="Backstage: label:KEY, annotation:KEY or spec.KEY. Repeatable."),
    ] = None
    tier_if_absent: Annotated[
        str | None, typer.Option(metavar="TIER", help="Backstage: the tier of an entity that names none.")
    ] = None


def read_file(options: FileOptions, *, tiers: "tuple[Tier, ...]", floor: float) -> "Registry":
    """The registry in the file, over ``tiers`` and ``floor``.

    Raises :class:`UsageError` for a file that cannot be read, an option of another format, and every fault of
    the registry at once."""
    from tenantry.config.registry import parse_registry

    form = _format(options)
    _check_meant_for(options, form)
    return parse_registry(
        _bytes(options.file),
        format=cast("Format", form),
        tiers=tiers,
        floor=floor,
        csv=_columns(options),
        backstage=_places(options),
    )


def pairs(texts: Sequence[str] | None, *, path: str) -> dict[str, str]:
    """``LEFT=RIGHT`` options as a mapping. Raises :class:`InvalidValue` for one without ``=``."""
    found = {}
    for text in texts or ():
        left, sign, right = text.partition("=")
        if not (left and sign and right):
            raise InvalidValue(path, text, "LEFT=RIGHT, such as tenant=service")
        found[left] = right
    return found


def _format(options: FileOptions) -> str:
    form = options.format or _BY_NAME.get(options.file.suffix.lower())
    if form is None:
        accepted = "a name ending in " + ", ".join(_BY_NAME)
        raise InvalidValue("FILE", str(options.file), accepted, "Or say --format toml|json|csv|backstage.")
    return form


def _check_meant_for(options: FileOptions, form: str) -> None:
    """An option that this format would ignore is a slip: say so."""
    of = {
        "column": ("csv",),
        "delimiter": ("csv",),
        "alias": ("csv", "backstage"),
        "kind": ("backstage",),
        "tier_from": ("backstage",),
        "tier_if_absent": ("backstage",),
    }
    for name, forms in of.items():
        if getattr(options, name) and form not in forms:
            option = "--" + name.replace("_", "-")
            raise InvalidValue(
                option, getattr(options, name), f"the formats {', '.join(forms)}", f"Not for {form}."
            )


def _columns(options: FileOptions) -> "CsvColumns":
    from tenantry.config.csv_registry import CsvColumns

    named = pairs(options.column, path="--column")
    for field in named.keys() - {"tenant", "tier"}:
        raise InvalidValue("--column", field, "tenant=COLUMN or tier=COLUMN")
    delimiter = options.delimiter or ("\t" if options.file.suffix.lower() == ".tsv" else ",")
    aliases = pairs(options.alias, path="--alias")
    return CsvColumns(named.get("tenant", "tenant"), named.get("tier", "tier"), aliases, delimiter)


def _places(options: FileOptions) -> "BackstagePlaces":
    from tenantry.config.backstage import BackstagePlaces

    usual = BackstagePlaces()
    return BackstagePlaces(
        kinds=tuple(options.kind or usual.kinds),
        tier_from=tuple(options.tier_from or usual.tier_from),
        tier_if_absent=options.tier_if_absent,
        aliases=pairs(options.alias, path="--alias"),
    )


def _bytes(file: Path) -> bytes:
    if str(file) == "-":
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
