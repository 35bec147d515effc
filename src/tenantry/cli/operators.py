"""``tenantry operators``: who may look at lanes and give orders over HTTP."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.desk_runs import at_desk
from tenantry.cli.options import OnDatabase, command, group
from tenantry.cli.output import Output, moment
from tenantry.kernel.errors import InvalidValue

if TYPE_CHECKING:
    from tenantry.cli.desk import Desk
    from tenantry.postgres.inspection import KeyRecord

app = group("Operators' keys for the API of lanes and orders. Only their hashes are kept.")

_DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class CreateOptions(OnDatabase):
    """One new key."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will show it, as the log names them.")]
    expires_in: Annotated[
        float | None,
        typer.Option(metavar="DAYS", min=0.001, max=36_500, help="Refuse it so many days from now."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RevokeOptions(OnDatabase):
    """One key."""

    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The part between tk_ and the next _.")]


@command(app, "create", CreateOptions)
def create(options: CreateOptions) -> None:
    """Make a key for an operator. It is shown once."""
    from tenantry.config.api_keys import NewApiKey, make_api_key
    from tenantry.kernel.randomness import SystemRandomness
    from tenantry.kernel.tenant import identifier
    from tenantry.postgres.operator_keys import add_operator_key

    name = identifier(options.name, path="NAME")

    async def do(desk: "Desk") -> NewApiKey:
        key = make_api_key(SystemRandomness())
        expires_in = None if options.expires_in is None else options.expires_in * _DAY
        await add_operator_key(desk.urls.admin, name, key, expires_in=expires_in)
        return key

    output, key = Output.of(options), at_desk(options, do)
    output.data({"name": name, "key_id": key.key_id, "operator_key": key.text})
    output.line(key.text)
    output.note(f"This is the only time that it is shown. Its id is {key.key_id}.")


@command(app, "list", OnDatabase)
def list_keys(options: OnDatabase) -> None:
    """The operators' keys: their ids and names, never the keys."""
    from tenantry.postgres.operator_keys import PostgresOperatorKeys

    async def look(desk: "Desk") -> "list[KeyRecord]":
        return await PostgresOperatorKeys(desk.database).keys()

    output, found = Output.of(options), at_desk(options, look)
    output.data(
        [
            {
                "key_id": each.key_id,
                "name": each.note,
                "created_at": each.created_at,
                "expires_at": each.expires_at,
                "revoked_at": each.revoked_at,
            }
            for each in found
        ]
    )
    rows = [
        (each.key_id, each.note, moment(each.created_at), moment(each.expires_at), moment(each.revoked_at))
        for each in found
    ]
    output.table(("key", "name", "created", "expires", "revoked"), rows)
    if not found:
        output.line("None. `tenantry operators create NAME` makes one.")


@command(app, "revoke", RevokeOptions)
def revoke(options: RevokeOptions) -> None:
    """Refuse a key from now on: no node trusts it a moment longer."""
    from tenantry.postgres.operator_keys import revoke_operator_key

    async def do(desk: "Desk") -> bool:
        return await revoke_operator_key(desk.urls.admin, options.key_id)

    if not at_desk(options, do):
        hint = "`tenantry operators list` shows the ids. It is the part between tk_ and the next _."
        raise InvalidValue("KEY_ID", options.key_id[:17], "the id of an operator's key", hint)
    output = Output.of(options)
    output.data({"key_id": options.key_id, "revoked": True})
    output.line("Revoked.")
