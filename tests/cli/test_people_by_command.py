"""Workspaces, users and keys by the command, and a key in the place of the token."""

import json
from pathlib import Path

import pytest
from command_line import Command, raw, running_service
from terminal import at_terminal
from typer.main import get_command

from dragoman.cli.root import app


def test_a_team_is_set_up_by_command(dragoman: Command, home: Path) -> None:
    assert dragoman("workspaces", "add", "acme").code == 0
    assert "acme" in dragoman("workspaces", "list").out
    added = dragoman("users", "add", "ada", "--role", "admin", "-w", "acme", "--bound", "calls_per_hour=9")
    assert "calls_per_hour 9" in added.out
    assert "dragoman keys add NAME --user ada --workspace acme" in added.err
    made = dragoman("keys", "add", "laptop", "--user", "ada", "-w", "acme", "--expires", "30d")
    assert made.out.startswith("drk_")
    assert made.out.count("\n") == 1
    assert "nobody can tell it again" in made.err
    assert made.out.strip() not in made.err
    keys = dragoman("keys", "list", "-w", "acme", "--json").value["keys"]
    assert [key["name"] for key in keys] == ["laptop"]
    assert "revoked" in dragoman("keys", "revoke", keys[0]["id"], "-w", "acme").out
    assert "kept out" in dragoman("users", "update", "ada", "--inactive", "-w", "acme").out
    updated = dragoman("users", "update", "ada", "--limit", "calls_per_hour=", "-w", "acme", "--json")
    assert updated.value["limits"]["calls_per_hour"] is None
    limited = dragoman("users", "update", "ada", "--limit", "cost_per_day=2", "-w", "acme", "--json")
    assert limited.value["limits"]["cost_per_day"] == 2
    unset = dragoman(
        "users", "update", "ada", "--unset", "role,limits.cost_per_day", "-w", "acme", "--json", "--active"
    )
    assert (unset.value["role"], unset.value["limits"]["cost_per_day"]) == ("member", None)
    assert "did you mean 'limits'" in dragoman("users", "update", "ada", "--unset", "limit").err
    assert "always" in dragoman("workspaces", "update", "acme", "--approval", "always").out
    assert (
        dragoman("workspaces", "update", "acme", "--unset", "approval", "--json").value["approval"]
        == "default"
    )
    assert "always" in dragoman("workspaces", "update", "acme", "--approval", "always").out
    assert dragoman("workspaces", "show", "acme", "--json").value["approval"] == "always"
    assert dragoman("users", "show", "ada", "-w", "acme").code == 0
    assert dragoman("users", "remove", "ada", "-w", "acme", "--yes").code == 0
    assert dragoman("users", "list", "-w", "acme", "--json").value == {"users": []}
    assert dragoman("workspaces", "remove", "acme", "--yes").code == 0
    refused = dragoman("users", "remove", "owner", "--yes")
    assert (refused.code, refused.out) == (1, "")
    assert "hint: " in refused.err
    assert "operator" in dragoman("whoami").out


@pytest.mark.parametrize(
    "words",
    [
        ["keys", "add", "x", "--expires", "soon"],
        ["users", "add", "x", "--limit", "calls_per_hour"],
        ["users", "add", "x", "--limit", "calls_per_hour=many"],
    ],
)
def test_wrong_words_end_with_2(dragoman: Command, words: list[str]) -> None:
    outcome = dragoman(*words)
    assert (outcome.code, outcome.out) == (2, "")


@pytest.mark.slow
def test_a_key_is_good_where_the_token_is(
    dragoman: Command, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOMAN_MULTI_USER", "true")
    with running_service() as service:
        assert dragoman("connectors", "add", "raw", *raw()).code == 0
        dragoman("users", "add", "ada")
        key = dragoman("keys", "add", "laptop", "--user", "ada", "--scope", "read").out.strip()

        # The home of the service, without its token file.
        token = (home / "token").read_text()
        (home / "token").unlink()
        assert "DRAGOMAN_TOKEN" in dragoman("tools", "list").err
        (home / "token").write_text(token)  # else the service makes another within a second
        monkeypatch.setenv("DRAGOMAN_TOKEN", key)
        me = dragoman("whoami", "--json").value
        assert (me["user"]["name"], me["role"], me["scopes"]) == ("ada", "member", ["read"])
        assert dragoman("users", "list", "--json").value["code"] == "denied"

        # Another home, by address.
        monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "other"))
        monkeypatch.setenv("DRAGOMAN_URL", service.url)
        assert dragoman("whoami", "--json").value == me
        assert not (tmp_path / "other").exists()
        assert "no tool" in dragoman("call", "raw__echo", "text=x").err  # it is the owner's
        monkeypatch.setenv("DRAGOMAN_TOKEN", token.strip())
        assert dragoman("whoami", "--json").value["role"] == "operator"


def test_a_person_is_exported_to_a_file_and_erased_after_a_yes(dragoman: Command, tmp_path: Path) -> None:
    assert dragoman("workspaces", "add", "acme").code == 0
    ada = dragoman("users", "add", "ada", "-w", "acme", "--json").value["id"]
    assert dragoman("keys", "add", "laptop", "--user", "ada", "-w", "acme").code == 0
    file = tmp_path / "ada.json"
    assert dragoman("users", "export", "ada", "-w", "acme", "-o", str(file)).code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    data = json.loads(file.read_text())
    assert [one["name"] for one in data["users"] + data["api_keys"]] == ["ada", "laptop"]
    assert "hash" not in data["api_keys"][0]
    assert "users" in dragoman("users", "export").value  # oneself

    unsure = dragoman("users", "erase", "ada", "-w", "acme")
    assert (unsure.code, "hint: say yes with --yes" in unsure.err) == (1, True)
    with at_terminal("users", "erase", "ada", "-w", "acme") as erasing:
        erasing.until("It cannot be taken back.")
        erasing.type("n\n")
        assert erasing.wait() == 130
    assert dragoman("users", "show", "ada", "-w", "acme").code == 0
    done = dragoman("users", "erase", "ada", "-w", "acme", "--yes")
    assert (done.code, "ada is gone" in done.err) == (0, True)
    assert "of them erased" in dragoman("audit", "verify", "--workspace", "acme").out
    assert dragoman("users", "show", "ada", "-w", "acme").code == 1
    assert dragoman("users", "erase", "ada", "-w", "acme", "--yes").code == 1
    # Who was removed before is known by their id.
    bob = dragoman("users", "add", "bob", "-w", "acme", "--json").value["id"]
    assert dragoman("users", "remove", "bob", "-w", "acme", "--yes").code == 0
    assert bob in str(dragoman("audit", "list", "--workspace", "acme", "--json").value)
    assert dragoman("users", "erase", bob, "-w", "acme", "--yes").code == 0
    trail = str(dragoman("audit", "list", "--workspace", "acme", "--json").value)
    assert not {ada, bob, "'ada'", "'bob'"} & {word for word in (ada, bob, "'ada'", "'bob'") if word in trail}


def removals() -> list[list[str]]:
    """Every command that takes something away for good."""
    groups = getattr(get_command(app), "commands", {}).items()
    return [
        [name, verb]
        for name, group in groups
        for verb in getattr(group, "commands", {})
        if verb in ("remove", "erase")
    ]


def test_nothing_is_removed_without_a_yes_where_nobody_can_be_asked(dragoman: Command) -> None:
    assert len(removals()) == 9
    assert dragoman("connectors", "add", "x", *raw()).code == 0
    for words in removals():
        for form in ([], ["--json"]):
            refused = dragoman(*words, "x", *form)
            assert refused.code == 1, words
            assert "say yes with --yes" in (str(refused.value["hint"]) if form else refused.err), words
    assert dragoman("connectors", "show", "x").code == 0
    assert dragoman("agents", "show", "x").code == 0


def test_what_is_there_just_as_asked_for_may_be_added_again(dragoman: Command) -> None:
    """A script that sets something up can be run twice; what differs is refused, and nothing is changed."""
    ann = ["users", "add", "ann", "-w", "acme", "--role", "admin", "--limit", "calls_per_hour=9"]
    lines = [
        ["workspaces", "add", "acme"],
        ann,
        ["connectors", "add", "x", "--pin", "block", *raw()],
    ]
    for words in lines:
        assert dragoman(*words).code == 0, words
    for words in lines:
        again = dragoman(*words)
        assert (again.code, "is there already, as you want it" in again.err) == (0, True), words
    different = [
        ["users", "add", "ann", "-w", "acme", "--role", "member"],
        ["connectors", "add", "x", "--", "another-program"],
        ["connectors", "add", "x", "--secret-env", "PASSWORD=hunter2hunter2", *raw()],
    ]
    for words in different:
        refused = dragoman(*words)
        assert (refused.code, "as you want it" in refused.err) == (1, False), words
    assert dragoman("connectors", "show", "x", "--json").value["configuration"]["pin"] == "block"
    assert dragoman("users", "show", "ann", "-w", "acme", "--json").value["role"] == "admin"
