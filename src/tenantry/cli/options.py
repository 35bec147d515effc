"""Options as frozen records, and the decorator that makes a command of a function over one.

The environment is read here and nowhere else: an option names its variable.
"""

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.models import ArgumentInfo

from tenantry.kernel.errors import InvalidValue, UsageError

T = TypeVar("T")

DATABASE_URL = "TENANTRY_DATABASE_URL"
API_URL, API_KEY = "TENANTRY_URL", "TENANTRY_API_KEY"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shown:
    """How a command prints."""

    json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colours; NO_COLOR in the environment does the same.")
    ] = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnDatabase(Shown):
    """Where the database is: a URL, or the embedded server's directory."""

    database_url: Annotated[
        str | None,
        typer.Option(
            envvar=DATABASE_URL,
            metavar="URL",
            help="The operator's login: postgresql://user:password@host:port/database. Wins over --data-dir.",
        ),
    ] = None
    engine_url: Annotated[
        str | None,
        typer.Option(
            envvar="TENANTRY_ENGINE_URL",
            metavar="URL",
            help="The login tenantry_engine, where it differs in more than its name; may lead to PgBouncer.",
        ),
    ] = None
    tenant_url: Annotated[
        str | None,
        typer.Option(
            envvar="TENANTRY_TENANT_URL", metavar="URL", help="The same for the login tenantry_tenant."
        ),
    ] = None
    data_dir: Annotated[
        Path,
        typer.Option(
            envvar="TENANTRY_DATA_DIR", help="Where the embedded server keeps its data, without a URL."
        ),
    ] = Path(".tenantry")


def command(
    app: typer.Typer, name: str, options: type[T]
) -> Callable[[Callable[[T], None]], Callable[[T], None]]:
    """Registers a function over a frozen record of options as the command ``name``.

    A field is an option or, if it says so, an argument; own fields come before inherited ones in the help.
    The function's docstring is the command's help.
    """

    def add(function: Callable[[T], None]) -> Callable[[T], None]:
        def run(**given: Any) -> None:
            _check_texts(parameters, given)
            function(options(**given))

        parameters = _parameters(options)
        _dress(run, function, parameters)
        app.command(name)(run)
        return function

    return add


def default_command(
    app: typer.Typer, options: type[T]
) -> Callable[[Callable[[T], None]], Callable[[T], None]]:
    """As :func:`command`, for what a group does by itself, without a subcommand. An option that stands before
    a subcommand is refused: nobody would read it."""

    def add(function: Callable[[T], None]) -> Callable[[T], None]:
        def run(ctx: typer.Context, **given: Any) -> None:
            if ctx.invoked_subcommand is not None:
                _refuse_misplaced(ctx, parameters)
                return
            _check_texts(parameters, given)
            function(options(**given))

        parameters = _parameters(options)
        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        _dress(run, function, [context, *parameters])
        app.callback(invoke_without_command=True, help=inspect.getdoc(function))(run)
        return function

    return add


def _dress(
    run: Callable[..., None], function: Callable[..., None], parameters: list[inspect.Parameter]
) -> None:
    """``run`` as typer reads it: with the help of ``function`` and with these parameters."""
    run.__doc__ = function.__doc__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads


def _refuse_misplaced(ctx: typer.Context, parameters: list[inspect.Parameter]) -> None:
    for each in parameters:
        source = ctx.get_parameter_source(each.name)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"{_shown_name(each)} stands before `{ctx.invoked_subcommand}`: put it behind")


def _check_texts(parameters: list[inspect.Parameter], given: dict[str, Any]) -> None:
    for each in parameters:
        check_text(_shown_name(each), given.get(each.name))


def check_text(path: str, value: object) -> None:
    """Refuses text that nothing behind the command line can keep: with NUL, or with bytes
    that are not UTF-8, which reach a program as lone surrogates. Other values pass; paths are the parser's.

    Raises :class:`InvalidValue` naming ``path``."""
    if isinstance(value, list):
        for each in value:
            check_text(path, each)
    elif isinstance(value, str) and not _is_text(value):
        from tenantry.config.validation import Described

        # not shown: it may be a key
        raise InvalidValue(path, Described("this text"), "text in UTF-8 without NUL")


def _is_text(value: str) -> bool:
    try:
        return b"\x00" not in value.encode()
    except UnicodeEncodeError:
        return False


def _shown_name(parameter: inspect.Parameter) -> str:
    """As the help has it: ``--class``, ``TENANT``."""
    (told,) = parameter.annotation.__metadata__
    told_names = (told.default, *(told.param_decls or ()))  # the first stands where a default would
    long = [each for each in told_names if isinstance(each, str) and each.startswith("--")]
    if isinstance(told, ArgumentInfo):
        return (told.metavar or parameter.name.upper()).strip("[].")
    return long[0] if long else "--" + parameter.name.replace("_", "-")


def group(help_text: str | None = None) -> typer.Typer:
    """A module's ``app``, in the one style of all of them."""
    return typer.Typer(
        help=help_text,
        no_args_is_help=help_text is not None,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _parameters(options: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(options, include_extras=True)
    own = inspect.get_annotations(options)
    fields = sorted(dataclasses.fields(options), key=lambda field: field.name not in own)
    return [_parameter(each, hints[each.name]) for each in fields]


def _parameter(field: "dataclasses.Field[Any]", hint: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
