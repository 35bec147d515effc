"""Finding the handlers that a worker runs: modules named on the command line, imported once, before it
starts."""

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tenantry.delivery.handlers import Handlers
from tenantry.kernel.errors import InvalidValue, UsageError

_ATTRIBUTE = "handlers"
_SHOWN = 200


def loaded_handlers(names: Sequence[str]) -> Handlers | None:
    """The handlers of one ``MODULE`` or ``MODULE:NAME``; None for no name. Imports from the current directory
    too.

    Raises :class:`UsageError`, saying where, for what cannot be imported, and :class:`InvalidValue` for a
    module without a :class:`~tenantry.delivery.handlers.Handlers` of that name, and for several of them.
    """
    if not names:
        return None
    found = {id(handlers): handlers for handlers in map(_loaded, names)}
    if len(found) > 1:
        hint = "Let the modules register into one object, and name that: --handlers app.handlers"
        raise InvalidValue("--handlers", ", ".join(names), "modules that share one Handlers object", hint)
    return next(iter(found.values()))


def with_print(handlers: Handlers | None) -> Handlers:
    """``handlers``, and beside them ``handler:print``: something to send a first job to."""
    handlers = handlers or Handlers(threads=4)
    if "handler:print" not in handlers.kinds:
        handlers.register("print")(_print_job)
    return handlers


async def _print_job(job: object) -> None:
    from tenantry.queue.model import ClaimedJob

    assert isinstance(job, ClaimedJob)
    text = job.payload[:_SHOWN].decode("utf-8", "replace")
    shown = "".join(each if each.isprintable() else "�" for each in text)
    more = "…" if len(job.payload) > _SHOWN else ""
    print(f"delivered {job.id} of {job.tenant} to handler:print: {shown}{more}", file=sys.stderr, flush=True)


def _loaded(name: str) -> Handlers:
    module_name, _, attribute = name.partition(":")
    module = _imported(module_name)
    handlers = getattr(module, attribute or _ATTRIBUTE, None)
    if isinstance(handlers, Handlers):
        return handlers
    wanted = f"a module in which {attribute or _ATTRIBUTE} is a tenantry.delivery.handlers.Handlers"
    raise InvalidValue(
        "--handlers", name, wanted, "Write: handlers = Handlers(), then @handlers.register('name')."
    )


def _imported(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a console script does not look there by itself
    try:
        return import_module(name)
    except Exception as error:
        raise UsageError(f"--handlers: importing {name!r} failed: {_last_place(error)}") from error


def _last_place(error: Exception) -> str:
    """The error in a line, with the last place of somebody's own code."""
    said = f"{type(error).__name__}: {error}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "importlib" not in each.filename]
    inside = [each for each in frames if each.filename != __file__]
    return f"{said} ({inside[-1].filename}, line {inside[-1].lineno})" if inside else said
