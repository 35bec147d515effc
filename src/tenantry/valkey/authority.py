"""The authority's port over scripts."""

from collections.abc import AsyncIterator, Sequence
from datetime import date, timedelta
from types import TracebackType
from typing import Any, Self

from valkey.exceptions import NoScriptError

from tenantry.kernel.errors import InvalidValue, StoreUnavailable
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.exchange import Answer, Ask, Booking, Charge, Decision, Grant, Part
from tenantry.limiter.ledger import EPOCH, LedgerLine
from tenantry.valkey.days import day_of_all
from tenantry.valkey.kept import KeptBalance, kept_balance
from tenantry.valkey.scripts import Script, script
from tenantry.valkey.topology import FAULTS, Topology, asked_to, execute, topology, unanswered
from tenantry.valkey.urls import parse

Command = tuple[Script, tuple[str, ...], tuple[str, ...]]
"""A script, its keys, its arguments."""


class ValkeyLeaseAuthority:
    """Implements :class:`~tenantry.limiter.ports.Authority`; one event loop.

    ``url``: as :mod:`tenantry.valkey.urls` says. ``prefix``: of all keys; limiters share buckets when it is
    the same. ``timeout``: seconds that one server has to answer, in [0.01, 60]. Nothing is connected before
    the first call. Raises :class:`InvalidValue`."""

    opening = 1.0

    def __init__(self, url: str, *, prefix: str = "tenantry:limits", timeout: Seconds = 0.5) -> None:
        if not 0.01 <= timeout <= 60:
            raise InvalidValue("timeout", timeout, "seconds in [0.01, 60]")
        if not prefix or "{" in prefix or "}" in prefix:
            raise InvalidValue("prefix", prefix, "text without braces, which are the cluster's")
        self._topology: Topology = topology(parse(url), timeout)
        self._prefix = prefix
        self._exchange, self._decide, self._present = map(self._script, ("exchange", "decide", "present"))

    def _script(self, name: str) -> Script:
        return script(name)

    def shard_of(self, tenant: TenantId) -> str:
        return self._topology.shard_of(self._key(tenant))

    async def exchange(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        answers = await self._called([self._asked(ask) for ask in asks])
        return [_answer(told) for told in answers]

    async def decide(self, charge: Charge) -> Decision:
        key = self._key(charge.tenant)
        arguments = [repr(charge.cost), "1" if charge.ledger else "0"]
        for name, limit in charge.parts:
            arguments += [name, repr(limit.base), repr(limit.capacity)]
        keys = (key, f"{key}:ledger", f"{key}:x:{charge.id}")
        (told,) = await self._called([(self._decide, keys, tuple(arguments))])
        allowed, waits, place = told.split()
        if allowed == b"1":
            return Decision(True)
        return Decision(False, float(waits), charge.parts[int(float(place))][0])

    async def present(self, node: str, present_for: Seconds) -> int:
        (count,) = await self._called(
            [(self._present, (f"{self._prefix}:nodes",), (node, repr(present_for)))]
        )
        return int(count)

    async def leave(self, node: str) -> None:
        key = f"{self._prefix}:nodes"
        await self._command(key, "ZREM", key, node)

    async def ledger(self, tenant: TenantId) -> Sequence[LedgerLine]:
        key = f"{self._key(tenant)}:ledger"
        found = await self._command(key, "HGETALL", key)
        return _lines(tenant, found)

    def day_of_all(self, day: date) -> AsyncIterator[LedgerLine]:
        """As the port says; every key of every master is looked at. While a cluster moves a slot, a tenant in
        it may be missed."""
        return day_of_all(self._topology, self._prefix, day)

    async def balances(self, tenant: TenantId) -> list[KeptBalance]:
        """The buckets of a tenant as they are now, by the server's clock; nothing is changed. Full ones that
        nobody has a lease on may be missing. Raises :class:`StoreUnavailable`."""
        key = self._key(tenant)
        found = await self._command(key, "HGETALL", key)
        seconds, micros = await self._command(key, "TIME")
        now = int(seconds) + int(micros) / 1e6
        kept = ((field.decode(), value) for field, value in found.items())
        return [kept_balance(field[2:], value, now) for field, value in kept if field.startswith("b:")]

    async def nodes(self) -> list[str]:
        """The nodes that are there. Raises :class:`StoreUnavailable`."""
        key = f"{self._prefix}:nodes"
        return sorted(node.decode() for node in await self._command(key, "ZRANGE", key, "0", "-1"))

    async def close(self) -> None:
        """End all connections."""
        await self._topology.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _key(self, tenant: TenantId) -> str:
        return f"{self._prefix}:{{{tenant}}}"

    def _asked(self, ask: Ask) -> Command:
        key = self._key(ask.tenant)
        arguments = [ask.node, str(ask.sequence), repr(ask.term), "1" if ask.ledger else "0"]
        for part in ask.parts:
            arguments += _words(part)
        # One key where one will do: while its slot moves, a cluster serves what it finds, and refuses two
        # keys of which one is nowhere.
        return self._exchange, (key, f"{key}:ledger") if ask.ledger else (key,), tuple(arguments)

    async def _called(self, commands: list[Command]) -> list[bytes]:
        """The answers, in order. A command that fails is sent once more, to whoever serves its key then; it
        may have been carried out the first time, which the scripts know. Raises :class:`StoreUnavailable`."""
        answers = await self._sent(commands)
        failed = [place for place, answer in enumerate(answers) if isinstance(answer, BaseException)]
        if not failed:
            return answers
        if not all(asked_to(answers[place]) for place in failed):
            await self._topology.refresh()
        asking = {place: server for place in failed if (server := asked_to(answers[place]))}
        again = [place for place in failed if place not in asking]
        for place, answer in zip(again, await self._sent([commands[each] for each in again]), strict=True):
            answers[place] = answer
        for place, server in asking.items():
            (answers[place],) = await self._piped(server, [commands[place]], asking=True)
        for place in failed:
            if isinstance(answers[place], BaseException):
                raise unanswered(answers[place]) from answers[place]
        return answers

    async def _sent(self, commands: list[Command]) -> list[Any]:
        """Each command's answer, or what it raised. One pipeline a server."""
        answers: list[Any] = [None] * len(commands)
        by_server: dict[str, list[int]] = {}
        for place, (_, keys, _) in enumerate(commands):
            by_server.setdefault(self._topology.shard_of(keys[0]), []).append(place)
        for server, places in by_server.items():
            told = await self._piped(server, [commands[place] for place in places])
            for place, answer in zip(places, told, strict=True):
                answers[place] = answer
        return answers

    async def _piped(self, server: str, commands: list[Command], *, asking: bool = False) -> list[Any]:
        try:
            client = self._topology.client(server)
            told = await _pipeline(client, commands, load=False, asking=asking)
            missing = [place for place, answer in enumerate(told) if isinstance(answer, NoScriptError)]
            if missing:
                again = await _pipeline(
                    client, [commands[place] for place in missing], load=True, asking=asking
                )
                for place, answer in zip(missing, again, strict=True):
                    told[place] = answer
        except (*FAULTS, StoreUnavailable) as error:
            return [error] * len(commands)
        return told

    async def _command(self, key: str, *words: str) -> Any:
        """One plain command, as patient as a script's. Raises :class:`StoreUnavailable`."""
        try:
            return await execute(self._topology.client(self._topology.shard_of(key)), *words)
        except (*FAULTS, StoreUnavailable):
            await self._topology.refresh()
        try:
            return await execute(self._topology.client(self._topology.shard_of(key)), *words)
        except FAULTS as error:
            raise unanswered(error) from error


async def _pipeline(client: Any, commands: list[Command], *, load: bool, asking: bool) -> list[Any]:
    """The answers; an error of one command stands in its place. ``load``: bring the scripts along.
    ``asking``: to a server that the slot is on its way to."""
    pipeline = client.pipeline(transaction=False)
    for text in {command.text for command, _, _ in commands} if load else ():
        pipeline.execute_command("SCRIPT LOAD", text)
    places = []
    for command, keys, arguments in commands:
        if asking:
            pipeline.execute_command("ASKING")
        places.append(len(pipeline))
        pipeline.execute_command("EVALSHA", command.sha, len(keys), *keys, *arguments)
    answers = await pipeline.execute(raise_on_error=False)
    return [answers[place] for place in places]


def _words(part: Part) -> list[str]:
    amounts = (part.need, part.want, part.spent, part.returned, part.charge, part.unleased)
    return [
        part.name,
        repr(part.limit.base),
        repr(part.limit.capacity),
        *(repr(float(each)) for each in amounts),
    ]


def _answer(told: bytes) -> Answer:
    sequence, *numbers = told.split()
    values = [float(number) for number in numbers]
    grants = tuple(Grant(*values[place : place + 3]) for place in range(0, len(values), 3))
    return Answer(int(sequence), grants)


def _lines(tenant: TenantId, found: dict[bytes, bytes]) -> list[LedgerLine]:
    amounts: dict[tuple[int, str], dict[str, float]] = {}
    for field, amount in found.items():
        day, _, rest = field.decode().partition("|")
        what, _, name = rest.partition("|")
        if name:
            amounts.setdefault((int(day), name), {})[what] = float(amount)
    return [
        LedgerLine(tenant, EPOCH + timedelta(days=day), name, Booking(**booked))
        for (day, name), booked in sorted(amounts.items())
    ]
