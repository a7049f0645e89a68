"""`action_servers.json` and `agent_configs/{agent}.json`, which have no schema but their habits."""

import json
from typing import Any

import pytest

from dragoman.errors import InvalidConfig
from dragoman.formats import FoundConnector, ImportPlan, read
from dragoman.formats.json_splice import with_list

SHOP = {"name": "web_shop", "url": "http://127.0.0.1:8000", "description": "Orders"}


def found(entry: dict[str, Any], **beside: Any) -> FoundConnector:
    return plan({"servers": [entry], **beside}).connectors[0]


def plan(document: Any, name: str = "action_servers.json") -> ImportPlan:
    return read(json.dumps(document), name)


@pytest.mark.parametrize(
    "document",
    [
        [SHOP],
        {"servers": [SHOP]},
        {"action_servers": [SHOP]},
        {"actionServers": [SHOP]},
        {"servers": {"web_shop": SHOP}},
        {"action_servers": {"web_shop": SHOP}},
    ],
)
def test_a_service_is_found_however_the_list_is_called(document: Any) -> None:
    (shop,) = plan(document).connectors
    assert shop.facts == {"kind": "openapi", "openapi": "http://127.0.0.1:8000"}
    assert (shop.slug, shop.aliases, shop.description) == ("web-shop", ("web_shop",), "Orders")


def test_a_table_of_servers_is_vs_code_unless_its_file_says_otherwise() -> None:
    document = {"servers": {"a": {"url": "https://a.example/mcp"}}}
    assert plan(document, "mcp.json").connectors[0].facts == {"url": "https://a.example/mcp"}
    assert plan(document, "action_servers.json").connectors[0].facts["kind"] == "openapi"


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ({"api_key": "k"}, {"api_key": "k"}),
        ({"apiKey": "k", "api_key_header": "X-Own"}, {"api_key": "k", "api_key_header": "X-Own"}),
        ({"token": "t"}, {"bearer": "t"}),
        ({"auth": {"type": "bearer", "token": "${env:T}"}}, {"bearer": "${T}"}),
        ({"headers": {"X-Tenant": "7"}}, {"headers": {"X-Tenant": "7"}}),
    ],
)
def test_credentials_are_taken_as_they_are_spelled(given: dict[str, Any], facts: dict[str, Any]) -> None:
    taken = found({**SHOP, **given}).facts
    assert {name: taken[name] for name in facts} == facts


def test_no_discovery_for_one_server_or_for_all() -> None:
    assert "auto_discover" not in found(SHOP).facts
    assert found({**SHOP, "auto_discover": False}).facts["auto_discover"] is False
    assert found(SHOP, auto_discover=False).facts["auto_discover"] is False
    assert "auto_discover" not in found({**SHOP, "auto_discover": True}, auto_discover=False).facts


def test_an_mcp_server_may_be_among_them() -> None:
    assert found({"name": "m", "type": "mcp", "url": "https://m.example/mcp"}).facts == {
        "url": "https://m.example/mcp"
    }
    assert found({"name": "m", "command": "uvx", "args": ["x"]}).facts == {"command": "uvx", "args": ("x",)}


def test_a_disabled_service_stays_disabled() -> None:
    assert not found({**SHOP, "enabled": False}).enabled


def test_bad_entries_are_named_by_place_or_name_and_lose_no_other() -> None:
    result = plan({"servers": [{"url": "http://a"}, {"name": "b"}, 7, {**SHOP, "enabled": "x"}, SHOP]})
    assert [one.name for one in result.connectors] == ["web_shop"]
    assert [one.entry for one in result.problems] == ["entry 1", "b", "entry 3", "web_shop"]


def test_an_agent_with_one_server_is_read_as_it_is_written() -> None:
    document = {"agent_name": "your_agent", "action_server": "your_mcp_server"}
    (agent,) = plan(document, "agent_configs/other.json").agents
    assert (agent.name, agent.connectors) == ("your_agent", ("your_mcp_server",))


def test_an_agent_takes_its_name_from_its_file() -> None:
    document = {
        "system_prompt": "Be kind.",
        "action_servers": ["web_shop", "email_mcp", "web_shop"],
        "model": "x:y",
    }
    (agent,) = plan(document, "agent_configs/mailer.json").agents
    assert (agent.name, agent.instructions, agent.model) == ("mailer", "Be kind.", "x:y")
    assert agent.connectors == ("web_shop", "email_mcp")
    assert agent.auto_discover


def test_an_agent_may_describe_a_server_in_its_list() -> None:
    document = {"name": "a", "connectors": [SHOP, "time", {"name": "known"}], "auto_discover": False}
    result = plan(document, "a.json")
    assert result.agents[0].connectors == ("web_shop", "time", "known")
    assert [one.slug for one in result.connectors] == ["web-shop"]
    assert result.connectors[0].facts["auto_discover"] is False
    assert not result.agents[0].auto_discover


def test_an_agent_without_any_name_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="no name"):
        read('{"instructions": "x", "action_servers": []}')


def test_an_exchanged_list_leaves_every_other_byte_alone() -> None:
    text = (
        '{\n    // who\n    "name": "a",\n    "tools": {"action_servers": ["no"]},\n'
        '    "action_servers": [\n        "x"\n    ],\n    "n": 1.50\n}\n'
    )
    assert with_list(text, "action_servers", ["x", "y"], "a.json") == text.replace('"x"', '"x",\n        "y"')
    assert with_list(text, "action_servers", [], "a.json") == text.replace('[\n        "x"\n    ]', "[]")
    assert (
        with_list('{"action_servers":["x"], "b":2}', "action_servers", ["y"], "a")
        == '{"action_servers":["y"], "b":2}'
    )


def test_a_list_that_was_not_there_is_written_with_the_indent_of_the_file() -> None:
    assert with_list('{\n    "name": "a"\n}\n', "action_servers", ["x"], "a.json") == (
        '{\n    "name": "a",\n    "action_servers": [\n        "x"\n    ]\n}\n'
    )


def test_keys_that_mean_nothing_here_are_named() -> None:
    agent = plan({"agent_name": "bob", "action_server": "web_shop", "colour": "red", "tone": 1}, "bob.json")
    assert agent.warnings == ("not taken over: colour, tone",)
    assert found({**SHOP, "timeout": 3}).warnings == ("not taken over: timeout",)
    listed = plan({"servers": [SHOP], "colour": "red"})
    assert listed.warnings == ("not taken over: colour",)
    assert listed.connectors[0].warnings == ()
    own = read("[connectors.time]\ncommand = 'uvx'\n[conectors.more]\ncommand = 'uvx'\n", "dragoman.toml")
    assert own.warnings == ("not taken over: conectors",)
