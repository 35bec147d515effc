"""``docs/cli.md``, drawn from the commands: ``python -m tenantry.cli.reference > docs/cli.md``."""

import re
import sys
from collections.abc import Iterator
from typing import Any

from tenantry.cli.main import COMMANDS, loaded

_OPENING = """# The command line

<!-- Drawn from the commands by `python -m tenantry.cli.reference > docs/cli.md`; a test keeps it true. -->

Every command takes `--help`. Those that look at the database take its URL from `--database-url` or
`TENANTRY_DATABASE_URL`; without one they use the embedded server in `--data-dir` (`.tenantry`), which they
start for as long as they need it when `tenantry up` does not run.

`--json` prints one JSON document on standard output and nothing else there; an error is then one JSON object
on standard error. `NO_COLOR` and `--no-color` are kept. Progress is shown on a terminal only.

| exit code | means |
| --- | --- |
| 0 | done |
| 1 | what was asked about is not well: a check failed, a job died, a submit was refused |
| 2 | the call must be changed: a wrong option, value, file or address |
| 3 | a dependency failed: the database or the API cannot be reached; try again later |
| 70 | a fault of Tenantry's own: one line says what, where to report it, and where its trace is |
| 128 + n | ended by signal n |
"""


def render() -> str:
    """The page. ``demo`` is left out: its own page tells of it."""
    return _OPENING + "".join(_part(name) for name in COMMANDS if name != "demo")


def _part(name: str) -> str:
    return "".join(_described(f"tenantry {name}", loaded(name, COMMANDS[name])))


def _described(path: str, command: Any) -> Iterator[str]:
    yield f"\n## `{path}{_arguments(command)}`\n\n{_prose(command.help)}\n"
    rows = [row for parameter in command.params if (row := _row(parameter))]
    if rows:
        yield "\n| option | default | meaning |\n| --- | --- | --- |\n" + "".join(rows)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _described(f"{path} {name}", inner)


def _arguments(command: Any) -> str:
    return "".join(f" {parameter.metavar}" for parameter in command.params if _is_argument(parameter))


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _row(parameter: Any) -> str:
    if _is_argument(parameter) or parameter.name == "help":
        return ""
    names = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    default = "" if parameter.default in (None, False, ()) else f"`{parameter.default}`"
    variable = f" (`{parameter.envvar}`)" if parameter.envvar else ""
    return f"| {names}{value} | {default} | {_cell(parameter.help or '')}{variable} |\n"


def _prose(text: str | None) -> str:
    return re.sub(r"[ \t]*\n[ \t]*", "\n", (text or "").strip())


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    sys.stdout.write(render())
