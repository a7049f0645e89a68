"""`dragoman recipes`: a run is kept, read, edited, shared and deleted."""

from pathlib import Path

import pytest
from command_line import Command

from servers.samples import sample

pytestmark = pytest.mark.slow


def test_a_run_is_kept_and_the_recipe_handled(dragoman: Command, tmp_path: Path) -> None:
    url = sample("email", tmp_path)["url"]
    assert dragoman("connectors", "add", "email", "--url", url, "--transport", "http").code == 0
    assert dragoman("ask", "@email check my 2 latest emails").code == 0
    off = dragoman("recipes", "keep")
    assert off.code == 1
    assert "dragoman workspaces update local --recipes" in off.err
    assert dragoman("workspaces", "update", "local", "--recipes").code == 0
    (kept,) = dragoman("recipes", "keep", "--json").value["recipes"]
    assert kept["text"] == "1. mcp_email_read-emails(limit: integer)"
    recipe = kept["id"]
    assert kept["run"] in dragoman("recipes", "show", recipe).out
    edited = dragoman("recipes", "edit", recipe, "--question", "Look for new mail", "--json").value
    assert (edited["question"], edited["text"]) == ("Look for new mail", kept["text"])
    shared = dragoman("recipes", "share", recipe, "--text", "1. read them", "--json").value
    assert (shared["is_shared"], shared["text"], shared["run"]) == (True, "1. read them", None)
    listed = dragoman("recipes", "list", "--connector", "email").out
    assert "workspace" in listed
    assert "you" in listed
    assert dragoman("recipes", "delete", recipe).code == 1, "nobody can be asked"
    for one in (recipe, shared["id"]):
        assert dragoman("recipes", "delete", one, "--yes").code == 0
    assert "there is no recipe yet" in dragoman("recipes", "list").err
    assert dragoman("recipes", "show", recipe).code == 1
