"""One day of the ledger, of all tenants: read key by key from every server, in small steps."""

from collections.abc import AsyncIterator
from datetime import date
from typing import Any, Final

from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.exchange import Booking
from tenantry.limiter.ledger import EPOCH, LedgerLine
from tenantry.valkey.topology import FAULTS, Topology, execute

_STEP: Final = 500  # keys that a server looks at in one step: a millisecond of its time


async def day_of_all(topology: Topology, prefix: str, day: date) -> AsyncIterator[LedgerLine]:
    """The tenants' own limits of ``day``. A tenant may come again, with the same line or a later one. Memory:
    one step. Raises :class:`StoreUnavailable` when a server does not answer, or when who serves what has
    changed meanwhile, so that something may have been missed; :class:`UsageError` as the topology does."""
    owners = await topology.owners()
    for server in dict.fromkeys(owners):
        try:
            async for line in _day_on(topology.client(server), prefix, day):
                yield line
        except FAULTS as error:
            raise StoreUnavailable(f"{server} failed while its ledger was read; try again") from error
    if await topology.owners() != owners:
        raise StoreUnavailable("servers of the authority changed while the ledger was read; try again")


async def _day_on(client: Any, prefix: str, day: date) -> AsyncIterator[LedgerLine]:
    cursor, pattern = "0", f"{_literal(prefix)}:{{*}}:ledger"
    while True:
        told, keys = await execute(client, "SCAN", cursor, "MATCH", pattern, "COUNT", str(_STEP))
        for line in await _lines(client, prefix, keys, day):
            yield line
        cursor = str(int(told))
        if cursor == "0":
            return


async def _lines(client: Any, prefix: str, keys: list[bytes], day: date) -> list[LedgerLine]:
    """Only the fields that are needed: a tenant's ledger may hold thousands of its keys, for five weeks."""
    kinds = Booking._fields
    fields = [f"{(day - EPOCH).days}|{kind}|tenant" for kind in kinds]
    tenants = {key: _tenant_of(key.decode(errors="replace"), prefix) for key in keys}
    ours = [key for key, tenant in tenants.items() if tenant]
    pipeline = client.pipeline(transaction=False)
    for key in ours:
        pipeline.hmget(key, fields)
    lines = []
    for key, amounts in zip(ours, await pipeline.execute() if ours else (), strict=True):
        if any(amount is not None for amount in amounts):
            booking = Booking(*(float(amount or 0) for amount in amounts))
            lines.append(LedgerLine(tenants[key], day, "tenant", booking))
    return lines


def _tenant_of(key: str, prefix: str) -> TenantId:
    """Empty where the key is another's."""
    name = key.removeprefix(f"{prefix}:{{").removesuffix("}:ledger")
    return TenantId("" if "}" in name or "{" in name else name)


def _literal(text: str) -> str:
    """A pattern that only ``text`` matches."""
    return "".join(f"\\{each}" if each in "*?[]^\\" else each for each in text)
