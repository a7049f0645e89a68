"""More than two hundred ways to write an address of this machine, and names that lead to one."""

import socket
from typing import Any

INSIDE = ("127.0.0.1", "127.0.0.3", "::1")
ALLOWED = "127.0.0.2"  # what the operator of the tests allows; INSIDE stays forbidden


def spellings_of_loopback() -> list[str]:
    """Of 127.0.0.1 and 127.0.0.3, as every parser of addresses ever understood them."""
    found: list[str] = []
    for last in (1, 3):
        number = 0x7F000000 + last
        found += [
            f"127.0.0.{last}",
            f"127.0.{last}",
            f"127.{last}",
            str(number),
            f"{number:#x}",
            f"{number:#o}",
        ]
        found += [f"{number:#X}", f"0x{number:016x}", f"{0o17700000000 + last:012o}", f"0{number:o}"]
        heads = ("127", "0177", "0x7f", "0X7F", "00000177", "0x000000000000007f")
        zeros = ("0", "00", "0x0", "0000")
        tails = (str(last), f"0{last}", f"{last:#x}", f"000{last}")
        for head in heads:
            found += [f"{head}.{zero}.{zero}.{tail}" for zero in zeros for tail in tails]
            found += [f"{head}.0.{last}", f"{head}.{last}", f"{head}.0x0.{last:#x}"]
        found += [f"127.0.0.{last}.", f"127.0.0.{last}..", f"127.000.000.00{last}", f"127.0.0.{last}%00"]
        found += [
            f"127.0.0.{last}%2e",
            f"%31%32%37.0.0.{last}",
            f"127%2e0%2e0%2e{last}",
            f"127。0。0。{last}",
        ]
        found += [f"１２７.0.0.{last}", f"①②⑦.0.0.{last}", f"127．0．0．{last}", f"１２７．０．０．{last}"]
    return found


def spellings_of_version_6() -> list[str]:
    inner = [
        "::1",
        "0::1",
        "0:0:0:0:0:0:0:1",
        "0000:0000:0000:0000:0000:0000:0000:0001",
        "::0001",
        "::0:1",
        "0::0:1",
        "::0.0.0.1",
        "::1%lo",
        "::1%25lo",
        "::1%1",
        "::1%251",
        "::",
        "0:0:0:0:0:0:0:0",
        "::ffff:127.0.0.1",
        "::FFFF:127.0.0.1",
        "::ffff:7f00:1",
        "::ffff:7F00:0001",
        "0:0:0:0:0:ffff:127.0.0.1",
        "0:0:0:0:0:ffff:7f00:1",
        "::ffff:127.0.0.3",
        "::ffff:7f00:3",
        "::ffff:0.0.0.0",
        "::ffff:0:127.0.0.1",
        "::127.0.0.1",
        "::7f00:1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::127.0.0.1",
        "2002:7f00:1::",
        "2002:7f00:0001::1",
        "2001:0:7f00:1::",
        "2001::80ff:fffe",
        "fe80::1",
        "fe80::1%lo",
        "fec0::1",
        "fd00:ec2::254",
    ]
    return [f"[{one}]" for one in inner]


def other_places_inside() -> list[str]:
    return [
        "0",
        "0.0.0.0",
        "0.0.0.0.",
        "00000000000",
        "0x0",
        "0.0",
        "0.0.0",
        "10.0.0.1",
        "10.1",
        "100.64.0.1",
        "100.100.100.200",
        "169.254.169.254",
        "169.254.43518",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "172.16.0.1",
        "192.168.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
    ]


NAMES = [
    "localhost",
    "LOCALHOST",
    "LocalHost",
    "localhost.",
    "localhost..",
    "a.localhost",
    "a.localhost.",
    "localhost.localdomain",
    "ip6-localhost",
    "ip6-loopback",
    "ｌｏｃａｌｈｏｓｔ",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "127.0.0.1.nip.test",
    "7f000001.nip.test",
    "loopback.test",
    "LOOPBACK.TEST.",
    "other.test",
    "six.test",
    "mapped.test",
    "zero.test",
    "several.test",
    "half-allowed.test",
    "xn--80ak6aa92e.test",
]

# What the name server of the tests says. Several addresses are tried in this order.
ANSWERS: dict[str, tuple[str, ...]] = {
    **{name.lower().rstrip("."): ("127.0.0.1", "::1") for name in NAMES},
    "other.test": ("127.0.0.3",),
    "six.test": ("::1",),
    "mapped.test": ("::ffff:127.0.0.1",),
    "zero.test": ("0.0.0.0",),
    "several.test": ("127.0.0.3", "::1", "127.0.0.1"),
    "half-allowed.test": ("127.0.0.9", "127.0.0.1"),  # nobody listens at the first
    "allowed.test": (ALLOWED,),
}


def urls(port: int) -> list[str]:
    """Each form as the beginning of a URL, and a few that hide the host behind another."""
    hosts = [*spellings_of_loopback(), *spellings_of_version_6(), *other_places_inside(), *NAMES]
    found = [f"http://{host}:{port}" for host in dict.fromkeys(hosts)]
    tricks = [
        f"http://{ALLOWED}@127.0.0.1:{port}",
        f"http://{ALLOWED}:80@127.0.0.1:{port}",
        f"http://127.0.0.1:{port}#@{ALLOWED}",
        f"http://127.0.0.1:{port}?@{ALLOWED}",
        f"http://127.0.0.1:{port}\\@{ALLOWED}",
        f"http://{ALLOWED}\\@127.0.0.1:{port}",
        f"http://{ALLOWED}%00@127.0.0.1:{port}",
        f"http://{ALLOWED}\t@127.0.0.1:{port}",
        f"http:\\\\127.0.0.1:{port}",
        f"http:/127.0.0.1:{port}",
        f"http:127.0.0.1:{port}",
        f"HTTP://127.0.0.1:{port}",
        f"hTTp://LOCALHOST:{port}",
        f"http:///127.0.0.1:{port}",
        f" http://127.0.0.1:{port}",
        f"https://127.0.0.1:{port}",
        f"https://localhost:{port}",
        f"ws://127.0.0.1:{port}",
        f"tcp://127.0.0.1:{port}",
        f"http+unix://127.0.0.1:{port}",
        f"gopher://127.0.0.1:{port}",
        f"ftp://127.0.0.1:{port}",
        f"//127.0.0.1:{port}",
        "unix:///var/run/docker.sock",
        "file:///etc/passwd",
    ]
    return found + tricks


class NameServer:
    """Stands in for the system's resolver: numbers are read as the system reads them, names by the table."""

    def __init__(self) -> None:
        self.answers = dict(ANSWERS)
        self.rebinding: dict[str, list[tuple[str, ...]]] = {}
        self._real = socket.getaddrinfo

    def getaddrinfo(self, host: Any, port: Any, *rest: Any, **named: Any) -> list[Any]:
        name = (host.decode() if isinstance(host, bytes) else str(host or "")).lower().rstrip(".")
        if later := self.rebinding.get(name):
            return self._told(later.pop(0) if len(later) > 1 else later[0], port)
        if name in self.answers:
            return self._told(self.answers[name], port)
        if any(letter not in "0123456789abcdefx.:%lo" for letter in name):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")  # nothing asks a real name server
        return self._real(host, port, *rest, **named)

    def _told(self, addresses: tuple[str, ...], port: Any) -> list[Any]:
        found: list[Any] = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            where = (address, port, 0, 0) if ":" in address else (address, port)
            found.append((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", where))
        return found
