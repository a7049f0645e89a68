"""The form of a connector: what was typed becomes what the hub takes."""

from typing import Any

import pytest

from dragoman.connector import Auth, Configuration, Connector
from dragoman.console.connector_forms import chosen_settings, facts_of, groups_of
from dragoman.console.setting_forms import typed as as_typed
from dragoman.errors import InvalidConfig
from dragoman.hub.connector_input import configured, merged
from servers.every_setting import BARE, assert_all_are_set, assert_none_is_set, settings_for, value_for

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
            "auth_kind": "bearer",
            "token": "t",
            "headers": "X-A: b:c",
        },
        {
            "url": "https://x.example/mcp",
            "headers": {"X-A": "b:c"},
            "auth": {"kind": "bearer"},
            "bearer": "t",
        },
    ),
    (
        {"by": "url", "url": "https://x.example", "auth_kind": "apikey", "token": "k", "auth_header": "X-K"},
        {"url": "https://x.example", "auth": {"kind": "apikey", "header": "X-K"}, "api_key": "k"},
    ),
    (
        {
            "by": "url",
            "url": "https://x.example",
            "auth_kind": "oauth",
            "auth_scopes": "a, b",
            "auth_client_id": "c",
            "auth_header": "of another kind",
        },
        {
            "url": "https://x.example",
            "auth": {"kind": "oauth", "client_id": "c", "scopes": ["a", "b"]},
        },
    ),
    (
        {
            "by": "openapi",
            "openapi": "https://x.example/o.json",
            "select_methods": "get post",
            "calls_per_minute": "60",
        },
        {
            "openapi": "https://x.example/o.json",
            "select": {"methods": ["get", "post"]},
            "calls_per_minute": 60,
        },
    ),
    (
        {
            "by": "command",
            "command": "x",
            "deferred": "no",
            "eager": "yes",
            "auto_reconnect": "no",
            "pin": "block",
            "approval": "",
        },
        {
            "command": "x",
            "args": [],
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
        ({"by": "url", "url": "https://x.example", "auth_kind": "bearer"}, "the token is empty"),
        ({"by": "openapi"}, "the address of the document is empty"),
        (
            {"by": "command", "command": "a", "idle_ttl": "soon"},
            "Close after idle seconds must be a number, not 'soon'",
        ),
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
    by = "url" if one.configuration.url else "command"
    fields = [field for _, _, members in groups_of(one) for field in members]
    return {"by": by, **{field.name: field.value for field in fields}}


def test_a_form_that_was_not_touched_changes_nothing() -> None:
    before = connector(command="uvx", args=("a b",), env={"A": "1"}, calls_per_minute=5, eager=True)
    assert facts_of(shown(before), before.configuration) == {}


def test_an_empty_token_keeps_the_one_there_is() -> None:
    before = connector(url="https://x.example", auth=Auth(kind="bearer"), secrets=("auth",))
    assert facts_of(shown(before), before.configuration) == {}


def test_a_variable_that_is_not_there_any_more_and_a_secret_that_was_ticked_are_taken_away() -> None:
    before = connector(command="x", env={"A": "1", "B": "2"}, secrets=("env:T",))
    typed = {**shown(before), "env": "B=3", "drop:env:T": "1"}
    assert facts_of(typed, before.configuration)["env"] == {"A": None, "B": "3", "T": None}


def test_a_cleared_field_sets_back_to_the_default() -> None:
    before = connector(command="x", calls_per_minute=5, approval="always", retry={"tries": 2, "cap": 9})
    cleared = {"calls_per_minute": "", "approval": "", "retry_tries": " "}
    facts = facts_of({**shown(before), **cleared}, before.configuration)
    assert facts == {"calls_per_minute": None, "approval": None, "retry": {"tries": None}}


@pytest.mark.parametrize("way", [*BARE])
def test_every_setting_is_in_the_form_and_can_be_cleared(way: str) -> None:
    # How an API key travels is not asked of who signs in by OAuth.
    described = [one for one in settings_for(way) if "apikey" not in one.setting.when]
    fields = {field.name for _, _, members in groups_of(None) for field in members}
    plain = [one for one in described if one.name != "args"]
    assert {one.key for one in plain} <= fields
    typed = {"by": way, way: "sh one two" if way == "command" else BARE[way][way]}
    full = {**typed, **{one.key: as_typed(one, value_for(one, way)) for one in plain}}
    split = configured(facts_of(full), {})
    configuration, secrets = split.configuration, split.secrets
    assert_all_are_set(configuration, way, described)
    told = [label for label, _ in chosen_settings(connector(**configuration.model_dump(exclude_unset=True)))]
    assert {one.label for one in plain} <= {*told}
    cleared = {**typed, **{one.key: "" for one in plain}} | ({"command": "sh"} if way == "command" else {})
    facts, kept = merged(configuration, secrets, facts_of(cleared, configuration))
    assert_none_is_set(configured(facts, kept).configuration, way)
