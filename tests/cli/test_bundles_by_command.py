"""`dragoman bundles`: made, looked at, overridden, changed and removed."""

from pathlib import Path

import pytest
from command_line import Command

from servers.samples import sample

pytestmark = pytest.mark.slow


def test_a_bundle_is_made_overridden_and_removed(dragoman: Command, tmp_path: Path) -> None:
    url = sample("email", tmp_path)["url"]
    assert dragoman("connectors", "add", "email", "--url", url, "--transport", "http").code == 0
    assert "there is no bundle yet" in dragoman("bundles", "list").err
    wrong = dragoman("bundles", "create", "inbox", "mail__read-emails")
    assert (wrong.code, "no connector 'mail'" in wrong.err) == (1, True)
    made = dragoman("bundles", "create", "inbox", "email__read-emails", "--title", "Inbox", "--json").value
    assert (made["mcp"], made["tools"][0]["works"]) == ("/mcp/bundles/inbox", True)
    assert dragoman("bundles", "add", "inbox", "email__send-email").code == 0
    command = ("bundles", "override", "inbox", "email__read-emails")
    shown = dragoman(*command, "--name", "look", "--pin", "limit=2", "--json").value
    look = next(one for one in shown["tools"] if one["tool"] == "read-emails")
    assert look["override"] == {"name": "look", "parameters": {"limit": {"value": 2}}}
    refused = dragoman("bundles", "override", "inbox", "look", "--pin", "limit=many")
    assert (refused.code, "is not what the tool's schema asks for" in refused.err) == (1, True)
    shown = dragoman("bundles", "override", "inbox", "look", "--title", "Look", "--json").value
    assert {*shown["tools"][0]["override"]} | {*(shown["tools"][1]["override"] or {})} == {
        *("name", "title", "parameters"),
    }
    assert "look" in dragoman("bundles", "show", "inbox").out
    assert "Inbox" in dragoman("bundles", "list").out
    dropped = dragoman("bundles", "drop", "inbox", "email__send-email", "--json").value
    assert [one["name"] for one in dropped["tools"]] == ["look"]
    reset = dragoman("bundles", "override", "inbox", "look", "--reset", "--json").value
    assert [one["name"] for one in reset["tools"]] == ["mcp_email_read-emails"]
    updated = dragoman(
        "bundles", "update", "inbox", "--view", "search", "--resources", "email", "--json"
    ).value
    assert (updated["view"], updated["resources"], updated["title"]) == ("search", ["email"], "Inbox")
    assert dragoman("bundles", "update", "inbox", "--view", "auto", "--json").value["view"] is None
    assert dragoman("bundles", "remove", "inbox").code == 1, "nobody can be asked"
    assert dragoman("bundles", "remove", "inbox", "--yes").code == 0
    assert dragoman("bundles", "show", "inbox").code == 1
