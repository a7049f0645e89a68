"""`dragoman chat`: by lines of a pipe, and at a terminal as a person sees it."""

import asyncio
import os
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from command_line import Command, dragoman_process, running_service
from samples_by_command import add_email, add_tracker, sent_emails
from scripted_by_command import scripted
from terminal import at_terminal

from patience import patient
from servers.scenarios import Call, Reply, Turn

pytestmark = pytest.mark.slow

SEND = "send an email to bob@example.com with subject Hello and body 'See you'"
PROMPT = "you › "


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_MODEL", "offline")


def test_lines_of_a_pipe_are_messages_and_answers(dragoman: Command, tmp_path: Path) -> None:
    with running_service():
        add_email(dragoman, tmp_path)
        # The first of three calls with the values that were filled in; then one whose value is typed.
        chosen, typed = "1\n\n\n\n\n", "1\nbob@example.com\n\n"
        lines = f"check my 2 latest emails\n{SEND}\n{chosen}maybe\ny\nsend an email\n{typed}/cost\n"
        with dragoman_process("chat", stdin=subprocess.PIPE) as chat:
            out, err = chat.communicate(lines, timeout=patient(180))
        assert chat.returncode == 0
        assert "2 emails" in out
        assert "Send an e-mail is done" in out.replace("`", "")
        assert "nothing is done before you answer" in err
        assert "offline model" in err
        assert "asks: " in err
        assert "\x1b" not in out + err
        assert "bob@example.com" in sent_emails(tmp_path)
        # The lines ended in the middle of a run: it waits, and is said to.
        assert "dragoman runs follow" in err


def test_at_a_terminal_a_person_says_yes_and_stops_what_takes_too_long(
    dragoman: Command, tmp_path: Path, home: Path
) -> None:
    add_email(dragoman, tmp_path)
    with at_terminal("chat") as chat:  # no service: all of it in one process
        greeting = chat.until(PROMPT)
        assert "answers with its offline model" in greeting
        assert "dragoman models add openai" in greeting

        chat.type(SEND + "\n")
        offered = chat.until("other words › ")
        assert "1 Send an e-mail" in offered
        chat.type("1\n")
        for value in ("to", "subject", "body", "others"):
            chat.until(f"  {value} (")
            chat.type("\n")
        asked = chat.until("n no › ")
        assert '"to": "bob@example.com"' in asked
        assert "assistant wants to call Send an e-mail" in asked
        assert "bob@example.com" not in sent_emails(tmp_path)
        chat.type("y\n")
        chat.until("✓ Send an e-mail")
        chat.until(PROMPT)
        assert "bob@example.com" in sent_emails(tmp_path)

        chat.type("send an email\n")
        chat.until("other words › ")
        chat.press_interrupt()
        chat.until("stopping")
        chat.until("note: stopped")
        chat.until(PROMPT)

        chat.type("/nonsense\n")
        chat.until("there is no command /nonsense")
        chat.type("/cost\n")
        chat.until("2 runs · offline")
        chat.type("/show\n")
        chat.until("● cancelled")
        chat.until(PROMPT)
        chat.press_interrupt()
        chat.until("Ctrl-D or /quit leaves")
        chat.until(PROMPT)
        chat.press_end()
        left = chat.until("dragoman chat --thread thr_")
        assert chat.wait() == 0
        assert "assistant asks: Which of these should be called?" in chat.screen
        assert "\nassistant\n" in chat.screen.split("\n→ Send an e-mail")[0]
        assert "is typing" not in chat.screen, left
    history = home / "chat_history"
    assert SEND in history.read_text()
    assert "\ny\n" not in history.read_text()
    assert stat.S_IMODE(os.stat(history).st_mode) == 0o600


def test_a_thread_is_taken_up_again_with_what_it_waits_for(dragoman: Command, tmp_path: Path) -> None:
    with running_service():
        add_email(dragoman, tmp_path)
        thread = dragoman("ask", "check my 2 latest emails", "--json").value["thread"]
        assert dragoman("ask", SEND, "--thread", thread).code == 3
        with at_terminal("chat", "--last") as chat:
            shown = chat.until("other words › ")
            assert "check my 2 latest emails" in shown
            assert "2 emails" in shown
            chat.type("1\n\n\n\n\n")
            chat.until("n no › ")
            chat.type("n\n")
            refused = chat.until(PROMPT)
            assert "✗ Send an e-mail" in refused
            chat.press_end()
            assert chat.wait() == 0
        assert "bob@example.com" not in sent_emails(tmp_path)


def test_interrupted_twice_ask_leaves_the_run_as_it_is(dragoman: Command, tmp_path: Path) -> None:
    with running_service() as service:
        add_email(dragoman, tmp_path)
        with at_terminal("ask", SEND) as asked:
            asked.until("other words › ")
            os.kill(service.pid, signal.SIGSTOP)  # a service that is slow to stop it
            try:
                asked.press_interrupt()
                asked.until("stopping")
                asked.press_interrupt()
                asked.until("dragoman runs follow")
                assert asked.wait() == 3
            finally:
                os.kill(service.pid, signal.SIGCONT)


def test_delegations_are_set_in_under_the_name_of_who_works(
    dragoman: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_typing = threading.Event()

    async def script(turn: Turn) -> Reply:
        if "query_mcp_connector" in turn.tools:
            if turn.number > 1:
                return Reply(text="# All\n\nBoth **answered**:\n\n- mail\n- issues")
            jobs = {"email": "what came?", "tracker": "what is open?"}
            calls = [
                Call("query_mcp_connector", {"connector_id": name, "query": job})
                for name, job in jobs.items()
            ]
            return Reply(text="Let me look.", tool_calls=tuple(calls))
        tool = next(one for one in turn.tools if one.endswith(("read-emails", "list_issues")))
        if not turn.fresh:
            return Reply(tool_calls=(Call(tool, {}),))
        await asyncio.to_thread(seen_typing.wait, patient(60))
        return Reply(text=f"done by {tool}")

    monkeypatch.setenv("USE_MCP_AGENTS", "true")
    with scripted(script, monkeypatch), running_service():
        add_email(dragoman, tmp_path)
        add_tracker(dragoman, tmp_path)
        with at_terminal("chat") as chat:
            assert "answers with openai-chat:gpt-5" in chat.until(PROMPT)
            chat.type("what is new?\n")
            chat.until("assistant › email is typing")
            seen_typing.set()
            chat.until(" tokens · $")
            chat.until(PROMPT)
            chat.type("@email @tracker and you?\n")
            chat.until(" tokens · $")
            chat.until(PROMPT)
            chat.type("/quit\n")
            assert chat.wait() == 0
            seen = chat.screen
        for line in (
            "\nassistant\nLet me look.\n→ @email what came?\n→ @tracker what is open?\n",
            "\n  email → Read e-mails {}\n",
            "\n  tracker → List issues {}\n",
            "\n  email ✓ done by mcp_email_read-emails\n",
            "\nBoth answered:\n",
            "\n • mail\n • issues\n",
            "\nemail → Read e-mails {}\n",
            "\nemail\ndone by mcp_email_read-emails\n",
        ):
            assert line in seen, f"{line!r} is not in\n{seen}"
        assert seen.count("Both answered") == 1
