"""`dragoman ask`, `runs`, `questions` and `models`: alone and with a service, with the offline model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Command, dragoman_process, errors_of, output_of, running_service
from samples_by_command import add_email, add_tracker, sent_emails
from scripted_by_command import scripted, sending

from patience import patient
from servers.scenarios import Reply, Turn

pytestmark = pytest.mark.slow

SEND = "send an email to bob@example.com"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_MODEL", "offline")


def test_an_answer_goes_to_stdout_and_what_was_done_to_stderr(dragoman: Command, tmp_path: Path) -> None:
    add_email(dragoman, tmp_path)
    asked = dragoman("ask", "check my 2 latest emails")
    assert asked.code == 0
    assert "2 emails" in asked.out
    assert "→" not in asked.out
    assert "→ Read e-mails {limit: 2}" in asked.err
    assert "✓ Read e-mails" in asked.err
    assert "offline · 2 requests, 1 call" in asked.err
    assert "\x1b" not in asked.out + asked.err

    quiet = dragoman("ask", "--quiet", "check my 2 latest emails")
    assert (quiet.code, quiet.err) == (0, "")
    assert quiet.out == asked.out

    run = dragoman("ask", "check my 2 latest emails", "--json").value
    assert (run["status"], run["agent"], run["usage"]["calls"]) == ("done", "assistant", 1)
    assert run["answer"].strip() == asked.out.strip()


def test_a_service_answers_the_same_and_its_runs_can_be_looked_at(dragoman: Command, tmp_path: Path) -> None:
    with running_service():
        none = dragoman("runs", "show")
        assert (none.code, "hint: begin one: dragoman ask" in none.err) == (1, True)
        add_email(dragoman, tmp_path)
        run = dragoman("ask", "check my 2 latest emails", "--json").value
        again = dragoman("ask", "and the latest email?", "--thread", run["thread"], "--json").value
        assert again["thread"] == run["thread"]
        listed = dragoman("runs", "list", "--json").value["runs"]
        assert [one["id"] for one in listed] == [again["id"], run["id"]]
        assert "check my 2 latest emails" in dragoman("runs", "list").out
        shown = dragoman("runs", "show", run["id"]).out
        for fact in (
            "@assistant",
            "● done",
            "functions offered",
            "mcp_email_read-emails",
            "offline wants",
            "sent {limit: 2}",
            "came back",
            "2 requests, 1 call",
        ):
            assert fact in shown
        kinds = [step["kind"] for step in dragoman("runs", "show", run["id"], "--json").value["steps"]]
        assert kinds == ["started", "offered", "model", "call", "model", "finished"]
        prompts = dragoman("runs", "show", run["id"], "--prompts").out
        for part in (
            "━━ @assistant",
            "── instructions\nYou are the assistant",
            "── call mcp_email_read-emails",
        ):
            assert part in prompts
        assert "[c1] email.read-emails" in dragoman("ask", "@email check my 2 latest emails").err
        followed = dragoman("runs", "follow", run["id"])
        assert (followed.code, "2 emails" in followed.out) == (0, True)
        assert "✓ Read e-mails" in followed.err
        over = dragoman("runs", "cancel", run["id"])
        assert (over.code, "has ended already" in over.err, "hint: " in over.err) == (1, True, True)
        latest = dragoman("runs", "list", "--json").value["runs"][0]["id"]
        assert dragoman("runs", "show", "--json").value["run"]["id"] == latest
        missing = dragoman("runs", "show", "run_nothing")
        assert (missing.code, "there is no run" in missing.err) == (1, True)


def test_where_nobody_can_be_asked_it_says_how_to_answer(
    dragoman: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted(sending, monkeypatch), running_service():
        add_email(dragoman, tmp_path)
        asked = dragoman("ask", SEND)
        assert (asked.code, asked.out) == (3, "")
        approval = dragoman("approvals", "list", "--json").value["approvals"][0]["id"]
        assert "assistant wants to call mcp_email_send-email" in asked.err
        assert "bob@example.com" in asked.err
        assert f"dragoman approvals answer {approval} once|thread|always|no" in asked.err
        run = dragoman("runs", "list", "--json").value["runs"][0]["id"]
        assert f"dragoman runs follow {run}" in asked.err
        waits = dragoman("runs", "follow", run, "--json")
        assert waits.code == 3
        assert [one["id"] for one in waits.value["waits_for"]] == [approval]
        assert "bob@example.com" not in sent_emails(tmp_path)

        assert dragoman("approvals", "answer", approval, "once").code == 0
        done = dragoman("runs", "follow", run)
        assert (done.code, "is done" in done.out) == (0, True)
        assert "bob@example.com" in sent_emails(tmp_path)


def test_a_question_is_listed_and_answered(dragoman: Command, tmp_path: Path) -> None:
    with running_service():
        add_email(dragoman, tmp_path)
        asked = dragoman("ask", "send an email")
        assert asked.code == 3
        question = dragoman("questions", "list", "--json").value["questions"][0]
        assert f"dragoman questions answer {question['id']}" in asked.err
        assert "assistant asks: " in asked.err
        assert question["id"] in dragoman("questions", "list").out
        assert "Send an e-mail" in dragoman("questions", "list").out
        wrong = dragoman("questions", "answer", question["id"], "1", "to=nobody")
        assert (wrong.code, "error: " in wrong.err) == (1, True)
        answered = dragoman("questions", "answer", question["id"], "1", "to=bob@example.com", "subject=Tea")
        assert (answered.code, f"dragoman runs follow {question['root']}" in answered.err) == (0, True)
        assert dragoman("questions", "answer", question["id"], "again").code == 1
        waits = dragoman("runs", "follow", question["root"], "--json").value["waits_for"]
        assert [one["arguments"] for one in waits] == [{"to": "bob@example.com", "subject": "Tea"}]
        stopped = dragoman("runs", "cancel", question["root"], "--yes")
        assert (stopped.code, "is stopped" in stopped.err) == (0, True)
        assert dragoman("runs", "follow", question["root"]).code == 130
        assert dragoman("questions", "list").err == "note: no question waits\n"


def test_who_waits_goes_on_with_a_service_that_was_killed(
    dragoman: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command follows the run over it, and tells nothing twice."""
    with scripted(sending, monkeypatch), running_service() as service:
        add_email(dragoman, tmp_path)
        port = service.url.rpartition(":")[2]
        with dragoman_process("ask", SEND, "--wait") as waiting:
            assert "→ Send an e-mail" in errors_of(waiting).readline()
            while not (found := dragoman("approvals", "list", "--json").value["approvals"]):
                pass
            service.process.kill()
            service.process.wait()
            with dragoman_process("serve", "--port", port, "--json") as again:
                assert output_of(again).readline()
                assert dragoman("approvals", "answer", found[0]["id"], "once").code == 0
                assert waiting.wait(patient(120)) == 0
                assert output_of(waiting).read().count("is done") == 1
                assert errors_of(waiting).read().count("✓ Send an e-mail") == 1


def test_a_connector_is_asked_by_its_own_agent(dragoman: Command, tmp_path: Path) -> None:
    with running_service():
        add_tracker(dragoman, tmp_path)
        asked = dragoman("ask", "--connector", "tracker", "list open issues")
        assert (asked.code, "issues" in asked.out) == (0, True)
        assert "→ List issues {state: open}" in asked.err
        assert "[c1] tracker.list_issues" in asked.err
        answer = dragoman("ask", "--connector", "tracker", "list open issues", "--json").value
        assert (answer["status"], answer["metadata"]["connector_name"]) == ("success", "tracker")
        unknown = dragoman("ask", "--connector", "trackr", "list open issues", "--json")
        assert (unknown.code, unknown.value["error"]["code"]) == (1, "CONNECTOR_NOT_FOUND")
        planned = dragoman("ask", "--connector", "tracker", "list open issues", "--plan-only")
        assert planned.code == 0
        assert "✓ List issues" not in planned.err


def test_what_cannot_be_asked_is_refused_with_a_hint(
    dragoman: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    cases = [
        (["x", "--plan-only"], 2, "--connector"),
        (["x", "--connector", "a", "--agent", "b"], 2, "--agent"),
        ([" "], 1, "the message is empty"),
        (["x", "--thread", "thr_nothing"], 1, "thr_nothing"),
        (["x", "--agent", "nobody"], 1, "there is no agent 'nobody'"),
        (["x", "--exposure", "sideways"], 1, "exposure"),
        (["x", "--model", "openai:gpt-5"], 1, "OPENAI_API_KEY"),
    ]
    with running_service():
        for words, code, expected in cases:
            refused = dragoman("ask", *words)
            assert (refused.code, refused.out) == (code, ""), words
            assert refused.err.startswith("error: ")
            assert expected in refused.err


def test_models_are_shown_with_why_not(dragoman: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with running_service():
        shown = dragoman("models")
        assert "offline (default)" in shown.out
        assert "ANTHROPIC_API_KEY is not set" in shown.out
        assert "dragoman models add openai" in shown.err
        assert any(one["is_default"] for one in dragoman("models", "--json").value["models"])


def test_commands_that_ask_no_model_do_not_import_pydantic_ai(home: Path) -> None:
    program = """
import sys
from dragoman.cli.root import run
for words in (["tools", "list"], ["agents", "list"], ["runs", "list"], ["questions", "list"]):
    assert run([*words, "--json"]) == 0, words
assert "fastapi" in sys.modules  # the whole stack was here
sys.exit("pydantic_ai" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_agents_from_creation_to_removal(dragoman: Command, tmp_path: Path) -> None:
    with running_service():
        add_email(dragoman, tmp_path)
        add_tracker(dragoman, tmp_path)
        made = dragoman("agents", "create", "mailer", "email", "--description", "reads mail", "--json").value
        assert (made["kind"], made["status"], made["connectors"]) == ("worker", "active", ["email"])
        assert "mailer" in dragoman("agents", "list").out
        given = dragoman("agents", "assign", "@mailer", "tracker")
        assert (given.code, given.err) == (0, "note: mailer has now: email, tracker\n")
        assert dragoman("agents", "unassign", "mailer", "tracker").err == "note: mailer has now: email\n"
        changed = dragoman("agents", "update", "mailer", "--instructions", "Be brief.", "--json").value
        assert changed["instructions"] == "Be brief."
        assert dragoman("agents", "update", "mailer").code == 2
        assert "Be brief." in dragoman("agents", "show", "mailer").out

        assert "mailer is stopped" in dragoman("agents", "stop", "mailer").err
        told = dragoman("ask", "@mailer check my 2 latest emails")
        assert (told.code, "@mailer is stopped" in told.err) == (1, True)
        assert "hint: dragoman agents start mailer, or write without @" in told.err
        told = dragoman("ask", "@maler check my 2 latest emails")
        assert (told.code, "there is no agent 'maler'" in told.err) == (1, True)
        assert "did you mean" in told.err
        assert "mailer is at work" in dragoman("agents", "start", "mailer").err
        told = dragoman("ask", "@mailer check my 2 latest emails")
        assert (told.code, "2 emails" in told.out) == (0, True)

        taken = dragoman("agents", "create", "mailer")
        assert (taken.code, "already" in taken.err) == (1, True)
        kept = dragoman("agents", "remove", "mailer")
        assert (kept.code, "hint: say yes with --yes" in kept.err) == (1, True)
        assert dragoman("agents", "remove", "mailer", "--yes").code == 0
        gone = dragoman("agents", "show", "mailer", "--json")
        assert (gone.code, gone.value["code"]) == (1, "not_found")
        assert json.loads(dragoman("agents", "list", "--json").out)["agents"][0]["name"] == "assistant"


def test_files_go_with_a_message_by_option_or_by_path_and_pipes_name_none(
    dragoman: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("the word is heron")
    (tmp_path / "more.md").write_text("and kestrel")
    monkeypatch.chdir(tmp_path)

    def words(turn: Turn) -> Reply:
        heard = json.dumps(turn.request["messages"])
        return Reply(text=" ".join(word for word in ("heron", "kestrel") if word in heard) or "nothing")

    with scripted(words, monkeypatch):
        assert (
            dragoman("ask", "--quiet", "@notes.txt, what is in it?", "--attach", "more.md").out
            == "heron kestrel\n"
        )
        with dragoman_process("ask", "--quiet", "-", stdin=subprocess.PIPE) as piped:
            assert "nothing" in piped.communicate("what is in @./notes.txt?", timeout=patient(60))[0]
        (tmp_path / ".secret").write_text("heron")
        (tmp_path / "linked").symlink_to(tmp_path / ".secret")
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")
        long = "@" + "a/" * 3_000
        for text in (
            f"@{tmp_path}/notes.txt",
            "see @../notes.txt",
            "see @../.secret",
            "see @../linked",
            f"{long} x",
        ):
            assert "nothing" in dragoman("ask", "--quiet", f"so, {text}").out, text
        monkeypatch.chdir(tmp_path)
        for text in ("see @.secret", "see @./.secret", "see @./linked"):
            assert "nothing" in dragoman("ask", "--quiet", text).out, text
        assert "attached: notes.txt" in dragoman("ask", "see @notes.txt").err
        missing = dragoman("ask", "look", "--attach", "gone.txt")
        assert (missing.code, "gone.txt" in missing.err) == (2, True)
        binary = tmp_path / "a.pdf"
        binary.write_bytes(b"%PDF\xff")
        refused = dragoman("ask", "look at @a.pdf")
        assert (refused.code, "neither text in UTF-8 nor an image" in refused.err) == (1, True)
