"""What an agent still knows of a thread: its own results in full, others' words, and never too much."""

import json
import re
from pathlib import Path

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from dragoman import Annotations
from dragoman.agents.history import budget_for, history_of
from dragoman.agents.prices import window_of
from dragoman.run import Message
from dragoman.tokens import count_tokens
from servers.samples import sample
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import CLAUDE, MODEL, calls, open_scripted

pytestmark = pytest.mark.anyio


def said(number: int, text: str, run: str | None = None, agent: str | None = None) -> Message:
    author = "agent" if agent else "person"
    facts = {"workspace": "w", "user": "u", "thread": "t", "number": number, "run": run}
    return Message(**facts, author=author, agent=agent, text=text)  # type: ignore[arg-type]


def journal(request: str, result: str, answer: str) -> list[ModelMessage]:
    return [
        ModelRequest(parts=[UserPromptPart(request)]),
        ModelResponse(parts=[ToolCallPart("look", {}, "c1")]),
        ModelRequest(
            parts=[ToolReturnPart("look", result, "c1"), ToolAvailabilityDeltaPart(tools_added=["gone"])]
        ),
        ModelResponse(parts=[TextPart(answer)]),
    ]


def size(messages: list[ModelMessage]) -> int:
    return count_tokens(ModelMessagesTypeAdapter.dump_json(messages)) if messages else 0


def test_own_runs_come_whole_once_and_without_news_of_tools() -> None:
    own = journal("look", "found it", "here it is")
    messages = [
        said(1, "@a @b look", "root"),
        said(2, "here it is", "child_a", "a"),
        said(3, "I see", "child_b", "b"),
    ]
    told = history_of(messages, {"root": own, "child_a": own}, "a", 10_000).told
    written = ModelMessagesTypeAdapter.dump_json(told).decode()
    assert [len(message.parts) for message in told] == [1, 1, 1, 1, 1]
    assert (written.count("found it"), "gone" in written) == (1, False)
    assert re.search(r"\(@b said:\)\\n<data (\w+)>\\nI see\\n</data \1>", written)


def test_a_run_that_is_too_long_comes_as_the_text_that_people_saw() -> None:
    own = journal("look", "x" * 100_000, "here it is")
    messages = [said(1, "look", "run"), said(2, "here it is", "run", "a")]
    told = history_of(messages, {"run": own}, "a", 1_000).told
    assert [part.content for message in told for part in message.parts] == ["look", "here it is"]  # type: ignore[union-attr]


@pytest.mark.parametrize("budget", [0, 100, 5_000, 60_000])
def test_three_hundred_long_messages_stay_within_the_budget_newest_first(budget: int) -> None:
    messages = [
        said(number, f"message {number} " + "word " * 2_000, agent=None if number % 2 else "a")
        for number in range(1, 301)
    ]
    told = history_of(messages, {}, "a", budget).told
    assert size(told) <= budget
    if told:
        assert "message 300 " in str(told[-1])
        assert "message 1 " not in str(told)


def test_a_model_with_a_small_window_gets_less() -> None:
    assert window_of("openai:gpt-4") == 8_192
    assert window_of("nobody:nothing") is None
    assert budget_for(["openai:gpt-4"], 60_000) == 8_192 // 3
    assert budget_for([MODEL, CLAUDE], 60_000) == 60_000
    assert budget_for([MODEL, "openai:gpt-4", "offline", "scripted"], 60_000) == 8_192 // 3


async def test_reply_to_the_first_one_finds_it_in_what_a_tool_gave_before(
    tmp_path: Path, database_url: str
) -> None:
    def script(turn: Turn) -> Reply:
        if "latest" in turn.user and turn.number == 1:
            return calls(("mcp_email_read-emails", {"limit": 2}))
        if "reply" in turn.user:
            first = turn.result("mcp_email_read-emails")["emails"][0]
            return Reply(text=f"to {first['id']}")
        return Reply(text="two")

    async with open_scripted(tmp_path / "home", script, database_url=database_url) as (hub, _):
        await hub.connectors.add("email", **sample("email", tmp_path))
        run = await hub.ask("show my latest emails")
        between = await hub.ask("thanks", thread=run.thread)
        assert between.answer == "two"
        reply = await hub.ask("reply to the first one", thread=run.thread)
        assert reply.status == "done", reply.error
        assert (reply.answer or "").startswith("to ")


async def test_in_a_thread_of_several_each_hears_the_others_as_text(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        me = "ann" if "You are ann" in turn.system else "bob"
        return Reply(text=f"{me} knows {me}-word")

    async with open_scripted(tmp_path, script) as (hub, model):
        await hub.agents.create("ann")
        await hub.agents.create("bob")
        thread = (await hub.ask("@ann begin")).thread
        await hub.ask("@ann @bob go on", thread=thread)
        await hub.ask("@ann and you?", thread=thread)
        heard = json.dumps(model.requests[-1]["messages"])
        told = r"\(@bob said:\)\\n<data (\w+)>\\nbob knows bob-word\\n</data \1>"
        assert len(re.findall(told, heard)) == 1
        assert heard.count("ann knows ann-word") == 2
        assert heard.count("@ann @bob go on") == 1


@pytest.mark.parametrize("model", [MODEL, CLAUDE])
async def test_what_is_too_long_for_the_model_is_trimmed_once_and_tried_again(
    tmp_path: Path, model: str
) -> None:
    most = 30_000

    def script(turn: Turn) -> Reply:
        size = len(json.dumps(turn.request["messages"]))
        return Reply(context_too_long=True) if size > most else Reply(text=f"read {size}")

    async with open_scripted(tmp_path, script, model=model) as (hub, server):
        thread = None
        for number in range(8):
            run = await hub.ask(f"number {number}: " + "word " * 1_000, thread=thread)
            thread = run.thread
            assert run.status == "done", (number, run.error)
        assert len(server.requests) > 8, "it was never too long"
        alone = await hub.ask("word " * 10_000, thread=thread)
        assert (alone.error and alone.error.code) == "context_too_long"
        assert (await hub.ask("shorter", thread=thread)).status == "done"


async def test_what_a_failed_run_did_is_known_to_the_next_one(tmp_path: Path, database_url: str) -> None:
    sent: list[str] = []

    def script(turn: Turn) -> Reply:
        if turn.user == "send it" and turn.number == 1:
            return calls(("send", {"text": "hello"}))
        if turn.user == "send it":
            return Reply(status=400, text="odd")
        return Reply(text=f"already: {turn.result('send')}")

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):

        @hub.tool(annotations=Annotations(read_only=True))
        def send(text: str) -> str:
            """Sends a text."""
            sent.append(text)
            return f"sent as {len(sent)}"

        run = await hub.ask("send it")
        assert run.status == "failed"
        again = await hub.ask("try again", thread=run.thread)
        assert again.answer == "already: sent as 1", again.error
        assert sent == ["hello"]
