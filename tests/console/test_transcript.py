"""Turns as they are put together from events: pure, so without a browser."""

from typing import Any

from dragoman.console.transcript import CallBlock, turn_of
from dragoman.run import Run, RunEvent
from dragoman.run_progress import SpokenText

ROOT = Run(id="run_a", root="run_a", workspace="w", user="u", thread="t", agent="assistant", request="do it")


def told(*happened: tuple[str, dict[str, Any]], run: str = "run_a", after: int = 0) -> list[RunEvent]:
    return [
        RunEvent(workspace="w", root="run_a", run=run, agent="assistant", kind=kind, number=number, data=data)  # pyright: ignore[reportArgumentType]
        for number, (kind, data) in enumerate(happened, after + 1)
    ]


def words(text: str, turn: int = 1) -> tuple[str, dict[str, Any]]:
    return "text", {"delta": text, "turn": turn}


def texts(*events: RunEvent) -> list[str]:
    (work,) = turn_of(ROOT, events).works
    return [piece.text for piece in work.pieces if isinstance(piece, SpokenText)]


def test_words_of_one_turn_are_one_piece() -> None:
    assert texts(*told(("run.started", {}), words("one "), words("two"), words("three", 2))) == [
        "one two",
        "three",
    ]


def test_what_was_discarded_is_gone_and_what_was_said_before_stays() -> None:
    events = told(words("kept"), words("void", 2), ("run.resumed", {}), ("text.discarded", {"turn": 2}))
    assert texts(*events, *told(words("anew", 2), after=4)) == ["kept", "anew"]


def test_the_answer_counts_and_not_how_it_was_streamed() -> None:
    finished = ("run.finished", {"status": "done", "answer": "as kept", "usage": {"cost": 0.5}})
    turn = turn_of(ROOT, told(("run.started", {}), words("as streamed"), finished))
    assert (turn.answer, turn.state, turn.usage["cost"], turn.number) == ("as kept", "done", 0.5, 3)
    assert texts(*told(words("as streamed"), finished)) == ["as kept"]


def test_a_call_that_was_under_way_at_the_end_was_cancelled() -> None:
    begun = ("call.started", {"call": "t1:x", "tool": "look", "title": "Look", "arguments": {"a": 1}})
    (work,) = turn_of(ROOT, told(begun, ("run.finished", {"status": "cancelled"}))).works
    (call,) = work.pieces
    assert isinstance(call, CallBlock)
    assert (call.status, call.title, call.arguments) == ("cancelled", "Look", '{\n  "a": 1\n}')


def test_a_run_under_a_call_is_nested_in_it() -> None:
    begun = ("call.started", {"call": "f1:x", "tool": "ask_agent", "title": "Ask an agent"})
    child = ("run.started", {"parent": "run_a", "call": "f1:x", "request": "look"})
    events = [*told(begun), *told(child, words("below"), run="run_b", after=1)]
    turn = turn_of(ROOT, events)
    (call,) = turn.works[0].pieces
    assert isinstance(call, CallBlock)
    assert [(work.run, work.request) for work in call.works] == [("run_b", "look")]
    assert [work.run for work in turn.everything()] == ["run_a", "run_b"]
