"""`connectors add` and `update` have an option for every setting, and `--unset` sets it back."""

from typing import Any

import pytest
from command_line import Command

from dragoman.connector import Configuration
from dragoman.setting import Described
from servers.every_setting import BARE, assert_all_are_set, assert_none_is_set, settings_for, value_for


def words_for(one: Described, value: Any) -> list[str]:
    if one.flags[0] == "--":
        return []
    if one.kind == "switch":
        return [one.flags[0] if value else one.flags[1]]
    if one.kind == "table":
        return [word for name, text in value.items() for word in (one.flags[0], f"{name}={text}")]
    if one.kind == "list":
        return [word for text in value for word in (one.flags[0], text)]
    return [one.flags[0], str(value)]


def way_words(way: str) -> list[str]:
    return ["--", "sh", "one", "two"] if way == "command" else [f"--{way}", BARE[way][way]]


@pytest.mark.parametrize("way", [*BARE])
def test_every_setting_has_an_option_and_can_be_unset(way: str, dragoman: Command) -> None:
    options = [word for one in settings_for(way) for word in words_for(one, value_for(one, way))]
    added = dragoman("connectors", "add", "x", "--no-connect", "--json", *options, *way_words(way))
    assert added.code == 0, added.err
    assert_all_are_set(Configuration.checked(added.value["configuration"]), way)
    shown = dragoman("connectors", "show", "x").out
    for one in settings_for(way):
        assert one.name == "args" or one.name in shown, one.name
    names = ",".join(one.name for one in settings_for(way))
    unset = dragoman("connectors", "update", "x", "--no-connect", "--json", "--unset", names)
    assert unset.code == 0, unset.err
    assert_none_is_set(Configuration.checked(unset.value["configuration"]), way)


def test_what_cannot_be_unset_is_said_with_what_was_meant(dragoman: Command) -> None:
    outcome = dragoman("connectors", "update", "x", "--unset", "retry.tried")
    assert outcome.code == 2
    assert "did you mean 'retry.tries'" in outcome.err


def test_every_setting_of_an_agent_has_an_option_and_can_be_unset(dragoman: Command) -> None:
    chosen = ["--description", "d", "--instructions", "i", "--model", "offline", "--fallback", "offline"]
    made = dragoman(
        "agents", "create", "w", *chosen, "--capability", "mcp_x", "--exposure", "search", "--json"
    )
    assert made.code == 0, made.err
    settings = ("description", "instructions", "model", "fallbacks", "capabilities", "exposure")
    assert [made.value[name] for name in settings] == ["d", "i", "offline", ["offline"], ["mcp_x"], "search"]
    unset = dragoman("agents", "update", "w", "--unset", ",".join(settings), "--json")
    assert [unset.value[name] for name in settings] == ["", "", None, [], None, "auto"]
