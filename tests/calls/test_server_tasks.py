"""Servers that answer a call with a task: it is followed, cancelled with its call, and outlives restarts."""

import asyncio
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from dragoman import Hub
from patience import deadline, patient, until
from runs.scripted import model_of, open_scripted
from servers.hubs import open_hub
from servers.processes import HttpProcess

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["2026", "2025"])


def task_server(folder: Path, era: str) -> HttpProcess:
    return HttpProcess(folder, "--folder", str(folder / "tasks"), "--era", era, program="task_server.py")


def log(folder: Path) -> str:
    file = folder / "tasks" / "log"
    return file.read_text() if file.exists() else ""


def begun(folder: Path) -> int:
    return log(folder).count("begun ")


class Follower:
    """Fills `CallObserver` as the journal of a run does; remembers whether its call has left."""

    def __init__(self, name: str = "a call", *, has_departed: bool = False) -> None:
        self.name = name
        self.has_departed = has_departed
        self.is_over = False

    def awaits(self, approval: str) -> None: ...

    def goes_on(self) -> None: ...

    async def departs(self, repeatable: bool) -> None: ...


async def added(hub: Hub, server: HttpProcess, **settings: Any) -> None:
    await hub.connectors.add("jobs", url=server.url, approval="never", **settings)


@ERAS
async def test_a_task_is_followed_inside_one_call_for_longer_than_its_deadline(
    tmp_path: Path, era: str
) -> None:
    told: list[str | None] = []
    seconds, began = patient(0.8), monotonic()

    def finish_after_a_while(progress: Any) -> None:
        told.append(progress.message)
        if monotonic() - began > 1.5 * seconds:
            (tmp_path / "tasks" / "finish").touch()

    with task_server(tmp_path, era) as server:
        async with open_hub(tmp_path / "home") as hub:
            await added(hub, server, request_timeout=seconds)
            async with deadline(30):
                output = await hub.call("mcp_jobs_work", {}, on_progress=finish_after_a_while)
            assert output.ok, output.error
            assert output.content[0]["text"] == "work is done"
            assert told[0] == "it is working"
            assert (await hub.call("mcp_jobs_quick", {})).content[0]["text"] == "quick is done"
            assert begun(tmp_path) == 2


@pytest.mark.parametrize(
    ("tool", "code", "words"),
    [
        ("other", "uncertain", "answered for one task with another"),
        ("forgets", "uncertain", "does not know its task any more"),
        ("fails", "tool_failed", "broke"),
        ("forever", "uncertain", "before the deadline"),
    ],
)
async def test_a_task_that_ends_in_no_result_is_a_clear_error(
    tmp_path: Path, tool: str, code: str, words: str
) -> None:
    with task_server(tmp_path, "2026") as server:
        async with open_hub(tmp_path / "home") as hub:
            limit = patient(1)
            await added(hub, server, request_timeout=limit, max_request_time=limit)
            async with deadline(20):
                output = await hub.call(f"mcp_jobs_{tool}", {})
            assert output.error is not None
            assert output.error.code == code
            assert words in output.error.message
            assert ("tasks/cancel" in log(tmp_path)) == (tool == "forever")


@ERAS
async def test_a_task_is_cancelled_with_its_call(tmp_path: Path, era: str) -> None:
    with task_server(tmp_path, era) as server:
        async with open_hub(tmp_path / "home") as hub:
            await added(hub, server)
            calling = asyncio.create_task(hub.call("mcp_jobs_forever", {}))
            await until(lambda: begun(tmp_path) == 1)
            await until(lambda: "tasks/" in log(tmp_path))
            calling.cancel()
            await asyncio.wait([calling])
            await until(lambda: "tasks/cancel" in log(tmp_path))


async def test_what_a_task_asks_is_answered_once(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(question: Any) -> dict[str, Any]:
        asked.append(question.message)
        return {"name": "Ada"}

    with task_server(tmp_path, "2026") as server:
        async with open_hub(tmp_path / "home") as hub:
            await added(hub, server)
            output = await hub.call("mcp_jobs_asks", {}, on_elicitation=answer)
            assert output.content[0]["text"] == "Ada"
            assert asked == ["Who?"]


@ERAS
async def test_a_task_outlives_a_restart_of_its_server(tmp_path: Path, era: str) -> None:
    with task_server(tmp_path, era) as server:
        async with open_hub(tmp_path / "home") as hub:
            await added(hub, server)
            calling = asyncio.create_task(hub.call("mcp_jobs_work", {}))
            await until(lambda: "tasks/" in log(tmp_path))
            server.kill()
            (tmp_path / "tasks" / "finish").touch()
            server.start()
            async with deadline(30):
                output = await calling
            assert output.ok, output.error
            assert begun(tmp_path) == 1, "it was not begun again, though nobody says that this is safe"


@ERAS
async def test_a_task_outlives_a_restart_of_the_service(tmp_path: Path, era: str) -> None:
    with task_server(tmp_path, era) as server:
        async with open_hub(tmp_path / "home") as hub:
            await added(hub, server)
            first = asyncio.create_task(hub.call("mcp_jobs_work", {}, observer=Follower()))
            await until(lambda: "tasks/" in log(tmp_path))
            first.cancel()  # as the end of the process does: the call is not over
            await asyncio.wait([first])
        assert "tasks/cancel" not in log(tmp_path)
        async with open_hub(tmp_path / "home") as hub:
            other = await hub.call("mcp_jobs_forever", {}, observer=Follower(has_departed=True))
            assert other.error is not None
            assert other.error.code == "uncertain", "the task of one call is good for no other"
            (tmp_path / "tasks" / "finish").touch()
            output = await hub.call("mcp_jobs_work", {}, observer=Follower(has_departed=True))
            assert output.ok, output.error
            again = await hub.call("mcp_jobs_work", {}, observer=Follower(has_departed=True))
            assert again.error is not None
            assert again.error.code == "uncertain", "what has its outcome is kept no longer"
        assert begun(tmp_path) == 1


@pytest.mark.parametrize("is_stopped", [False, True], ids=["restarted", "stopped by a person"])
async def test_a_run_follows_its_task_after_a_restart_and_cancels_it_when_it_is_stopped(
    tmp_path: Path, is_stopped: bool
) -> None:
    model = model_of(("mcp_jobs_work", {}))
    with task_server(tmp_path, "2026") as server:
        async with open_scripted(tmp_path / "home", model) as hub:
            await added(hub, server)
            run = (await hub.messages.post("do the work")).run
            await until(lambda: "tasks/get" in log(tmp_path))
            if is_stopped:
                await hub.runs.cancel(run.id)
                assert (await hub.runs.finished(run)).status == "cancelled"
                await until(lambda: "tasks/cancel" in log(tmp_path))
                return
        assert "tasks/cancel" not in log(tmp_path)
        (tmp_path / "tasks" / "finish").touch()
        async with open_scripted(tmp_path / "home", model) as hub:
            await hub.open_engine()
            async with deadline(20):
                assert (await hub.runs.finished(run)).answer == '["work is done"]'
        assert begun(tmp_path) == 1, "it had left, and nobody says that it may be made again"
