"""What one run may use, and what comes of one whose model or time fails it: clear words, a usable thread."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dragoman import Hub
from dragoman.run import Run, RunEvent, RunEventKind, RunLimits
from dragoman.store import open_store
from dragoman.store.records import JournalBatch
from patience import give_time, patient
from runs.scripted import by_request, model_of, open_scripted, result_of
from servers.hubs import until

pytestmark = pytest.mark.anyio
LOOPS = model_of(*[("native_look", {"text": f"{turn}"}) for turn in range(20)])


async def ended(hub: Hub, text: str, limits: RunLimits) -> Run:
    accepted = await hub.messages.post(text, limits=limits)
    return await hub.runs.finished(accepted.run)


def add_look(hub: Hub) -> None:
    from dragoman.tool import Annotations

    @hub.tool(annotations=Annotations(read_only=True))
    async def native_look(text: str) -> str:
        return f"saw {text}"


async def test_requests_tokens_and_money_have_their_ends(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, LOOPS) as hub:
        add_look(hub)
        run = await ended(hub, "go", RunLimits(requests=3))
        assert run.error is not None
        assert (run.status, run.error.code) == ("failed", "limit_reached")
        assert run.error.message == "the run has used its 3 requests to the model"
        assert run.usage.requests == 3
        run = await ended(hub, "go", RunLimits(tokens=60))
        assert run.error is not None
        assert run.error.message == "the run has used its 60 tokens"
        run = await ended(hub, "go", RunLimits(cost=0.0))
        assert run.error is not None
        assert run.error.message == "the run has used its 0 dollars"
        said = await hub.messages.list(run.thread)
        assert said[-1].author == "system"
        assert said[-1].text.startswith("the run has used its 0 dollars. ask for less")


async def test_the_usual_limits_are_those_of_the_settings_and_said_in_plain_words(tmp_path: Path) -> None:
    assert RunLimits() == RunLimits(requests=50, calls=50, tokens=200_000, cost=None, seconds=900.0)
    many = model_of(*[[("native_look", {"text": f"{turn} {at}"}) for at in range(3)] for turn in range(3)])
    settings: dict[str, Any] = {"run_calls": 4, "run_tokens": 5_000, "run_minutes": 2.0}
    async with open_scripted(tmp_path, by_request(many=many, talk=model_of("hello")), **settings) as hub:
        add_look(hub)
        assert hub.messages.usual_limits == RunLimits(calls=4, tokens=5_000, seconds=120.0)
        run = await hub.ask("many")
        assert (run.status, run.usage.calls) == ("done", 4)
        events = (await hub.runs.view(run.id)).events
        (notice,) = [event.data["text"] for event in events if event.kind == "notice"]
        assert notice.startswith("the run has made its 4 calls and answers with what it has: ask for less")
        assert notice.endswith('write "continue": it goes on with as much again')


async def test_continue_goes_on_with_as_much_again_and_with_what_was_found(tmp_path: Path) -> None:
    """A person who writes so has a new run, which knows what the one before did."""

    async def count(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        results = [part for one in messages for part in one.parts if part.part_kind == "tool-return"]
        yield f"I have seen {len(results)}"

    models = {"go": LOOPS, "continue": FunctionModel(stream_function=count)}
    async with open_scripted(tmp_path, by_request(**models)) as hub:
        add_look(hub)
        run = await ended(hub, "go", RunLimits(requests=4))
        assert run.error is not None
        assert 'write "continue"' in (run.error.command_hint or "")
        run = await hub.ask("continue", thread=run.thread)
        assert (run.status, run.answer) == ("done", "I have seen 4")
        assert run.limits == hub.messages.usual_limits


async def test_no_more_calls_are_made_than_allowed_not_even_at_once(tmp_path: Path) -> None:
    three = model_of([("native_look", {"text": f"{number}"}) for number in range(3)])
    async with open_scripted(tmp_path, three) as hub:
        add_look(hub)
        run = await ended(hub, "go", RunLimits(calls=2))
        assert run.status == "done"
        assert run.answer is not None
        assert run.answer.count("saw") == 2
        assert "has made its 2 calls (failed: limit_reached)." in run.answer
        assert "Answer with what you have" in run.answer
        assert run.usage.calls == 2


async def test_work_has_an_end_and_waiting_is_no_work(tmp_path: Path) -> None:
    slow = model_of(("slowly", {}))
    waits = model_of(("ask_person", {"question": "Which?"}))
    async with open_scripted(tmp_path, by_request(slow=slow, wait=waits)) as hub:

        @hub.tool(annotations=_reads())
        async def slowly() -> str:
            await asyncio.sleep(30)
            return "late"

        run = await ended(hub, "slow", RunLimits(seconds=0.5))
        assert run.error is not None
        assert run.error.message == "the run has worked its 0.5 seconds"
        run = (await hub.messages.post("wait", limits=RunLimits(seconds=patient(1.5)))).run
        await until(lambda: _has_question(hub), within=10)
        await give_time(1.8)
        (question,) = await hub.runs.questions()
        await hub.runs.answer(question.id, "the first")
        assert (await hub.runs.finished(run)).answer == '["the first"]'


async def test_what_goes_wrong_with_a_model_is_told_in_the_thread(tmp_path: Path) -> None:
    async def down(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        yield "I begin "
        raise ModelHTTPError(503, "some-model", {"error": "overloaded"})

    async def broken(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        raise ZeroDivisionError("a secret detail")
        yield ""

    garbage = model_of(*[("no_such_tool", {}) for _ in range(9)])
    model = by_request(
        down=FunctionModel(stream_function=down),
        broken=FunctionModel(stream_function=broken),
        garbage=garbage,
        talk=model_of("hello"),
    )
    async with open_scripted(tmp_path, model) as hub:
        thread = None
        for word in ("down", "broken", "garbage"):
            run = await hub.ask(word, thread=thread)
            thread = run.thread
            assert run.status == "failed", word
            assert run.error is not None
            last = (await hub.messages.list(thread))[-1]
            assert last.author == "system"
            assert last.text.startswith(run.error.message)
            assert "a secret detail" not in last.text
        assert (await hub.ask("talk", thread=thread)).answer == "hello"


async def test_a_model_that_names_two_calls_alike_gets_both_results(tmp_path: Path) -> None:
    from pydantic_ai.models.function import DeltaToolCall

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if len(messages) == 1:
            for place, text in enumerate("ab"):
                arguments = f'{{"text": "{text}"}}'
                yield {place: DeltaToolCall("native_look", arguments, tool_call_id="same")}
            return
        parts = [part for part in messages[-1].parts if part.part_kind == "tool-return"]
        yield " ".join(f"{part.tool_call_id}={result_of(part.content)}" for part in parts)

    async with open_scripted(tmp_path, FunctionModel(stream_function=answer)) as hub:
        add_look(hub)
        assert (await hub.ask("go")).answer == "same=saw a same_2=saw b"


async def _has_question(hub: Hub) -> bool:
    return bool(await hub.runs.questions())


def _reads() -> Any:
    from dragoman.tool import Annotations

    return Annotations(read_only=True)


async def test_time_of_work_counts_on_when_a_run_is_taken_up_again_and_waiting_does_not(
    tmp_path: Path, database_url: str
) -> None:
    async def stuck(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        yield "I begin"
        await asyncio.Event().wait()

    def later(event: RunEvent, kind: RunEventKind, number: int, minutes: int) -> RunEvent:
        time = event.time + timedelta(minutes=minutes)
        return replace(event, kind=kind, number=event.number + number, time=time, data={})

    waited: list[tuple[RunEventKind, int]] = [("run.waiting", 1), ("run.continued", 61), ("notice", 74)]
    worked: list[tuple[RunEventKind, int]] = [("notice", 14), ("notice", 16)]
    left: list[Run] = []
    async with open_scripted(tmp_path, FunctionModel(stream_function=stuck), database_url) as hub:
        for text in ("waited", "worked"):
            left.append((await hub.messages.post(text)).run)
            async for event in hub.runs.follow(left[-1].id):
                if event.kind == "text":
                    break
    async with open_store(database_url) as store:
        for run, told in zip(left, (waited, worked), strict=True):
            last = (await store.runs.events(run.workspace, run.id))[-1]
            events = [later(last, kind, at, minutes) for at, (kind, minutes) in enumerate(told, 1)]
            await store.runs.write(JournalBatch(events=events))
    async with open_scripted(tmp_path, model_of("all of it"), database_url) as hub:
        one, other = [await hub.runs.finished(run) for run in left]
        assert (one.status, one.answer) == ("done", "all of it"), one.error
        assert other.error is not None
        assert (other.error.code, other.error.message) == (
            "limit_reached",
            "the run has worked its 15 minutes",
        )
