"""A node's settings are checked where they are made."""

import pytest

from tenantry.cli.settings import Address, NodeSettings, Role
from tenantry.kernel.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", Address("127.0.0.1", 8080)),
        (":8080", Address("127.0.0.1", 8080)),
        ("0.0.0.0:0", Address("0.0.0.0", 0)),
        ("[::1]:9", Address("::1", 9)),
        ("api.internal:443", Address("api.internal", 443)),
    ],
)
def test_an_address_is_a_host_and_a_port_or_a_port_on_loopback(text: str, address: Address) -> None:
    assert Address.parsed(text, path="--listen") == address


@pytest.mark.parametrize("text", ["", "host", "host:", "host:http", "1.2.3.4:65536", "host:-1", "host:８０"])
def test_what_has_no_port_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(InvalidValue, match="--listen"):
        Address.parsed(text, path="--listen")


def test_an_address_is_shown_as_it_is_written() -> None:
    assert [str(Address("::1", 9)), str(Address("h", 9))] == ["[::1]:9", "h:9"]


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("roles", {"roles": frozenset()}),
        ("slots", {"slots": 0}),
        ("connections", {"connections": 1}),
        ("grace", {"grace_for": -1.0}),
        ("grace", {"grace_for": float("nan")}),
        ("http", {"http": False}),
        ("slots", {"slots": 10**30}),
        ("connections", {"connections": 10**30}),
        ("keep_days", {"keep_days": 0}),
        ("keep_days", {"keep_days": 10**30}),
        ("name", {"name": ""}),
        ("name", {"name": "a\x00"}),
        ("name", {"name": "n" * 256}),
        ("pool", {"pool": ""}),
        ("pool", {"pool": "\udcff"}),
    ],
)
def test_a_setting_out_of_range_is_refused_by_its_name(path: str, given: dict[str, object]) -> None:
    with pytest.raises(InvalidValue) as refused:
        NodeSettings(**given)  # type: ignore[arg-type]
    assert refused.value.path == path


def test_a_node_without_a_worker_needs_nothing_to_run() -> None:
    assert NodeSettings(roles=frozenset({Role.API}), http=False).roles == {Role.API}
