"""Models that keep silent, break off or are cut: a notice, the next model, and else a clear end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.run import Run
from dragoman.settings import Settings
from patience import patient
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import CLAUDE, MODEL, RESPONSES, calls, open_scripted, scripted
from servers.scripted_models import ScriptedServer

pytestmark = pytest.mark.anyio
LONG = "one two three four five six seven eight"
SILENT = patient(20)
QUICK: dict[str, Any] = {"model_first_token": patient(0.6), "model_stall": patient(0.6)}


@asynccontextmanager
async def two_models(
    home: Path, **settings: Any
) -> AsyncGenerator[tuple[Hub, ScriptedServer, ScriptedServer]]:
    """The second steps in for the first."""
    async with (
        scripted(lambda _: Reply(text=LONG)) as first,
        scripted(lambda turn: Reply(text=f"I heard: {turn.user}"), CLAUDE) as second,
        Hub(Settings(home=home, model=f"{MODEL},{CLAUDE}", **settings)) as hub,
    ):
        yield hub, first, second


async def notices(hub: Hub, run: Run) -> list[str]:
    return [event.data["text"] for event in (await hub.runs.view(run.id)).events if event.kind == "notice"]


FAULTS = (
    (f"{MODEL} did not begin to answer within", Reply(text=LONG, delay=SILENT)),
    (
        f"{MODEL} stopped in the middle of its answer, and said nothing more for",
        Reply(text=LONG, stall=SILENT),
    ),
    (f"{MODEL} broke off in the middle of its answer", Reply(text=LONG, cut=True)),
    (f"{MODEL} broke off in the middle of its answer", Reply(text=LONG, unfinished=True)),
    (f"the provider has no model {MODEL}", Reply(status=404)),
)


async def test_the_next_model_steps_in_and_a_notice_says_why(tmp_path: Path) -> None:
    async with two_models(tmp_path, **QUICK) as (hub, first, second):
        for message, fault in FAULTS:
            first.plan(fault)
            run = await hub.ask(f"hello {len(second.requests)}")
            assert (run.status, run.answer) == ("done", f"I heard: {run.request}"), message
            (notice,) = await notices(hub, run)
            assert notice.startswith(message)
            assert notice.endswith(f"; {CLAUDE} is asked instead")
            events = (await hub.runs.view(run.id)).events
            kinds = [event.kind for event in events]
            assert kinds.index("text.discarded") < kinds.index("notice")
            titles = [one.title for one in (await hub.runs.timeline(run.id)).moments if one.kind == "notice"]
            assert titles == [notice]


async def test_responses_of_openai_that_do_not_say_why_they_end_are_broken_off(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, lambda _: Reply(text=LONG), model=RESPONSES) as (hub, server):
        run = await hub.ask("hello")
        assert (run.status, run.answer) == ("done", LONG)
        server.plan(Reply(text=LONG, unfinished=True))
        run = await hub.ask("hello again")
        assert (run.status, run.error and run.error.message) == (
            "failed",
            f"{RESPONSES} broke off in the middle of its answer",
        )


async def test_the_next_model_goes_on_with_what_was_done_and_does_nothing_twice(tmp_path: Path) -> None:
    def second(turn: Turn) -> Reply:
        return Reply(text=f"It is {turn.results[-1].value}.")

    async with (
        scripted(lambda _: calls(("look", {}))) as first,
        scripted(second, CLAUDE),
        Hub(Settings(home=tmp_path, model=f"{MODEL},{CLAUDE}", model_stall=patient(0.6))) as hub,
    ):
        looked: list[int] = []

        async def look() -> str:
            """Looks."""
            looked.append(1)
            first.plan(Reply(text=LONG, stall=SILENT))
            return "blue"

        hub.add_tool(look)
        await hub.tools.configure("look", approval="never")
        run = await hub.ask("which colour?")
        assert (run.status, run.answer) == ("done", "It is blue.")
        assert looked == [1]


async def test_when_no_model_answers_each_is_told_and_the_one_worth_waiting_for_speaks(
    tmp_path: Path,
) -> None:
    async with two_models(tmp_path) as (hub, first, second):
        first.plan(Reply(status=401, text="no"))
        # The client itself tries twice more; the last answer says when to come again.
        second.plan(*[Reply(status=429, retry_after=wait) for wait in (0, 0, 3)])
        run = await hub.ask("hello")
        assert run.error is not None
        assert (run.status, run.error.code) == ("failed", "model_rate_limited")
        assert run.error.message.startswith(
            "no model answered: OpenAI refused the key; the provider of anthropic:"
        )
        assert run.error.message.endswith("wants fewer requests")
        assert (run.error.hint or "").startswith("try again in 3 s")


@pytest.mark.parametrize("model", [MODEL, CLAUDE])
async def test_without_another_model_silence_is_a_clear_failure(tmp_path: Path, model: str) -> None:
    async with open_scripted(tmp_path, lambda _: Reply(text=LONG), model=model, **QUICK) as (hub, server):
        server.plan(Reply(text=LONG, delay=SILENT))
        run = await hub.ask("hello")
        assert run.error is not None
        assert (run.status, run.error.code) == ("failed", "model_timeout")
        assert "did not begin to answer within" in run.error.message
        assert "DRAGOMAN_MODEL_FIRST_TOKEN" in (run.error.hint or "")
        server.plan(Reply(text=LONG, stall=SILENT))
        run = await hub.ask("hello", thread=run.thread)
        assert run.error is not None
        assert "stopped in the middle of its answer" in run.error.message
        last = (await hub.messages.list(run.thread))[-1]
        assert (last.author, last.text.startswith(run.error.message)) == ("system", True)
        assert (await hub.ask("hello", thread=run.thread)).answer == LONG


@pytest.mark.parametrize("model", [MODEL, CLAUDE])
async def test_a_stream_that_ends_without_a_reason_is_no_whole_answer(tmp_path: Path, model: str) -> None:
    async with open_scripted(tmp_path, lambda _: Reply(text=LONG, unfinished=True), model=model) as (hub, _):
        run = await hub.ask("hello")
        assert run.error is not None
        assert (run.status, run.error.code, run.answer) == ("failed", "model_unavailable", None)
        assert run.error.message == f"{model} broke off in the middle of its answer"


@pytest.mark.parametrize("model", [MODEL, CLAUDE])
async def test_an_answer_that_is_too_long_is_continued_once_by_itself(tmp_path: Path, model: str) -> None:
    async with open_scripted(tmp_path, lambda _: Reply(text="and five."), model=model) as (hub, server):
        server.plan(Reply(text="Two and two are four, ", too_long=True))
        run = await hub.ask("count")
        assert (run.status, run.answer) == ("done", "Two and two are four, and five.")
        assert run.usage.requests == 2
        assert server.turns[-1].user.startswith("Your answer was cut because it is too long. Go on")
        (notice,) = await notices(hub, run)
        assert notice == f"the answer is longer than {model} may write at once: it is asked to go on"
        last = (await hub.messages.list(run.thread))[-1]
        assert (last.text, last.details["status"]) == (run.answer, "done")


async def test_what_is_cut_all_the_same_says_so_in_text_and_status(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, lambda _: Reply(text="and so on")) as (hub, server):
        server.plan(*[Reply(text=text, too_long=True) for text in ("First this, ", "then that, ")])
        run = await hub.ask("tell me all")
        assert run.error is not None
        assert (run.status, run.error.code) == ("failed", "answer_cut")
        cut = f"[The answer is cut here: it is longer than {MODEL} may write.]"
        assert run.answer == f"First this, then that, \n\n{cut}"
        last = (await hub.messages.list(run.thread))[-1]
        assert (last.author, last.text, last.details["status"]) == ("agent", run.answer, "failed")
        server.plan(Reply(text="I would say that", content_filter=True))
        run = await hub.ask("continue", thread=run.thread)
        assert run.error is not None
        assert (run.status, run.error.code) == ("failed", "answer_cut")
        assert run.answer is not None
        assert run.answer.startswith(
            "I would say that\n\n[The answer is cut here: the provider's content filter"
        )
        assert (await hub.ask("continue", thread=run.thread)).answer == "and so on"


async def test_an_answer_that_was_cut_is_continued_by_whoever_takes_the_run_up(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, lambda _: Reply(text="and five.")) as (hub, server):
        server.plan(Reply(text="Two and two are four, ", too_long=True), Reply(text="late", delay=SILENT))
        run = (await hub.messages.post("count")).run
        async for event in hub.runs.follow(run.id):
            if event.kind == "notice":
                break
    async with open_scripted(tmp_path, lambda _: Reply(text="and five.")) as (hub, server):
        run = await hub.runs.finished(run)
        assert (run.status, run.answer) == ("done", "Two and two are four, and five.")
        assert len(server.requests) == 1, "only what was missing is asked for"
