"""The one fold over the events of a run: who works, what was called, said and asked. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Any

from dragoman.run import Run, RunEvent
from dragoman.run_progress import RunTree, SpokenText, StatedPlan
from dragoman.runs.timeline import timeline_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def tree_of(*happened: tuple[Any, ...]) -> RunTree:
    return RunTree.of(events(*happened))


def events(*happened: tuple[Any, ...]) -> list[RunEvent]:
    return [
        RunEvent(
            workspace="w",
            root="r",
            run=run,
            kind=kind,
            number=number,
            agent="assistant",
            data=data,
            time=START + timedelta(seconds=number),
        )
        for number, (kind, run, data) in enumerate(happened, 1)
    ]


def started(run: str = "r", **data: Any) -> tuple[Any, ...]:
    return "run.started", run, data


def call(key: str, tool: str = "look", run: str = "r") -> tuple[Any, ...]:
    return "call.started", run, {"call": key, "tool": tool, "title": tool, "arguments": {}}


def test_an_approval_that_is_answered_is_the_one_that_the_event_names() -> None:
    asked = [("approval.requested", "r", {"approval": name, "call": key}) for name, key in ("a1", "b2")]
    tree = tree_of(started(), call("1"), call("2"), *asked, ("approval.answered", "r", {"approval": "b"}))
    assert [(ask.id, ask.is_open) for ask in tree.runs["r"].asks()] == [("a", True), ("b", False)]


def test_after_an_interruption_calls_and_approvals_come_again_and_a_question_stays() -> None:
    before = [
        started(),
        call("1"),
        ("approval.requested", "r", {"approval": "a", "call": "1"}),
        ("question.asked", "r", {"question": "q", "text": "which?"}),
        ("run.resumed", "r", {}),
    ]
    run = tree_of(*before).runs["r"]
    assert [(ask.id, ask.is_open) for ask in run.asks()] == [("a", False), ("q", True)]
    assert [(one.status, one.is_open) for one in run.calls()] == [("running", False)]
    again = [call("1"), ("approval.requested", "r", {"approval": "a", "call": "1"}), before[3]]
    run = tree_of(*before, *again).runs["r"]
    assert [(ask.id, ask.is_open) for ask in run.asks()] == [("a", True), ("q", True)]
    assert [(one.attempts, one.is_open) for one in run.calls()] == [(2, True)]


def test_who_was_asked_by_a_run_that_ended_is_waited_for_no_longer() -> None:
    asked = ("question.asked", "m", {"question": "q"})
    child = [started(), call("1", "ask_agent"), started("m", parent="r", call="1"), call("2", run="m"), asked]
    assert tree_of(*child).is_waiting
    assert not tree_of(*child, ("run.finished", "m", {"status": "cancelled"})).is_waiting


def test_a_call_ends_as_its_event_says_or_with_its_run() -> None:
    def ended(key: str, **data: Any) -> tuple[Any, ...]:
        return "call.finished", "r", {"call": key, "tool": "look", **data}

    tree = tree_of(
        started(),
        *(call(key) for key in "1234"),
        ended("1", ok=True, preview="seen"),
        ended("2", ok=False, code="uncertain"),
        ended("3", ok=False, code="timeout"),
        ("run.finished", "r", {"status": "failed", "error": {"message": "no"}}),
    )
    run = tree.runs["r"]
    assert [one.status for one in run.calls()] == ["done", "uncertain", "failed", "cancelled"]
    assert [one.facts.get("preview") for one in run.calls()] == ["seen", None, None, None]
    assert (run.status, run.error["message"], run.milliseconds) == ("failed", "no", 8000.0)


def test_the_timeline_tells_every_plan_and_how_long_a_person_was_waited_for() -> None:
    run = Run(id="r", root="r", workspace="w", user="u", thread="t", agent="assistant", request="do it")
    happened = events(
        started(request="do it"),
        ("plan.stated", "r", {"steps": [{"tool": "look"}]}),
        ("plan.stated", "r", {"steps": []}),
        ("question.asked", "r", {"question": "q", "text": "which?"}),
        ("question.answered", "r", {"question": "q"}),
        ("approval.requested", "r", {"approval": "a"}),
    )
    moments = timeline_of(run, [run], {}, happened).moments
    assert [(moment.kind, moment.title) for moment in moments] == [
        ("started", "@assistant begins"),
        ("plan", "plans 1 steps"),
        ("plan", "plans 0 steps"),
        ("question", "asks: which?"),
        ("approval", "waits for an approval"),
    ]
    assert (moments[3].details["status"], moments[3].details["waited_ms"]) == ("answered", 1000.0)
    assert moments[4].details["status"] == "pending"


def test_pieces_stand_in_the_order_in_which_they_came() -> None:
    tree = tree_of(
        started(),
        ("text", "r", {"delta": "I ", "turn": 1}),
        ("text", "r", {"delta": "plan", "turn": 1}),
        ("plan.stated", "r", {"steps": ["one"]}),
        ("text", "r", {"delta": "done", "turn": 2}),
        ("run.finished", "r", {"status": "done", "answer": "Done."}),
    )
    first, plan, last = tree.runs["r"].pieces
    assert isinstance(first, SpokenText)
    assert isinstance(plan, StatedPlan)
    assert isinstance(last, SpokenText)
    assert (first.text, plan.steps, last.text) == ("I plan", ["one"], "Done.")
