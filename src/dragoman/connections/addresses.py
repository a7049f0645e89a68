"""Which addresses are the internet, and which are this machine or a network around it. Pure."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from dragoman.errors import InvalidConfig

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_PUBLIC_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind a provider's NAT; metadata at 100.100.100.200
        "127.0.0.0/8",
        "168.63.129.16/32",  # metadata of a cloud, at an address that looks public
        "169.254.0.0/16",  # link-local; metadata at 169.254.169.254
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")  # all that is handed out to anybody
_NOT_PUBLIC_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments; Teredo is among them, which hides an address of its own
        "2001:db8::/32",
        "2002::/16",  # 6to4, which hides another address
        "3fff::/20",
    )
)
_TRANSLATED = IPv6Network("64:ff9b::/96")  # NAT64: the last four bytes are the address that is meant


def is_public(address: Address) -> bool:
    """Whether it is somewhere on the internet: neither this machine nor any network around it."""
    if isinstance(address, IPv6Address):
        if inner := _inner(address):
            return is_public(inner)
        return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)
    return not any(address in network for network in _NOT_PUBLIC_4)


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """The operator's exceptions; `InvalidConfig` for what is no network."""
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ip_network(text.strip()))
        except ValueError as error:
            raise InvalidConfig(
                f"allowed_networks: {error}",
                hint="write networks such as 10.1.0.0/16 or fd00:1::/64 in DRAGOMAN_ALLOWED_NETWORKS",
            ) from None
    return tuple(networks)


def may_be_reached(host: str, allowed: Iterable[Network]) -> bool:
    """For the numeric address that a socket is about to be connected to. What is no such address may not."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:  # only an address of this link needs one
            return False
        address = address.ipv4_mapped or address
    return is_public(address) or any(address in network for network in allowed)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The address that is reached in truth."""
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped


def is_metadata(host: str) -> bool:
    """Where clouds keep a machine's metadata, credentials among them: nobody has a reason to go there."""
    try:
        address = ip_address(host)
    except ValueError:
        return True
    if isinstance(address, IPv6Address):
        address = _inner(address) or address
    return any(address in network for network in _METADATA)


_METADATA = (
    IPv4Network("169.254.0.0/16"),
    IPv4Network("100.100.100.200/32"),
    IPv4Network("168.63.129.16/32"),
    IPv4Network("192.0.0.192/32"),
    IPv6Network("fe80::/10"),
    IPv6Network("fd00:ec2::/32"),
    IPv6Network("fd20:ce::/32"),
)
