"""Tasks that must go on: a fault is said and survived, what is vital ends the process, nothing is silent."""

import ast
import asyncio
from pathlib import Path

import pytest

from dragoman import background_tasks
from dragoman.background_tasks import BackgroundTasks, Supervisor
from dragoman.errors import Internal
from parsed_source import FILES, PACKAGE, tree
from patience import deadline, until

pytestmark = pytest.mark.anyio


async def test_what_must_go_on_is_begun_again_after_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    supervisor, begun = Supervisor(), list[int]()
    goes_on = asyncio.Event()

    async def work() -> None:
        begun.append(1)
        if len(begun) < 3:
            raise TypeError("a fault of ours")
        goes_on.set()
        await asyncio.Event().wait()

    async with deadline(10), supervisor.keeping(work, "some work", is_vital=True):
        await goes_on.wait()
    assert len(begun) == 3
    assert [record.getMessage() for record in caplog.records] == ["background.failed"] * 2
    supervisor.check()


async def test_who_does_not_hear_that_it_ends_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_tasks, "_HEARD_WITHIN", 0.05)
    begun = asyncio.Event()

    async def work() -> None:
        for _ in range(2):
            try:
                begun.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass  # as a library that takes it for a timeout of its own
        await asyncio.Event().wait()

    async with deadline(10), Supervisor().keeping(work, "hard of hearing"):
        await begun.wait()


async def test_what_is_vital_and_fails_for_too_long_ends_it_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_tasks, "VITAL_PATIENCE", 0.2)
    supervisor = Supervisor()

    async def work() -> None:
        raise OSError("no descriptors")

    async with deadline(10), supervisor.keeping(work, "some work", is_vital=True):
        failure = await supervisor.failure()
    assert "'some work' has ended for good (OSError)" in failure.message
    with pytest.raises(Internal):
        supervisor.check()


async def test_what_is_not_vital_is_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_tasks, "VITAL_PATIENCE", 0.0)
    supervisor, begun = Supervisor(), list[int]()

    async def work() -> None:
        begun.append(1)
        raise OSError("no descriptors")

    async with supervisor.keeping(work, "some work"):
        await until(lambda: len(begun) == 3)
    supervisor.check()


async def test_a_task_that_a_stranger_cancels_is_noticed() -> None:
    supervisor = Supervisor()
    async with deadline(10), supervisor.keeping(asyncio.Event().wait, "some work", is_vital=True) as task:
        await asyncio.sleep(0)
        task.cancel()
        assert "CancelledError" in (await supervisor.failure()).message


async def test_a_cancelled_future_inside_is_a_fault_like_any_other() -> None:
    supervisor, begun = Supervisor(), list[int]()

    async def work() -> None:
        begun.append(1)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async with supervisor.keeping(work, "some work", is_vital=True):
        await until(lambda: len(begun) == 2)
    supervisor.check()


async def test_the_end_of_the_block_is_the_end_of_its_tasks() -> None:
    supervisor, ended = Supervisor(), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("kept")

    async with BackgroundTasks() as tasks:
        tasks.start(work(), "once")
        async with supervisor.keeping(work, "kept", is_vital=True):
            await asyncio.sleep(0)
        assert ended == ["kept"]
    assert ended == ["kept", "kept"]
    supervisor.check()


# Each of these belongs to one request, call, connection or command, whose end is its own.
OF_ONE_REQUEST = {
    "access/approvals.py": "one question to a client",
    "cli/worker.py": "waits for the end of the process",
    "connections/http.py": "the group of one wire",
    "connections/boxes/network.py": "one question for a name, and both directions of one connection",
    "connections/native/terminal.py": "one command",
    "connections/oauth/authorizations.py": "one renewal: a fault is told to who waits for the token",
    "connections/server_tasks.py": "one task of a server",
    "connections/sse.py": "the group of one wire",
    "connections/stdio.py": "one wire",
    "connections/upkeep.py": "one session",
    "connections/wire.py": "one wire",
    "agents/providers.py": "one question to all providers",
    "api/messages.py": "one stream",
    "cli/stdio_bridge.py": "one client",
    "hub/configuration_files.py": "the first lists, at start",
    "hub/imports.py": "one import",
    "remembered.py": "one reading that several wait for",
    "mcp_endpoint/bridge.py": "one client",
    "mcp_endpoint/client_tasks.py": "one task",
    "mcp_endpoint/notifications.py": "one stream",
    "mcp_endpoint/parked_requests.py": "one request",
    "mcp_endpoint/streams.py": "one request",
    "runs/execution.py": "one run",
    "server.py": "waits for the end of the process",
    "web/guard.py": "one request",
    "web/http_server.py": "one connection, until it is accepted",
    "web/server_sent_events.py": "one stream",
}
MAKERS = {"create_task", "ensure_future", "TaskGroup", "create_task_group"}


def test_no_task_is_begun_where_nobody_watches_it() -> None:
    found = {str(file.relative_to(PACKAGE)) for file in FILES if MAKERS & _called(file)}
    assert found == {"background_tasks.py", *OF_ONE_REQUEST}


def _called(file: Path) -> set[str]:
    calls = [node.func for node in ast.walk(tree(file)) if isinstance(node, ast.Call)]
    return {function.attr for function in calls if isinstance(function, ast.Attribute)}
