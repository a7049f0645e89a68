"""A person stops a run: within a second, with all that is under it, at the servers too."""

import time
from pathlib import Path

import pytest

from dragoman import Hub
from dragoman.errors import Conflict
from patience import deadline, patient
from runs.scripted import by_request, model_of, open_scripted
from servers.hubs import quick, until
from servers.processes import read_log, stdio

pytestmark = pytest.mark.anyio
SLEEPS = model_of(("mcp_a_sleep", {"seconds": 30}))
ASKS = model_of(("ask_person", {"question": "Which one?"}))
WRITES = model_of(("mcp_a_send", {"text": "x"}))
TALKS = model_of("hello")
MODEL = by_request(sleep=SLEEPS, ask=ASKS, write=WRITES, talk=TALKS)


async def with_server(hub: Hub, log: Path) -> None:
    await hub.connectors.add("a", **stdio("--log", str(log)), **quick(request_timeout=patient(60)))


def events_of(log: Path, event: str) -> list[dict[str, object]]:
    return [entry for entry in read_log(log) if entry["event"] == event]


async def test_a_call_under_way_is_cancelled_at_its_server(tmp_path: Path, database_url: str) -> None:
    log = tmp_path / "log"
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        await with_server(hub, log)
        run = (await hub.messages.post("sleep")).run
        await until(lambda: any(entry.get("tool") == "sleep" for entry in read_log(log)))
        started = time.monotonic()
        await hub.runs.cancel(run.id)
        ended = await hub.runs.finished(run)
        assert time.monotonic() - started < patient(1)
        assert ended.status == "cancelled"
        await until(lambda: len(events_of(log, "cancelled")) == 1, within=1)
        with pytest.raises(Conflict):
            await hub.runs.cancel(run.id)
        again = await hub.ask("talk", thread=run.thread)
        assert (again.status, again.answer) == ("done", "hello")
        said = [(one.author, one.text) for one in await hub.messages.list(run.thread)]
        assert said[1] == ("system", "stopped by a person.")


async def test_a_run_that_waits_for_an_answer_is_stopped_and_its_question_closed(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        run = (await hub.messages.post("ask")).run
        await until(lambda: _asks(hub), within=10)
        (question,) = await hub.runs.questions()
        await hub.runs.cancel(run.id)
        async with deadline(1):
            assert (await hub.runs.finished(run)).status == "cancelled"
        assert await hub.runs.questions() == []
        assert (await hub.runs.question(question.id)).status == "cancelled"
        with pytest.raises(Conflict):
            await hub.runs.answer(question.id, "late")
        assert (await hub.ask("talk", thread=run.thread)).answer == "hello"


async def test_a_run_that_waits_for_a_yes_is_stopped_and_nobody_is_asked_any_more(
    tmp_path: Path, database_url: str
) -> None:
    log = tmp_path / "log"
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        await with_server(hub, log)
        run = (await hub.messages.post("write")).run
        await until(lambda: _asks(hub, "approvals"), within=10)
        (question,) = await hub.approvals.list()
        await hub.runs.cancel(run.id)
        async with deadline(1):
            assert (await hub.runs.finished(run)).status == "cancelled"
        assert (await hub.approvals.get(question.approval.id)).status == "expired"
        assert not any(entry.get("tool") == "send" for entry in read_log(log))


async def test_a_queued_run_is_cancelled_before_it_begins_and_says_so(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        first = (await hub.messages.post("ask")).run
        await until(lambda: _asks(hub), within=10)
        second = (await hub.messages.post("talk", thread=first.thread, agent="assistant")).run
        third = (await hub.messages.post("talk", thread=first.thread, agent="assistant")).run
        assert (await hub.runs.get(second.id)).status == "queued"
        await hub.runs.cancel(second.id)
        kinds = [event.kind async for event in hub.runs.follow(second.id)]
        assert kinds == ["run.queued", "run.finished"]
        (question,) = await hub.runs.questions()
        await hub.runs.answer(question.id, "this one")
        assert (await hub.runs.finished(third)).answer == "hello"
        assert (await hub.runs.finished(first)).status == "done"


async def test_a_run_of_another_process_is_cancelled_within_a_second(
    tmp_path: Path, database_url: str
) -> None:
    log = tmp_path / "log"
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        await with_server(hub, log)
        run = (await hub.messages.post("sleep")).run
        await until(lambda: any(entry.get("tool") == "sleep" for entry in read_log(log)), within=10)
        async with open_scripted(tmp_path, MODEL, database_url) as other:
            started = time.monotonic()
            await other.runs.cancel(run.id)
            assert (await hub.runs.finished(run)).status == "cancelled"
            assert time.monotonic() - started < patient(1.5)
            assert (await other.runs.get(run.id)).status == "cancelled"


async def _asks(hub: Hub, what: str = "questions") -> bool:
    return bool(await (hub.runs.questions() if what == "questions" else hub.approvals.list()))
