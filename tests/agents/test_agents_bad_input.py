"""What people, settings and providers do wrong: told clearly, and the thread stays usable."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api.live import open_service
from dragoman import Hub
from dragoman.agents.models import Models
from dragoman.errors import Conflict, DragomanError, InvalidArguments, InvalidConfig, InvalidName, NotFound
from dragoman.hints import worded
from dragoman.run import Message, Question, Run
from dragoman.settings import Settings
from dragoman.store import open_store
from patience import patient
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import CLAUDE, MODEL, calls, open_scripted, scripted

pytestmark = pytest.mark.anyio


def answer(turn: Turn) -> Reply:
    return Reply(text=f"I heard: {turn.user[:40]}")


async def test_a_message_that_is_refused_begins_no_thread_and_no_run(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scripted(tmp_path, answer, database_url=database_url) as (hub, model):
        wrong: list[tuple[type[DragomanError], dict[str, Any]]] = [
            (InvalidArguments, {"text": ""}),
            (InvalidArguments, {"text": " \n\t"}),
            (InvalidArguments, {"text": "x" * 1_000_000}),
            (NotFound, {"text": "hello", "thread": "thr_none"}),
            (NotFound, {"text": "", "thread": "thr_none"}),
            (NotFound, {"text": "hello", "agent": "nobody"}),
            (InvalidConfig, {"text": "hello", "options": {"model": "no-such-model"}}),
            (InvalidConfig, {"text": "hello", "options": {"model": "nobody:gpt-5"}}),
            (InvalidArguments, {"text": "hello", "options": {"exposure": "telepathy"}}),
        ]
        for kind, facts in wrong:
            with pytest.raises(kind) as refused:
                await hub.messages.post(**facts)
            assert refused.value.hint, facts
        assert await hub.threads.list() == []
        assert await hub.runs.list() == []
        assert (await hub.ask("hello")).answer == "I heard: hello"
        assert len(model.requests) == 1


async def test_an_agent_that_cannot_be_is_refused_before_anything_is_written(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scripted(tmp_path, answer, database_url=database_url) as (hub, _):
        await hub.agents.create("mailer", model=MODEL)
        wrong: list[tuple[type[DragomanError], dict[str, Any]]] = [
            (Conflict, {"name": "Mailer"}),
            (InvalidName, {"name": "assistant"}),
            (InvalidName, {"name": "everyone"}),
            (InvalidName, {"name": ""}),
            (InvalidName, {"name": "a@b.c"}),
            (InvalidName, {"name": "x" * 41}),
            (InvalidName, {"name": "two\nlines"}),
            (NotFound, {"name": "a", "connectors": ["nothing"]}),
            (InvalidConfig, {"name": "a", "model": "gpt"}),
            (InvalidConfig, {"name": "a", "model": "nobody:gpt"}),
            (InvalidConfig, {"name": "a", "fallbacks": ["gpt"]}),
            (InvalidConfig, {"name": "a", "model": MODEL, "fallbacks": ["offline"]}),
            (InvalidArguments, {"name": "a", "exposure": "telepathy"}),
            (InvalidArguments, {"name": "a", "instructions": "x" * 20_001}),
        ]
        for kind, facts in wrong:
            with pytest.raises(kind) as refused:
                await hub.agents.create(**facts)
            assert refused.value.hint, facts
        bad: list[dict[str, Any]] = [{"model": "gpt"}, {"fallbacks": ["gpt"]}, {"fallbacks": ["offline"]}]
        for changes in bad:
            with pytest.raises(InvalidConfig):
                await hub.agents.update("mailer", **changes)
        assert [agent.name for agent in await hub.agents.list()] == ["assistant", "mailer"]
        assert (await hub.agents.get("mailer")).model == MODEL
        # What could be used yesterday may be taken away.
        assert (await hub.agents.update("mailer", model=None)).model is None


async def test_a_key_that_is_missing_is_told_when_the_model_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    async with Hub(Settings(home=tmp_path, model="offline")) as hub:
        for wish in (hub.agents.create("a", model=MODEL), hub.messages.post("x", options={"model": MODEL})):
            with pytest.raises(InvalidConfig, match="OPENAI_API_KEY is not set"):
                await wish
    # Where it is the configured one nobody is there to be told: each answer says it, the thread goes on.
    async with Hub(Settings(home=tmp_path, model=MODEL)) as hub:
        run = await hub.ask("hello")
        assert (run.status, _code(run)) == ("failed", "invalid_config")
        assert "OPENAI_API_KEY" in (await hub.messages.list(run.thread))[-1].text
        again = await hub.messages.ask("hello", thread=run.thread, options={"model": "offline"})
        assert again.status == "done"


FAULTS: Mapping[str, tuple[Reply, str]] = {
    "key refused": (Reply(status=401, text="bad key sk-canary-1234567890"), "model_refused_key"),
    "no such model": (Reply(status=404, text="no such model"), "model_not_found"),
    "garbage": (Reply(garbage=True), "model_garbage"),
    "cut": (Reply(text="this goes on for quite a while and then", cut=True), "model_unavailable"),
    "too long": (Reply(context_too_long=True), "context_too_long"),
    "filtered": (Reply(text="", content_filter=True), "model_refused"),
    "rejected": (Reply(status=400, text="odd request"), "model_refused"),
}


@pytest.mark.parametrize("model", [MODEL, CLAUDE])
async def test_whatever_a_provider_does_the_next_message_works(tmp_path: Path, model: str) -> None:
    async with open_scripted(tmp_path, answer, model=model) as (hub, server):
        thread = (await hub.ask("begin")).thread
        for word, (fault, code) in FAULTS.items():
            server.plan(*[fault] * 4)  # their SDKs may try again
            run = await hub.ask(f"now {word}", thread=thread)
            server.forget_plan()
            assert (run.status, _code(run)) == ("failed", code), (word, run.error)
            assert run.error is not None
            said = (await hub.messages.list(thread))[-1]
            assert said.author == "system"
            assert said.text.startswith(run.error.message)
            assert "canary" not in json.dumps([said.text, run.error.facts()]), word
            assert (worded(run.error.command_hint, "plain") or "no hint") in said.text
            after = await hub.ask("and now?", thread=thread)
            assert after.answer == "I heard: and now?", (word, after.error)
        # What failed is history, and not something to be done now.
        assert "Not answered" in json.dumps(server.requests[-1])


async def test_a_provider_that_is_down_or_slow_is_given_up_and_comes_back(tmp_path: Path) -> None:
    async with scripted(answer) as server:
        environment = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
        async with Hub(Settings(home=tmp_path, model=MODEL)) as hub:
            quick = Models(MODEL, environment=environment, timeout=patient(0.5))
            async with quick:
                hub.models.register("slow", quick.open(await quick.choose()))
                server.plan(*[Reply(text="late", delay=patient(5))] * 4)
                run = await hub.messages.ask("hello", options={"model": "slow"})
                assert (run.status, _code(run)) == ("failed", "model_timeout"), run.error
                server.forget_plan()
            server.plan(*[Reply(status=503, text="overloaded")] * 4)
            run = await hub.ask("hello", thread=run.thread)
            assert (run.status, _code(run)) == ("failed", "model_unavailable")
            server.forget_plan()
            assert (await hub.ask("hello", thread=run.thread)).answer == "I heard: hello"
    async with Hub(Settings(home=tmp_path, model="openai-chat:gone")) as hub:
        down = Models(
            "openai-chat:gone", environment={**environment, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
        )
        async with down:
            hub.models.register("down", down.open(await down.choose()))
            run = await hub.messages.ask("hello", options={"model": "down"})
            assert (run.status, _code(run)) == ("failed", "model_unavailable")
        assert (
            await hub.messages.ask("hello", thread=run.thread, options={"model": "offline"})
        ).status == "done"


async def test_by_rest_the_same_is_a_problem_or_a_failed_run(tmp_path: Path, database_url: str) -> None:
    async with (
        scripted(answer) as server,
        open_service(tmp_path, database_url=database_url, model=MODEL) as live,
    ):
        first = (await live.ask("POST", "/api/messages?wait=true", {"text": "begin"})).value["run"]
        here = f"/api/threads/{first['thread']}/messages?wait=true"
        for body, status, code in (
            ({"text": ""}, 422, "invalid_arguments"),
            ({"text": "x" * 1_000_000}, 422, "invalid_arguments"),
            ({"text": "x", "agent": "nobody"}, 404, "not_found"),
            ({"text": "x", "model": "nothing"}, 422, "invalid_config"),
        ):
            for path in (here, "/api/messages"):
                reply = await live.ask("POST", path, body)
                assert (reply.status, reply.value["code"]) == (status, code)
                assert reply.value["hint"]
        for word, (fault, code) in FAULTS.items():
            server.plan(*[fault] * 4)
            run = (await live.ask("POST", here, {"text": word})).value["run"]
            server.forget_plan()
            assert (run["status"], run["error"]["code"]) == ("failed", code)
            assert run["error"]["hint"]
        assert (await live.ask("POST", here, {"text": "still there?"})).value["run"]["status"] == "done"
        assert len((await live.ask("GET", "/api/threads")).value["threads"]) == 1


async def test_only_a_person_answers_and_only_in_time(tmp_path: Path, database_url: str) -> None:
    def ask(turn: Turn) -> Reply:
        if "which" in turn.user and turn.number == 1:
            return calls(("ask_person", {"question": "Which one?"}))
        return Reply(text=f"{turn.user}: {[one.value for one in turn.recent]}")

    async with open_scripted(tmp_path, ask, database_url=database_url) as (hub, _):
        run = (await hub.messages.post("which")).run
        question = await _question(hub, run)
        # By a client of the person's: a message of its own, which waits for its turn.
        other = await hub.acting_for(replace(hub.caller, way="mcp")).messages.post("red", thread=run.thread)
        assert other.run.id != run.id
        assert (await hub.runs.question(question.id)).status == "pending"
        # By the person: the answer.
        answered = await hub.messages.post("blue", thread=run.thread)
        assert (answered.run.id, answered.message and answered.message.details) == (
            run.id,
            {"answers": question.id},
        )
        assert (await hub.runs.finished(run)).answer == "which: ['blue']"
        assert (await hub.runs.finished(other.run)).answer == "red: []"

        # When its time is over, though nobody has written that down yet: a message like any other.
        run = (await hub.messages.post("which", thread=run.thread)).run
        question = await _question(hub, run)
        late = datetime.now(UTC) + timedelta(days=2)
        message = Message(
            workspace=question.workspace, user=question.user, thread=run.thread, author="person", text="x"
        )
        before = len(await hub.messages.list(run.thread))
        async with open_store(hub.settings.store_url) as store:
            assert await store.runs.answer_by(message, question.id, late) is None
        assert len(await hub.messages.list(run.thread)) == before
        async with open_store(hub.settings.store_url) as store:
            await store.runs.close_questions(run.workspace, run.id, "expired")
        later = await hub.messages.post("green", thread=run.thread)
        assert later.run.id != run.id
        assert (await hub.runs.finished(later.run)).answer == "green: []"


async def _question(hub: Hub, run: Run) -> Question:
    async for event in hub.runs.follow(run.id):
        if event.kind == "question.asked":
            break
    return (await hub.runs.questions(thread=run.thread))[0]


def _code(run: Run) -> str:
    assert run.error is not None
    return run.error.code
