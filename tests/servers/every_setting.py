"""Every setting of every noun with a value that is not its default, made from the description itself.

A setting that is added later is walked by these tests without a line here, unless only certain texts can be
its value.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dragoman.connections.boxes import machine
from dragoman.connector import Configuration
from dragoman.setting import Described, settings_of

BARE: dict[str, dict[str, Any]] = {
    "command": {"command": "sh"},
    "url": {"url": "https://tools.example/mcp"},
    "openapi": {"openapi": "https://tools.example/openapi.json", "kind": "openapi"},
}
# Values that cannot be guessed from a type: what some settings demand, or what must agree with others.
_CERTAIN: dict[str, Any] = {
    "transport": "sse",
    "cwd": "/",
    "server": "https://tools.example/v2",
    "auth.kind": "oauth",
    "auth.issuer": "https://login.example",
    "isolation": "thread",
    "request_timeout": 7.5,
    "client_capabilities": ("elicitation",),
    "hooks": ("secrets mask", "size 65536"),
    "headers": {"X-Region": "north"},
    "env": {"REGION": "north"},
    "sandbox": machine.chosen("auto"),
    "mounts": ("/usr/share:rw",),
    "network": ("none",),
    # Of agents: models and connectors that there are.
    "model": "offline",
    "fallbacks": ("offline",),
    "connectors": (),
}
_IN_DAYS = datetime.now(UTC).replace(microsecond=0) + timedelta(days=9)
_PERSONAL = {"command": ("env:OWN",), "url": ("header:X-Own",), "openapi": ("header:X-Own",)}


def settings_for(way: str) -> list[Described]:
    """Those that people can set on a connector reached so, beside what says where it is."""
    return [
        one
        for one in settings_of(Configuration)
        if not one.setting.derived and one.name not in BARE[way] and one.name != "kind" and _belongs(one, way)
    ]


def _belongs(one: Described, way: str) -> bool:
    # An MCP server takes a key in a header only.
    return (not one.setting.ways or way in one.setting.ways) and (one.name, way) != ("auth.place", "url")


def value_for(one: Described, way: str) -> Any:
    if one.name == "personal":
        return _PERSONAL[way]
    return other_value(one)


def other_value(one: Described) -> Any:
    """A value that is not the default; of a list, one that is narrower than all."""
    if one.name in _CERTAIN:
        return _CERTAIN[one.name]
    guesses: Mapping[str, Callable[[], Any]] = {
        "choice": lambda: next(choice for choice in reversed(one.choices) if choice != one.default),
        "switch": lambda: not one.default,
        "whole": lambda: 5 if one.default is None else max(2, one.default // 2),
        "number": lambda: 2.5 if one.default is None else one.default / 2 + 1.5,
        "list": lambda: one.choices[:1] or ("one", "two"),
        "moment": lambda: _IN_DAYS,
        "table": lambda: {"NAME": "value"},
        "text": lambda: "a-text",
    }
    return guesses[one.kind]()


def every_fact(way: str) -> dict[str, Any]:
    """All of them together, as the library, REST and a file take them."""
    facts = dict(BARE[way])
    for one in settings_for(way):
        put(facts, one, value_for(one, way))
    return facts


def put(facts: dict[str, Any], one: Described, value: Any) -> None:
    holder = facts
    for part in one.path[:-1]:
        holder = holder.setdefault(part, {})
    holder[one.path[-1]] = list(value) if isinstance(value, tuple) else value


def assert_all_are_set(
    configuration: Configuration, way: str, described: Sequence[Described] | None = None
) -> None:
    for one in described or settings_for(way):
        assert one.of(configuration) == value_for(one, way), one.name


def assert_none_is_set(configuration: Configuration, way: str) -> None:
    for one in settings_for(way):
        assert one.of(configuration) == one.default, one.name
