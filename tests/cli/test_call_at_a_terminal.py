"""`dragoman call` where a person sits: what the server asks is asked there, and progress is shown."""

import sys
from pathlib import Path

from command_line import Command, raw
from terminal import at_terminal

from servers.processes import HERE

ASKING = ["--", sys.executable, "-S", str(HERE / "asking_stdio.py"), "1"]
RENAME = ("call", "mcp_old_rename", "old=bob")


def test_the_person_at_the_terminal_answers_declines_and_visits(dragoman: Command) -> None:
    assert dragoman("connectors", "add", "old", *ASKING).code == 0
    with at_terminal(*RENAME) as call:
        assert "server of old" in call.until("What is the new name of bob?")
        call.until("y answer · n decline")
        call.type("y\n")
        call.until("name")
        call.type("Ada\n")
        call.until("bob is Ada")
        assert call.wait() == 0
    with at_terminal(*RENAME) as call:
        call.until("n decline")
        call.type("n\n")
        call.until("declined to answer")
        assert call.wait() == 0
    with at_terminal("call", "mcp_old_visit") as call:
        call.until("https://x.example/s")
        call.type("y\n")
        call.until("accept")
        assert call.wait() == 0


def test_in_a_pipe_nobody_is_asked_and_that_is_said(dragoman: Command) -> None:
    assert dragoman("connectors", "add", "old", *ASKING).code == 0
    outcome = dragoman(*RENAME)
    # Nobody was there as it began: the server was not told that it may ask.
    assert (outcome.code, outcome.out.strip()) == (0, "None")


def test_progress_is_a_line_at_the_terminal(dragoman: Command, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.write_text("xx")  # a step for each letter
    assert dragoman("connectors", "add", "a", *raw()).code == 0
    with at_terminal("call", "mcp_a_steps", "count=3", "seconds=60", f"gate={gate}") as call:
        call.until("2 of 3")
        gate.write_text("xxx")
        call.until("3 steps")
        assert call.wait() == 0


def test_a_person_is_asked_before_a_connector_is_removed(dragoman: Command) -> None:
    assert dragoman("connectors", "add", "a", *raw()).code == 0
    with at_terminal("connectors", "remove", "a") as removing:
        removing.until("Remove a with its")
        removing.type("n\n")
        assert removing.wait() == 130
    assert dragoman("connectors", "show", "a").code == 0
    with at_terminal("connectors", "remove", "a", "--yes") as removing:
        removing.until("a is removed")
        assert removing.wait() == 0
    assert dragoman("connectors", "show", "a").code == 1


def test_whoever_waits_for_a_new_server_sees_for_how_long_and_what_it_says(dragoman: Command) -> None:
    program = "import sys, time; print('resolving packages', file=sys.stderr, flush=True); time.sleep(600)"
    command = ["--", sys.executable, "-c", program]
    with at_terminal("connectors", "add", "slow", *command) as adding:
        adding.until("connecting to slow …")
        adding.until("1 s: resolving packages")
