"""Which addresses deliveries may connect to: a pure rule, a resolver under it, and a gate at the socket.

A tenant chooses its targets, so without this rule a tenant chooses what our machines connect to. The rule is
asked twice. The resolver drops forbidden addresses of a name, for an early and clear refusal. The gate stands
where the socket is made and sees the very address that is about to be connected to: a name that changes
between two look-ups, a literal address that needs no look-up, and whatever a client library does in between,
all pass it.

The blocks are those of IANA's special-purpose registries (RFC 6890 and its successors), kept here as a table:
:mod:`ipaddress` answers differently from one Python release to the next.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from tenantry.kernel.errors import ConnectionRefusedByPolicy, InvalidValue

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_V4_BLOCKS = tuple(
    (IPv4Network(block), name)
    for block, name in (
        ("0.0.0.0/8", "unspecified"),  # "this network": Linux connects 0.0.0.0 to itself
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link_local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "reserved"),  # 6to4 relays
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),  # with the broadcast address
    )
)
_V6_BLOCKS = tuple(
    (IPv6Network(block), name)
    for block, name in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link_local"),
        ("fec0::/10", "private"),  # site-local: deprecated, still routed by some
        ("ff00::/8", "multicast"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("2001::/23", "reserved"),  # Teredo (an IPv4 address inside), ORCHID, benchmarking
        ("2002::/16", "reserved"),  # 6to4: an IPv4 address inside
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_METADATA: frozenset[Address] = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, Google, and most others
        "169.254.170.2",  # AWS ECS task credentials
        "fd00:ec2::254",  # AWS over IPv6
        "fd20:ce::254",  # Google over IPv6
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure's wire server: a public address that leads inside
        "192.0.0.192",  # Oracle
    )
)
_OWN_NETWORKS = frozenset({"private", "loopback", "shared"})


class AddressNotAllowed(ConnectionRefusedByPolicy, OSError):
    """The guard refused an address. An OSError too, so that a client library treats it as a failed
    connection.

    Its text names the kind of address, never the address: a tenant must not learn what inner names resolve
    to.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(f"the target's address is {kind}, which the operator does not allow")

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class AddressRule:
    """What the operator allows beyond the public internet. Frozen, safe from any thread.

    ``allow_private``: private, loopback and shared (100.64/10) addresses too; never link-local, multicast,
    reserved or cloud metadata ones. ``allowed``: networks to allow whatever they are; a cloud metadata
    address is allowed only by a network of that one address.
    """

    allow_private: bool = False
    allowed: tuple[Network, ...] = ()

    def refusal(self, address: str) -> str | None:
        """The kind of address for which ``address`` is refused, or None if it may be connected to. Pure.

        An IPv4 address inside an IPv6 one (mapped, NAT64) is judged as the IPv4 address it leads to.
        """
        try:
            outer = ip_address(address.partition("%")[0])
        except ValueError:
            return "not an address"
        inner = leads_to(outer)
        kind = kind_of_address(inner)
        if kind is None or self._allows(inner, kind) or self._allows(outer, kind):
            return None
        return kind

    def require(self, address: str) -> None:
        """Raises :class:`AddressNotAllowed` where :meth:`refusal` names a kind."""
        kind = self.refusal(address)
        if kind is not None:
            raise AddressNotAllowed(kind)

    def _allows(self, address: Address, kind: str) -> bool:
        if self.allow_private and kind in _OWN_NETWORKS:
            return True
        return any(address in net and (kind != "metadata" or net.num_addresses == 1) for net in self.allowed)


def kind_of_address(address: Address) -> str | None:
    """Why ``address`` is no place of the public internet, or None if it is one. Pure, O(blocks)."""
    if address in _METADATA:
        return "metadata"
    if isinstance(address, IPv4Address):
        return next((name for block, name in _V4_BLOCKS if address in block), None)
    named = next((name for block, name in _V6_BLOCKS if address in block), None)
    return named or (None if address in _GLOBAL_V6 else "reserved")


def leads_to(address: Address) -> Address:
    """The address that packets to ``address`` end at: the IPv4 one inside a mapped or NAT64 address. Pure.

    6to4 and Teredo addresses, which hide an IPv4 address too, are refused whole.
    """
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _NAT64):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def networks(texts: Sequence[str], *, path: str = "allowed") -> tuple[Network, ...]:
    """Networks in CIDR form (``10.0.0.0/8``, ``::1/128``) for :class:`AddressRule`.

    Raises :class:`InvalidValue`, naming ``path[i]``, for one that is no network or has bits set beyond its
    prefix.
    """
    return tuple(_network(text, f"{path}[{place}]") for place, text in enumerate(texts))


def _network(text: str, path: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        accepted = "a network such as 10.0.0.0/8 or fd00::/8, its bits beyond the prefix zero"
        raise InvalidValue(path, text, accepted) from None


SocketAddress = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]


def gated_sockets(rule: AddressRule) -> Callable[[SocketAddress], socket.socket]:
    """A maker of sockets that refuses, with :class:`AddressNotAllowed`, those for addresses that are not
    allowed."""

    def make(target: SocketAddress) -> socket.socket:
        family, kind, protocol, _, address = target
        rule.require(address[0])
        return socket.socket(family, kind, protocol)

    return make
