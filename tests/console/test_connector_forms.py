"""The form of a connector: what was typed becomes what the hub takes."""

from typing import Any

import pytest

from dragoman.connector import Auth, Configuration, Connector
from dragoman.console.connector_forms import facts_of, filled
from dragoman.console.sparklines import line
from dragoman.errors import InvalidConfig

Typed = dict[str, str]

NEW: list[tuple[Typed, dict[str, Any]]] = [
    (
        {"by": "command", "command": "uvx 'a server' --x", "env": "A=1\n\nB = two=2", "secret_env": "T=s"},
        {
            "command": "uvx",
            "args": ["a server", "--x"],
            "env": {"A": "1", "B": "two=2", "T": "s"},
            "secret": ["env:T"],
        },
    ),
    (
        {
            "by": "url",
            "url": " https://x.example/mcp ",
            "auth": "bearer",
            "token": "t",
            "headers": "X-A: b:c",
        },
        {"url": "https://x.example/mcp", "headers": {"X-A": "b:c"}, "secret": [], "bearer": "t"},
    ),
    (
        {"by": "url", "url": "https://x.example", "auth": "apikey", "token": "k", "key_header": "X-K"},
        {
            "url": "https://x.example",
            "headers": {},
            "secret": [],
            "api_key": "k",
            "api_key_header": "X-K",
            "api_key_in": "header",
        },
    ),
    (
        {"by": "url", "url": "https://x.example", "auth": "oauth", "scopes": "a, b", "client_id": "c"},
        {
            "url": "https://x.example",
            "headers": {},
            "secret": [],
            "auth": {"kind": "oauth", "flow": "code", "client_id": "c", "scopes": ["a", "b"]},
        },
    ),
    (
        {
            "by": "openapi",
            "openapi": "https://x.example/o.json",
            "methods": "get post",
            "calls_per_minute": "60",
        },
        {
            "kind": "openapi",
            "openapi": "https://x.example/o.json",
            "headers": {},
            "secret": [],
            "select": {"tags": [], "paths": [], "methods": ["get", "post"], "include": [], "exclude": []},
            "calls_per_minute": 60,
        },
    ),
    (
        {
            "by": "command",
            "command": "x",
            "deferred": "no",
            "has_switches": "1",
            "eager": "1",
            "pin": "block",
        },
        {
            "command": "x",
            "args": [],
            "env": {},
            "secret": [],
            "deferred": False,
            "eager": True,
            "auto_reconnect": False,
            "pin": "block",
        },
    ),
]


@pytest.mark.parametrize(("typed", "facts"), NEW)
def test_what_was_typed_becomes_what_the_hub_takes(typed: Typed, facts: dict[str, Any]) -> None:
    assert facts_of(typed) == facts


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"by": "command", "command": " "}, "the command is empty"),
        ({"by": "command", "command": "a 'b"}, "a quotation mark of the command is not closed"),
        ({"by": "command", "command": "a", "env": "A=1\nB"}, "line 2 of env is not NAME=value"),
        ({"by": "url", "url": ""}, "the URL is empty"),
        ({"by": "url", "url": "https://x.example", "auth": "bearer"}, "the token is empty"),
        ({"by": "openapi"}, "the address of the document is empty"),
        ({"by": "command", "command": "a", "idle_ttl": "soon"}, "idle time must be a number, not 'soon'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_plain_words(typed: Typed, message: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        facts_of(typed)
    assert refused.value.message == message


def connector(**facts: Any) -> Connector:
    return Connector(id="c", workspace="w", owner="u", slug="x", configuration=Configuration(**facts))


def shown(one: Connector) -> Typed:
    """The form as a browser sends it back untouched."""
    values = {name: value for name, value in filled(one).items() if isinstance(value, str)}
    switches = {name: "1" for name, value in filled(one).items() if value is True}
    return {**values, **switches, "has_switches": "1"}


def test_a_form_that_was_not_touched_changes_nothing() -> None:
    before = connector(command="uvx", args=("a b",), env={"A": "1"}, calls_per_minute=5, eager=True)
    facts = facts_of(shown(before), before.configuration)
    assert facts["env"] == {"A": "1"}
    assert facts["secret"] == []
    for name in facts.keys() - {"secret", "args", "personal"}:
        assert facts[name] == getattr(before.configuration, name)
    assert tuple(facts["args"]) == ("a b",)


def test_an_empty_token_keeps_the_one_there_is() -> None:
    before = connector(url="https://x.example", auth=Auth(kind="bearer"), secrets=("auth",))
    facts = facts_of(shown(before), before.configuration)
    assert "bearer" not in facts
    assert facts["auth"] == {"kind": "bearer"}


def test_a_variable_that_is_not_there_any_more_and_a_secret_that_was_ticked_are_taken_away() -> None:
    before = connector(command="x", env={"A": "1", "B": "2"}, secrets=("env:T",))
    typed = {**shown(before), "env": "B=3", "drop:env:T": "1"}
    assert facts_of(typed, before.configuration)["env"] == {"A": None, "B": "3", "T": None}


def test_what_a_change_cannot_take_away_is_said() -> None:
    before = connector(command="x", calls_per_minute=5)
    with pytest.raises(InvalidConfig, match="calls a minute cannot be taken away"):
        facts_of({**shown(before), "calls_per_minute": ""}, before.configuration)


def test_a_line_goes_through_every_value_and_stays_inside() -> None:
    assert line([5]) == ""
    points = [tuple(map(float, point.split())) for point in line([1, 100, 1])[1:].split(" L")]
    assert [place for place, _ in points] == [0, 144, 288]
    assert points[1][1] < points[0][1] == points[2][1]
    assert all(0 <= height <= 44 for _, height in points)
