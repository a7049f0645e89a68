"""Two plain rules: how large arguments and results may be, and which hosts arguments may name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast
from urllib.parse import urlsplit

from dragoman.hook_rule import HookRule
from dragoman.hooks.protocol import Hook, HookedCall, Json, Verdict
from dragoman.tool import json_bytes

_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}:[/\\]{1,4}[^\s\"'<>`]+", re.IGNORECASE)
_BACKSLASH = str.maketrans("\\", "/")


class SizeHook(Hook):
    """`size 65536`: more bytes than that are neither sent nor given."""

    def __init__(self, rule: HookRule) -> None:
        if len(rule.values) != 1 or not rule.values[0].isdecimal() or rule.action not in (None, "refuse"):
            raise ValueError("write it as `size 65536`: the most bytes of arguments, and of a result")
        self._most = int(rule.values[0])

    async def before(self, call: HookedCall) -> Verdict | None:
        return self._refused(call.arguments, "the arguments have")

    async def after(self, call: HookedCall, output: Json) -> Verdict | None:
        return self._refused(output, "the result has")

    def _refused(self, value: Json, what: str) -> Verdict | None:
        size = len(json_bytes(value))
        if size <= self._most:
            return None
        told = f"{what} {size:,} bytes, and at most {self._most:,} may pass"
        return Verdict(refuse=told, found=told)


class UrlHook(Hook):
    """`urls api.github.com *.example.com`: addresses in arguments lead to these hosts, never to `!HOST`."""

    def __init__(self, rule: HookRule) -> None:
        if not rule.values or rule.action == "mask":
            raise ValueError("write it as `urls api.github.com *.example.com !intern.example.com`")
        hosts = [value.lower() for value in rule.values]
        self._refused = tuple(host[1:] for host in hosts if host.startswith("!"))
        self._allowed = tuple(host for host in hosts if not host.startswith("!"))
        self._action = rule.action or "refuse"

    async def before(self, call: HookedCall) -> Verdict | None:
        wrong = sorted({host for host in _hosts(call.arguments) if not self._may(host)})
        if not wrong:
            return None
        told = f"the arguments name {', '.join(wrong[:5])}, where nothing may lead"
        match self._action:
            case "ask":
                return Verdict(ask=told, found=told)
            case "note":
                return Verdict(notes=(told,), found=told)
            case _:
                return Verdict(refuse=told, found=told)

    def _may(self, host: str) -> bool:
        if any(fnmatchcase(host, pattern) for pattern in self._refused):
            return False
        return not self._allowed or any(fnmatchcase(host, pattern) for pattern in self._allowed)


def _hosts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        for match in _URL.finditer(value):
            yield _host(match[0])
    elif isinstance(value, Mapping):
        for key, one in cast("Mapping[str, Any]", value).items():
            yield from _hosts(key)
            yield from _hosts(one)
    elif isinstance(value, list | tuple):
        for one in cast("Sequence[Any]", value):
            yield from _hosts(one)


def _host(url: str) -> str:
    """What cannot be read is a host of no name, which nobody allows."""
    try:
        scheme, _, rest = url.translate(_BACKSLASH).partition(":")
        return (urlsplit(f"{scheme}://{rest.lstrip('/')}").hostname or "").rstrip(".")
    except ValueError:
        return ""
