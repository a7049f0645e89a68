"""The whole life of a connector by the command, without a service."""

import io
import json
import sys
from pathlib import Path

import pytest
from command_line import Command, raw

SECRET = "canary-4f1c9a7e"


def test_a_connector_lives_from_add_to_remove(dragoman: Command, home: Path) -> None:
    assert "connectors add" in dragoman("connectors", "list").err
    added = dragoman("connectors", "add", "raw", *raw("--description", "for tests"))
    assert added.code == 0
    assert "connected" in added.out
    assert "dragoman tools list raw" in added.err
    listed = dragoman("connectors", "list")
    assert "raw" in listed.out
    assert "disconnected" in listed.out
    assert "mcp_raw_echo" in dragoman("tools", "list").out
    assert "required" in dragoman("tools", "show", "raw__echo").out
    assert dragoman("call", "raw__echo", "text=hello").out == "hello\n"
    told = dragoman("call", "raw__echo", "text=hello", "--messages")
    assert told.out == "hello\n"
    assert any(line.startswith("→") and '"tools/call"' in line for line in told.err.splitlines())
    assert any(line.startswith("←") and '"text": "hello"' in line for line in told.err.splitlines())
    exchanged = dragoman("call", "raw__echo", "text=hello", "--messages", "--json").value["messages"]
    assert {one["direction"] for one in exchanged} == {"sent", "received"}
    assert dragoman("connectors", "connect", "raw").code == 0
    assert "unchanged" in dragoman("connectors", "refresh", "raw").out
    assert "disabled" in dragoman("connectors", "disable", "raw").out
    refused = dragoman("call", "raw__echo", "text=hello")
    assert (refused.code, refused.out) == (1, "")
    assert "hint: enable it first: dragoman connectors enable raw" in refused.err
    assert dragoman("connectors", "enable", "raw").code == 0
    updated = dragoman("connectors", "update", "raw", "--request-timeout", "7", "--json").value
    assert updated["configuration"]["request_timeout"] == 7
    assert dragoman("calls", "list").out.count("mcp_raw_echo") == 4
    assert dragoman("connectors", "remove", "raw", "--yes").code == 0
    assert dragoman("connectors", "show", "raw").code == 1


def test_every_command_gives_pure_json(dragoman: Command, home: Path) -> None:
    assert dragoman("connectors", "add", "raw", "--json", *raw()).value["slug"] == "raw"
    lines = [
        ["connectors", "list"],
        ["connectors", "show", "raw"],
        ["connectors", "connect", "raw"],
        ["connectors", "disconnect", "raw"],
        ["connectors", "disable", "raw"],
        ["connectors", "enable", "raw"],
        ["connectors", "refresh", "raw"],
        ["tools", "list"],
        ["tools", "show", "raw__echo"],
        ["tools", "disable", "raw__echo"],
        ["tools", "enable", "raw__echo"],
        ["tools", "accept", "raw__echo"],
        ["call", "raw__add", "a=1", "b=2"],
        ["calls", "list"],
        ["doctor"],
        ["connectors", "remove", "raw", "--yes"],
    ]
    for words in lines:
        outcome = dragoman(*words, "--json")
        assert outcome.code == 0, (words, outcome)
        assert isinstance(outcome.value, dict), words
    failed = [
        ["connectors", "show", "raw"],
        ["tools", "show", "raw__echo"],
        ["call", "raw__echo", "--json-args", "{}"],
        ["results", "show", "result_x"],
        ["events"],
    ]
    for words in failed:
        outcome = dragoman(*words, "--json")
        assert outcome.code == 1, words
        problem = outcome.value.get("error") or outcome.value
        assert problem["code"] in ("not_found", "unreachable"), words
        assert "error: " in outcome.err, words


def test_arguments_of_every_kind_arrive(
    dragoman: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dragoman("connectors", "add", "raw", *raw())
    assert json.loads(dragoman("call", "raw__add", "a=1", "b=2.5").out) == {"sum": 3.5}
    assert json.loads(dragoman("call", "raw__add", "--arg", "a=-1", "--arg", "b=1e2").out) == {"sum": 99.0}
    assert json.loads(dragoman("call", "raw__add", "--json-args", '{"a": 1, "b": 2}').out) == {"sum": 3}
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"text": "from stdin"}'))
    assert dragoman("call", "raw__echo", "-").out == "from stdin\n"
    assert dragoman("call", "raw__echo", "text=5=five é").out == "5=five é\n"
    for words, expected in (
        (["raw__add", "a=x", "b=1"], "must be a number"),
        (["raw__add", "a=1"], "'b' is missing"),
        (["raw__strict", "when=never"], "date-time"),
        (["raw__strict", "when=2026-01-01T00:00:00Z", "extra=1"], "unknown argument 'extra'"),
        (["raw__fail", "text=the tool says no"], "the tool says no"),
        (["raw__ecko", "text=x"], "did you mean 'raw__echo'"),
    ):
        outcome = dragoman("call", *words)
        assert (outcome.code, outcome.out) == (1, ""), words
        assert expected in outcome.err, outcome.err
    for seconds in ("0.2", "2", "20"):  # a busy machine takes long to start the server
        outcome = dragoman("call", "raw__sleep", "seconds=60", "--timeout", seconds)
        assert (outcome.code, outcome.out) == (1, "")
        if "no connection in time" not in outcome.err:
            break
    assert "deadline" in outcome.err


def test_bad_connectors_are_refused_and_leave_nothing(dragoman: Command, home: Path) -> None:
    for words, expected in (
        (["x"], "either a command"),
        (["x", "--url", "http://x", "--", "y"], "not both"),
        (["x", "--", "no-such-binary"], "no program 'no-such-binary'"),
        (["x", "--url", "nonsense"], "http://"),
        (["Böse", "--url", "http://x"], "cannot be the name"),
        (["x", "--url", "http://x", "--isolation", "none"], "isolation"),
        (["x", "--url", "http://x", "--request-timeout", "-1"], "request_timeout"),
    ):
        outcome = dragoman("connectors", "add", *words)
        assert (outcome.code, outcome.out) == (1, ""), outcome
        assert outcome.err.startswith("error: "), outcome.err
        assert expected in outcome.err, outcome.err
    assert [one["kind"] for one in dragoman("connectors", "list", "--json").value["connectors"]] == ["native"]
    assert "did you mean" in dragoman("connectors", "show", "nativ").err


def test_an_unreachable_server_is_kept_and_its_cause_shown(dragoman: Command, home: Path) -> None:
    added = dragoman("connectors", "add", "far", "--url", "http://127.0.0.1:9/mcp")
    assert added.code == 1
    assert "does not work yet" in added.err
    assert "is the server running?" in added.err
    assert dragoman("connectors", "update", "far", "--description", "gone").code == 1
    assert dragoman("connectors", "connect", "far").code == 1
    outcome = dragoman("doctor")
    assert outcome.code == 1
    assert "✗ connector far" in outcome.out


def test_doctor_sees_files_that_are_open_to_others(dragoman: Command, home: Path) -> None:
    assert dragoman("doctor").code == 0
    (home / "key").chmod(0o644)
    outcome = dragoman("doctor", "--json")
    assert (outcome.code, outcome.value["ok"]) == (1, False)
    found = {finding["subject"]: finding for finding in outcome.value["findings"]}
    assert found["key"]["verdict"] == "wrong"
    assert found["key"]["hint"] == f"chmod 600 {home / 'key'}"


def test_a_large_result_is_cut_and_read_by_its_handle(dragoman: Command, home: Path) -> None:
    dragoman("connectors", "add", "raw", *raw())
    outcome = dragoman("call", "raw__big", "bytes=400000", "--json")
    handle = outcome.value["metadata"]["handle"]
    assert "dragoman results show result_" in dragoman("call", "raw__big", "bytes=400000").err
    assert dragoman("results", "show", handle, "--offset", "399990", "--json").value["body"] == "x" * 10


def test_a_secret_is_never_shown(dragoman: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    seen: list[str] = []
    for words in (
        ["connectors", "add", "raw", *raw("--secret-env", f"PLAIN={SECRET}", "--env", f"API_KEY={SECRET}")],
        ["connectors", "add", "far", "--url", "http://127.0.0.1:9/mcp", "--bearer-env", "MY_TOKEN"],
        ["connectors", "add", "raw", *raw("--secret-env", f"PLAIN={SECRET}")],
        ["connectors", "add", "x", "--bearer", SECRET, "--url", "nonsense"],
        ["connectors", "add", "x", "--bearer", SECRET, "--", "cat"],
        ["connectors", "add", "x", "--secret-env", SECRET, "--", "cat"],
        ["connectors", "show", "raw"],
        ["connectors", "show", "far", "--json"],
        ["call", "raw__fail", f"text={SECRET}"],
        ["calls", "list"],
        ["doctor"],
    ):
        outcome = dragoman(*words)
        seen.append(outcome.out + outcome.err)
    assert "env:PLAIN" in seen[0]
    assert [index for index, text in enumerate(seen) if SECRET in text] == []
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in home.iterdir())


def test_what_could_steer_a_terminal_is_taken_out() -> None:
    from dragoman.cli.screen import cleaned, plain

    assert "\x1b" not in cleaned("\x1b]0;title\x07 \x9b31m \u202e")
    assert cleaned("two\nlines\t✓") == "two\nlines\t✓"
    assert plain("[red]no markup[/]") == r"\[red]no markup\[/]"
