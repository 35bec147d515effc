"""Names become allowed addresses, or a refusal that says which kind they had."""

import asyncio
import socket

import pytest

from tenantry.delivery.guard import AddressNotAllowed, AddressRule, networks
from tenantry.delivery.resolver import GuardedResolver, system_look_up


async def resolved(addresses: list[str], family: socket.AddressFamily = socket.AF_UNSPEC) -> list[str]:
    resolver = GuardedResolver(AddressRule(), look_up=lambda name: addresses, threads=1)
    try:
        return [result["host"] for result in await resolver.resolve("any.example", 443, family)]
    finally:
        await resolver.close()


async def test_forbidden_addresses_are_dropped_and_the_order_of_the_others_kept() -> None:
    assert await resolved(["2606:4700::1111", "10.0.0.1", "8.8.8.8", "::1"]) == ["2606:4700::1111", "8.8.8.8"]


@pytest.mark.parametrize(
    ("addresses", "kind"), [(["10.0.0.1"], "private"), (["::1", "127.0.0.1"], "loopback")]
)
async def test_a_name_with_none_but_forbidden_addresses_is_refused_by_kind(
    addresses: list[str], kind: str
) -> None:
    with pytest.raises(AddressNotAllowed, match=kind):
        await resolved(addresses)


async def test_only_addresses_of_the_wanted_family_are_given() -> None:
    assert await resolved(["2606:4700::1111", "8.8.8.8"], socket.AF_INET) == ["8.8.8.8"]
    with pytest.raises(OSError, match="family"):
        await resolved(["8.8.8.8"], socket.AF_INET6)


async def test_every_look_up_after_an_answer_is_a_new_one() -> None:
    answers = iter([["8.8.8.8"], ["10.0.0.1"]])
    resolver = GuardedResolver(AddressRule(), look_up=lambda name: next(answers), threads=1)
    assert (await resolver.resolve("rebinds.example", 80))[0]["host"] == "8.8.8.8"
    with pytest.raises(AddressNotAllowed, match="private"):
        await resolver.resolve("rebinds.example", 80)
    await resolver.close()


async def test_a_failed_look_up_fails_for_all_who_wait_and_is_not_remembered() -> None:
    answers = iter([None, ["8.8.8.8"]])

    def look_up(name: str) -> list[str]:
        answer = next(answers)
        if answer is None:
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return answer

    resolver = GuardedResolver(AddressRule(), look_up=look_up, threads=1)
    both = await asyncio.gather(
        *(resolver.resolve("a.example", 80) for _ in range(2)), return_exceptions=True
    )
    assert [type(error) for error in both] == [socket.gaierror, socket.gaierror]
    assert await resolver.resolve("a.example", 80)
    await resolver.close()


async def test_the_systems_own_look_up_knows_the_loopback() -> None:
    rule = AddressRule(allowed=networks(["127.0.0.0/8", "::1/128"]))
    resolver = GuardedResolver(rule, look_up=system_look_up, threads=1)
    assert {result["host"] for result in await resolver.resolve("localhost", 80)} <= {"127.0.0.1", "::1"}
    await resolver.close()
