"""Which addresses may be connected to."""

import socket
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.delivery.guard import AddressNotAllowed, AddressRule, gated_sockets, kind_of_address, networks
from tenantry.kernel.errors import ConnectionRefusedByPolicy, InvalidValue

REFUSED = [
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "unspecified"),
    ("10.0.0.1", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("100.64.0.1", "shared"),
    ("100.127.255.255", "shared"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("169.254.0.1", "link_local"),
    ("169.254.169.254", "metadata"),
    ("169.254.170.2", "metadata"),
    ("100.100.100.200", "metadata"),
    ("168.63.129.16", "metadata"),
    ("192.0.0.192", "metadata"),
    ("192.0.0.1", "reserved"),
    ("192.0.2.1", "documentation"),
    ("192.88.99.1", "reserved"),
    ("198.18.0.1", "benchmarking"),
    ("198.19.255.255", "benchmarking"),
    ("198.51.100.1", "documentation"),
    ("203.0.113.1", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "reserved"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("::7f00:1", "reserved"),  # IPv4-compatible
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:7f00:1", "loopback"),
    ("::ffff:169.254.169.254", "metadata"),
    ("::ffff:0:127.0.0.1", "reserved"),  # IPv4-translated
    ("64:ff9b::127.0.0.1", "loopback"),
    ("64:ff9b::a9fe:a9fe", "metadata"),
    ("64:ff9b::10.0.0.1", "private"),
    ("64:ff9b:1::1", "reserved"),
    ("2002:7f00:1::", "reserved"),  # 6to4
    ("2002:808:808::1", "reserved"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved"),  # Teredo
    ("2001:db8::1", "documentation"),
    ("3fff::1", "documentation"),
    ("fc00::1", "private"),
    ("fd12:3456::1", "private"),
    ("fd00:ec2::254", "metadata"),
    ("fe80::1", "link_local"),
    ("fe80::1%eth0", "link_local"),
    ("fec0::1", "private"),
    ("ff02::1", "multicast"),
    ("100::1", "reserved"),
    ("4000::1", "reserved"),
    ("not an address", "not an address"),
    ("", "not an address"),
    ("2130706433", "not an address"),
]


@pytest.mark.parametrize(("address", "kind"), REFUSED)
def test_an_address_that_is_no_place_of_the_public_internet_is_refused_by_kind(
    address: str, kind: str
) -> None:
    assert AddressRule().refusal(address) == kind


@pytest.mark.parametrize(
    "address",
    [
        *(
            "8.8.8.8",
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "169.253.255.255",
        ),
        *("2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"),
    ],
)
def test_a_public_address_is_allowed_however_it_is_written(address: str) -> None:
    assert AddressRule().refusal(address) is None


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "100.64.0.1", "::1", "fd00::1", "::ffff:10.0.0.1"]
)
def test_allow_private_opens_the_operators_own_networks(address: str) -> None:
    assert AddressRule(allow_private=True).refusal(address) is None


@pytest.mark.parametrize(
    "address",
    ["169.254.1.1", "169.254.169.254", "100.100.100.200", "fd00:ec2::254", "fe80::1", "0.0.0.0", "224.0.0.1"],
)
def test_allow_private_never_opens_metadata_link_local_or_multicast(address: str) -> None:
    assert AddressRule(allow_private=True).refusal(address) is not None


def test_named_networks_are_allowed_and_nothing_beside_them() -> None:
    rule = AddressRule(allowed=networks(["10.1.0.0/16", "169.254.7.0/24", "fe80::/64"]))
    assert rule.refusal("10.1.255.1") is None
    assert rule.refusal("::ffff:10.1.0.1") is None
    assert rule.refusal("169.254.7.1") is None
    assert rule.refusal("fe80::1%eth0") is None
    assert rule.refusal("10.2.0.1") == "private"
    assert rule.refusal("127.0.0.1") == "loopback"


def test_a_metadata_address_needs_a_network_of_its_own() -> None:
    assert AddressRule(allowed=networks(["169.254.0.0/16"])).refusal("169.254.169.254") == "metadata"
    assert AddressRule(allowed=networks(["169.254.169.254/32"])).refusal("169.254.169.254") is None


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/33", "office", ""])
def test_a_network_that_is_none_is_named(text: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        networks(["10.0.0.0/8", text])
    assert (refusal.value.path, refusal.value.value) == ("allowed[1]", text)


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_is_judged_the_same_inside_an_ipv6_one(number: int) -> None:
    plain = ip_address(number)
    kind = kind_of_address(plain)
    assert AddressRule().refusal(f"::ffff:{plain}") == kind
    assert AddressRule().refusal(f"64:ff9b::{plain}") == kind


@given(st.ip_addresses())
def test_what_we_allow_the_standard_library_calls_global(address: object) -> None:
    text = str(address)
    if AddressRule().refusal(text) is None and not text.startswith(("::ffff:", "64:ff9b::")):
        assert ip_address(text).is_global
        assert not ip_address(text).is_multicast


def test_the_gate_makes_sockets_for_allowed_addresses_only() -> None:
    make = gated_sockets(AddressRule())
    stream = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    make((*stream, ("8.8.8.8", 443))).close()
    with pytest.raises(AddressNotAllowed) as refusal:
        make((*stream, ("127.0.0.1", 443)))
    assert isinstance(refusal.value, ConnectionRefusedByPolicy)
    assert "loopback" in str(refusal.value)
    assert "127.0.0.1" not in str(refusal.value)
