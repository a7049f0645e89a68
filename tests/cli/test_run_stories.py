"""What the events of a run are made of for a person: who is at work, blocks of text, brief values."""

from typing import Any

from dragoman.cli.live_run import at_work
from dragoman.cli.run_lines import brief, spent, usage_line
from dragoman.cli.transcript import split_blocks
from dragoman.run import RunEvent
from dragoman.run_progress import RunTree


def event(kind: Any, run: str, agent: str = "", **data: Any) -> RunEvent:
    return RunEvent(workspace="w", kind=kind, run=run, root="r", number=1, agent=agent, data=data)


def call(run: str, key: str, tool: str = "look") -> RunEvent:
    return event("call.started", run, call=key, tool=tool, title=tool)


def test_exactly_those_at_work_are_shown() -> None:
    work = RunTree()
    work.hear(event("run.started", "r", "assistant"))
    assert at_work(work) == "assistant is typing"
    work.hear(call("r", "c1", "ask_agent"))
    work.hear(event("run.started", "m", "mailer", parent="r", call="c1"))
    assert at_work(work) == "assistant › mailer is typing"
    work.hear(call("m", "c1", "read_mail"))
    assert at_work(work) == "assistant › mailer runs Read mail"
    assert (work.depth("r"), work.depth("m")) == (0, 1)
    work.hear(event("run.finished", "m"))
    work.hear(event("call.finished", "r", call="c1"))
    assert at_work(work) == "assistant is typing"
    work.hear(event("run.finished", "r"))
    assert at_work(work) == ""


def test_a_message_to_several_is_nobodys_work() -> None:
    work = RunTree()
    work.hear(event("run.started", "r"))
    assert at_work(work) == ""
    work.hear(event("run.started", "a", "mailer", parent="r", call="mention:mailer"))
    work.hear(event("run.started", "b", "tracker", parent="r", call="mention:tracker"))
    assert at_work(work) == "mailer is typing · tracker is typing"
    assert work.depth("a") == 0


def test_nothing_but_waiting_means_that_no_call_is_under_way() -> None:
    work = RunTree()
    work.hear(event("run.started", "r", "assistant"))
    work.hear(call("r", "c1"))
    work.hear(call("r", "c2"))
    work.hear(event("approval.requested", "r", approval="apr"))
    assert not work.is_waiting
    work.hear(event("call.finished", "r", call="c2"))
    assert work.is_waiting
    assert at_work(work) == "assistant waits for you"
    work.hear(event("approval.answered", "r", approval="apr"))
    assert not work.is_waiting


def test_waiting_is_seen_through_a_delegation() -> None:
    work = RunTree()
    work.hear(event("run.started", "r", "assistant"))
    work.hear(call("r", "c1", "ask_agent"))
    work.hear(event("run.started", "m", "mailer", parent="r", call="c1"))
    work.hear(call("m", "c9", "ask_person"))
    work.hear(event("question.asked", "m", question="q"))
    assert work.is_waiting
    assert at_work(work) == "assistant › mailer waits for you"


def test_blocks_end_at_blank_lines_outside_of_code() -> None:
    assert split_blocks("one\n\ntwo") == ("one\n\n", "two")
    assert split_blocks("one\ntwo") == ("", "one\ntwo")
    assert split_blocks("```\na\n\nb\n") == ("", "```\na\n\nb\n")
    assert split_blocks("x\n\n```\na\n\nb\n```\n\nrest") == ("x\n\n```\na\n\nb\n```\n\n", "rest")
    assert split_blocks("one\n\ntwo\n\n") == ("one\n\ntwo\n\n", "")


def test_values_are_written_briefly_and_never_ambiguously() -> None:
    assert brief({"limit": 2, "to": "ada", "tags": ["a", "b"]}) == "{limit: 2, to: ada, tags: [a, b]}"
    assert brief({"text": "a, b: c", "none": None, "empty": ""}) == '{text: "a, b: c", none: null, empty: ""}'
    assert brief("as it is") == "as it is"


def test_only_what_was_used_is_told() -> None:
    usage = {"requests": 1, "calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0, "tokens_saved": 0}
    assert usage_line({"model": "offline", "usage": usage}) == "offline · 1 request"
    more = usage | {"calls": 2, "input_tokens": 1200, "output_tokens": 8, "cost": 0.01, "tokens_saved": 900}
    assert usage_line({"model": "m", "usage": more}, 1.25) == (
        "m · 1 request, 2 calls · 1,200 + 8 tokens · $0.0100 · 900 tokens saved · 1.2 s"
    )
    assert usage_line({"model": None, "usage": usage | {"requests": 0}}) == ""


def test_a_price_that_nobody_knows_is_no_price_of_nothing() -> None:
    given = [(0.0, 0), (0.5, 0), (0.5, 2), (0.0, 2)]
    said = [spent({"cost": cost, "unpriced": unpriced}) for cost, unpriced in given]
    assert said == ["$0.0000", "$0.5000", "over $0.5000", "unknown"]
