"""The rule of which addresses are public."""

from ipaddress import ip_address

import pytest

from dragoman.connections.addresses import is_public, may_be_reached, read_networks
from dragoman.errors import InvalidConfig

INSIDE = [
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "100.100.100.200",
    "127.0.0.0",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.0.0",
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.0",
    "192.168.255.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::7f00:1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:8.8.8.8",
    "64:ff9b::10.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:0:808:808::",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:808:808::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "8000::1",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "feff::1",
    "ff02::1",
    "ff0e::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450::1",
    "3ffe::1",
    "64:ff9b::8.8.8.8",
    "::ffff:8.8.8.8",
]


@pytest.mark.parametrize("text", INSIDE)
def test_an_address_inside_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))
    assert not may_be_reached(text, ())


@pytest.mark.parametrize("text", PUBLIC)
def test_an_address_of_the_internet_is_public(text: str) -> None:
    assert is_public(ip_address(text))
    assert may_be_reached(text, ())


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f000001", "8.8.8.8.", "fe80::1%lo", "2606:4700::1%1"]
)
def test_what_is_no_plain_number_may_not_be_reached(text: str) -> None:
    assert not may_be_reached(text, read_networks(["0.0.0.0/0", "::/0"]))


def test_the_operator_allows_networks_and_no_more() -> None:
    allowed = read_networks(["10.1.0.0/16", " 127.0.0.2/32", "fd00:1::/64", "192.168.7.7"])
    for text in ("10.1.2.3", "::ffff:10.1.2.3", "127.0.0.2", "fd00:1::7", "192.168.7.7"):
        assert may_be_reached(text, allowed), text
    for text in ("10.2.0.1", "127.0.0.1", "fd00:2::1", "192.168.7.8", "64:ff9b::10.1.2.3", "2002:a01:203::"):
        assert not may_be_reached(text, allowed), text


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/8", "example.com", "", "10/8", "*"])
def test_a_wrong_network_is_told(text: str) -> None:
    with pytest.raises(InvalidConfig) as told:
        read_networks([text])
    assert "DRAGOMAN_ALLOWED_NETWORKS" in (told.value.hint or "")
