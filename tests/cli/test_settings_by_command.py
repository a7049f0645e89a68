"""Commands that add and update have an option for every setting, and `--unset` sets it back."""

from datetime import UTC, datetime
from typing import Any

import pytest
from command_line import Command

from dragoman.agent import AgentProfile
from dragoman.connector import Configuration
from dragoman.people import ApiKey, User, Workspace
from dragoman.setting import Described, people_set
from servers.every_setting import (
    BARE,
    assert_all_are_set,
    assert_none_is_set,
    other_value,
    settings_for,
    value_for,
)

NOUNS: dict[str, type] = {"agents": AgentProfile, "users": User, "keys": ApiKey, "workspaces": Workspace}


def words_for(one: Described, value: Any) -> list[str]:
    if one.flags[0] == "--":
        return []
    if one.kind == "switch":
        return [one.flags[0] if value else one.flags[1]]
    if one.path[0] == "limits":
        return ["--limit", f"{one.path[-1]}={value}"]
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


def given_words(described: tuple[Described, ...]) -> list[str]:
    words: list[str] = []
    for one in described:
        value = other_value(one)
        if one.path[0] == "limits":
            words += ["--limit", f"{one.path[-1]}={value}"]
        else:
            words += words_for(one, "9d" if one.kind == "moment" else value)
    return words


def assert_answer(described: tuple[Described, ...], answer: dict[str, Any], chosen: bool) -> None:
    for one in described:
        value = other_value(one) if chosen else one.default
        value = sorted(value) if isinstance(value, tuple | frozenset) else value
        if one.kind == "moment" and chosen:
            assert one.found_in(answer) > datetime.now(UTC).isoformat(), one.name
        elif one.flags[0] != "--":
            assert one.found_in(answer) == value, one.name


@pytest.mark.parametrize("noun", ["agents", "users", "keys", "workspaces"])
def test_every_setting_of_people_has_an_option_and_can_be_unset(noun: str, dragoman: Command) -> None:
    described = people_set(NOUNS[noun])
    words = given_words(described)
    if noun == "workspaces":
        made = dragoman(noun, "update", "local", "--json", *words)
    else:
        made = dragoman(noun, "create" if noun == "agents" else "add", "w", "--json", *words)
    assert made.code == 0, made.err
    assert_answer(described, made.value, chosen=True)
    which = made.value["name"] if noun == "agents" else made.value["id"]
    names = ",".join(one.name for one in described)
    unset = dragoman(noun, "update", which, "--json", "--unset", names)
    assert unset.code == 0, unset.err
    assert_answer(described, unset.value, chosen=False)


def test_a_list_can_be_set_to_nothing_where_unset_means_something_else(dragoman: Command) -> None:
    made = dragoman("agents", "create", "w", "--capability", "none", "--json")
    assert made.value["capabilities"] == []
    refused = dragoman("keys", "add", "k", "--expires", "soon")
    assert (refused.code, "--expires" in refused.err) == (2, True)
