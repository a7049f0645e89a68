"""Calls that become tasks of their clients, in both eras: followed, answered, cancelled, and never lost."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from unittest.mock import ANY

import pytest
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, Request, RequestParams, Result

from doors import META, Door, Session, open_door, subscribed
from dragoman.mcp_endpoint import client_tasks
from dragoman.scope import Caller
from dragoman.tool import Annotations
from patience import deadline, until
from servers.processes import HttpProcess, stdio

pytestmark = pytest.mark.anyio
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
NOTE = {"name": "forget", "arguments": {"name": "milk"}}


def forget(name: str) -> str:
    """Forgets it."""
    return f"{name} is forgotten"


def with_a_tool_that_asks(door: Door) -> None:
    door.hub.add_tool(forget, annotations=Annotations(destructive=True))


async def ask(door: Door, method: str, params: Any, more: Any = None, **headers: str) -> Any:
    """A request of a client of the 2026 era that takes tasks; its result or its error."""
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": {**TASKS, **(more or {})}}
    named = {"Mcp_Name": params["taskId"]} if "taskId" in params else {}
    value = (await door.ask(method, params, meta=meta, **{**named, **headers})).value
    return value.get("result") or value["error"]


async def ended(door: Door, task: Any) -> Any:
    """The task, once it is over."""
    async with deadline(20):
        while True:
            found = await ask(door, "tasks/get", {"taskId": task["taskId"]})
            if found.get("status") not in ("working", "input_required"):
                return found
            await asyncio.sleep(0.02)


async def is_asked(door: Door) -> bool:
    return bool(await door.hub.approvals.list())


async def allow(door: Door) -> None:
    (question,) = await door.hub.approvals.list()
    await door.hub.approvals.answer(question.approval.id, "once")


async def asked_session(session: Session, method: str, params: Any) -> Any:
    value = (await session.ask(method, params)).value
    return value.get("result") or value["error"]


async def test_a_call_that_waits_for_a_person_becomes_a_task_of_its_caller_alone(tmp_path: Path) -> None:
    callers = {"eve": Caller(user="eve")}
    async with open_door(tmp_path, callers=callers, door={"has_console": True}) as door:
        with_a_tool_that_asks(door)
        task = await ask(door, "tools/call", NOTE)
        assert (task["resultType"], task["status"]) == ("task", "working")
        assert task["ttlMs"] > 0
        looked = await ask(door, "tasks/get", {"taskId": task["taskId"]})
        (question,) = await door.hub.approvals.list()
        assert f"{door.url}/approvals#{question.approval.id}" in looked["statusMessage"]
        stolen = await ask(door, "tasks/get", {"taskId": task["taskId"]}, x_test_caller="eve")
        assert stolen["code"] == -32602
        await allow(door)
        done = await ended(door, task)
        assert done["status"] == "completed"
        assert done["result"]["content"][0]["text"] == "milk is forgotten"


class BegunTask(Result):
    result_type: Literal["task"] = "task"
    task_id: str


class TaskParams(RequestParams):
    task_id: str


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


class FoundTask(Result):
    status: str
    result: dict[str, Any] | None = None


class TaskExtension(ClientExtension):
    """What an application gives the SDK's client so that it takes tasks."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, door: Door) -> None:
        self._door = door

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=BegunTask, resolve=self._followed)]

    async def _followed(self, task: BegunTask, context: ClaimContext) -> CallToolResult:
        await allow(self._door)
        request = GetTask(params=TaskParams(task_id=task.task_id))
        async with deadline(20):
            while (found := await context.session.send_request(request, FoundTask)).result is None:
                await asyncio.sleep(0.02)
        return CallToolResult.model_validate(found.result)


async def test_the_client_of_the_sdk_follows_a_task_to_its_result(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        with_a_tool_that_asks(door)
        async with door.client(mode="2026-07-28", extensions=[TaskExtension(door)]) as client:
            result: Any = await client.call_tool("forget", {"name": "milk"})
            assert result.content[0].text == "milk is forgotten"


async def test_what_is_there_at_once_is_a_result(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        door.hub.add_tool(forget, annotations=Annotations(read_only=True))
        result = await ask(door, "tools/call", NOTE)
        assert (result["resultType"], result["content"][0]["text"]) == ("complete", "milk is forgotten")
        unknown = await ask(door, "tools/call", {"name": "remember"})
        assert unknown["code"] == -32602


@pytest.mark.parametrize(
    ("action", "said"), [("accept", "milk is forgotten"), ("decline", "approval_refused")]
)
async def test_a_task_asks_and_is_answered(tmp_path: Path, action: str, said: str) -> None:
    async with open_door(tmp_path) as door:
        with_a_tool_that_asks(door)
        task = await ask(door, "tools/call", NOTE, {"elicitation": {}})
        asked = await ask(door, "tasks/get", {"taskId": task["taskId"]})
        assert asked["status"] == "input_required"
        ((key, question),) = asked["inputRequests"].items()
        assert '"name": "milk"' in question["params"]["message"]
        answers = {"inputResponses": {"other": {"action": "accept"}, key: {"action": action, "content": {}}}}
        await ask(door, "tasks/update", {"taskId": task["taskId"], **answers})
        done = await ended(door, task)
        assert done["result"]["content"][0]["text"].startswith(said)


async def test_a_client_of_the_2025_era_asks_for_a_task_and_waits_for_its_result(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        with_a_tool_that_asks(door)
        session = await door.open()
        assert "call" in session.opened.value["result"]["capabilities"]["tasks"]["requests"]["tools"]
        (tool,) = (await asked_session(session, "tools/list", None))["tools"]
        assert tool["execution"] == {"taskSupport": "optional"}
        task = (await asked_session(session, "tools/call", {**NOTE, "task": {"ttl": 60_000}}))["task"]
        waiting = asyncio.create_task(asked_session(session, "tasks/result", {"taskId": task["taskId"]}))
        await until(lambda: is_asked(door))
        assert (await asked_session(session, "tasks/get", {"taskId": task["taskId"]}))["status"] == "working"
        await allow(door)
        async with deadline(20):
            result = await waiting
        assert result["content"][0]["text"] == "milk is forgotten"
        assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task["taskId"]}


@pytest.mark.parametrize(
    ("action", "said"), [("accept", "milk is forgotten"), ("decline", "approval_refused")]
)
async def test_a_client_of_the_2025_era_is_asked_while_it_waits_and_hears_how_its_task_stands(
    tmp_path: Path, action: str, said: str
) -> None:
    async with open_door(tmp_path) as door:
        with_a_tool_that_asks(door)
        session = await door.open(capabilities={"elicitation": {}})
        async with session.listening() as news:
            task = (await asked_session(session, "tools/call", {**NOTE, "task": {}}))["task"]
            told = await news.next()
            assert (told["method"], told["params"]["status"]) == (
                "notifications/tasks/status",
                "input_required",
            )
            (listed,) = (await asked_session(session, "tasks/list", {}))["tasks"]
            assert (listed["taskId"], listed["status"]) == (task["taskId"], "input_required")
            async with session.posted("tasks/result", {"taskId": task["taskId"]}) as stream:
                asked = await stream.next()
                assert '"name": "milk"' in asked["params"]["message"]
                related = asked["params"]["_meta"]["io.modelcontextprotocol/related-task"]
                assert related == {"taskId": task["taskId"]}
                answer = {"action": action, "content": {}}
                await door.send(
                    "POST", "/mcp", {"jsonrpc": "2.0", "id": asked["id"], "result": answer}, **session.headers
                )
                result = (await stream.next())["result"]
            assert result["content"][0]["text"].startswith(said)
            while told["params"]["status"] != "completed":
                told = await news.next()
            assert told["params"]["taskId"] == task["taskId"]


async def test_a_client_of_the_2026_era_listens_to_its_tasks(tmp_path: Path) -> None:
    callers = {"eve": Caller(user="eve")}
    async with open_door(tmp_path, callers=callers) as door:
        with_a_tool_that_asks(door)
        calls = [NOTE, {**NOTE, "arguments": {"name": "bread"}}]
        first, second = [await ask(door, "tools/call", call, {"elicitation": {}}) for call in calls]
        wanted = [first["taskId"], "another"]
        async with subscribed(door, capabilities=TASKS, taskIds=wanted) as news:
            assert news.honoured == {"taskIds": [first["taskId"]]}, "another is no task of this caller"
            asked = await news.next()
            assert (asked["method"], asked["params"]["status"]) == ("notifications/tasks", "input_required")
            for task in (second, first):
                looked = await ask(door, "tasks/get", {"taskId": task["taskId"]})
                answers = {key: {"action": "accept", "content": {}} for key in looked["inputRequests"]}
                await ask(door, "tasks/update", {"taskId": task["taskId"], "inputResponses": answers})
            told: dict[str, Any] = {}
            while told.get("status") != "completed":
                told = (await news.next())["params"]
                assert told["taskId"] == first["taskId"], "only of those that it asked for"
            assert told["result"]["content"][0]["text"] == "milk is forgotten"
        eve = {"x_test_caller": "eve"}
        async with subscribed(door, capabilities=TASKS, headers=eve, taskIds=wanted) as news:
            assert news.honoured == {}
        undeclared = await door.ask("subscriptions/listen", {"notifications": {"taskIds": wanted}})
        assert (undeclared.status, undeclared.value["error"]["code"]) == (400, -32021)


async def test_requests_about_tasks_declare_the_extension_and_name_the_task(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        with_a_tool_that_asks(door)
        task = {"taskId": (await ask(door, "tools/call", NOTE))["taskId"]}
        for method, params in (("get", {}), ("update", {"inputResponses": {}}), ("cancel", {})):
            about = {**task, **params}
            plain = await door.ask(f"tasks/{method}", about, Mcp_Name=task["taskId"])
            assert (plain.status, plain.value["error"]["code"]) == (400, -32021)
            needed = plain.value["error"]["data"]["requiredCapabilities"]["extensions"]
            assert needed == TASKS["extensions"]
            assert (await ask(door, f"tasks/{method}", about, Mcp_Name="another"))["code"] == -32020
            unknown = {**about, "taskId": "another"}
            assert (await ask(door, f"tasks/{method}", unknown))["code"] == -32602
        await ask(door, "tasks/cancel", task)
        assert await ask(door, "tasks/cancel", task) == {"resultType": "complete", "_meta": ANY}
        session = await door.open()
        over = (await asked_session(session, "tools/call", {**NOTE, "task": {}}))["task"]
        await asked_session(session, "tasks/cancel", {"taskId": over["taskId"]})
        again = await asked_session(session, "tasks/cancel", {"taskId": over["taskId"]})
        assert again["code"] == -32602
        assert "cancelled already" in again["message"]


async def test_tasks_are_listed_for_who_began_them_there(tmp_path: Path) -> None:
    callers = {"eve": Caller(user="eve")}
    async with open_door(tmp_path, callers=callers) as door:
        with_a_tool_that_asks(door)
        session = await door.open()
        begun = [(await asked_session(session, "tools/call", {**NOTE, "task": {}}))["task"] for _ in range(2)]
        listed = (await asked_session(session, "tasks/list", {}))["tasks"]
        assert {task["taskId"] for task in listed} == {task["taskId"] for task in begun}
        assert (await asked_session(session, "tasks/list", {"cursor": "2"}))["code"] == -32602
        other = await door.open(x_test_caller="eve")
        assert (await asked_session(other, "tasks/list", {}))["tasks"] == []
        assert (await ask(door, "tasks/list", {}))["code"] == -32601, "the 2026 era has no such list"


@pytest.mark.parametrize("is_modern", [True, False], ids=["2026", "2025"])
async def test_a_task_is_cancelled_by_its_client(tmp_path: Path, is_modern: bool) -> None:
    async with open_door(tmp_path) as door:
        with_a_tool_that_asks(door)
        if is_modern:
            task = await ask(door, "tools/call", NOTE)
            await ask(door, "tasks/cancel", {"taskId": task["taskId"]})
            assert (await ended(door, task))["status"] == "cancelled"
        else:
            session = await door.open()
            task = (await asked_session(session, "tools/call", {**NOTE, "task": {}}))["task"]
            await until(lambda: is_asked(door))
            over = await asked_session(session, "tasks/cancel", {"taskId": task["taskId"]})
            assert over["status"] == "cancelled"
            refused = await asked_session(session, "tasks/result", {"taskId": task["taskId"]})
            assert refused["message"] == "Task cancelled"
        assert await door.hub.approvals.list() == [], "nobody is asked for a call that will not be made"


async def test_a_task_that_waits_for_a_person_outlives_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_tasks, "GONE_AFTER", 0)
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **stdio(), approval="always")
        task = await ask(door, "tools/call", {"name": "mcp_box_echo", "arguments": {"text": "milk"}})
    async with open_door(tmp_path) as door:
        assert (await ask(door, "tasks/get", {"taskId": task["taskId"]}))["status"] == "working"
        await allow(door)
        assert (await ended(door, task))["result"]["content"][0]["text"] == "milk"


async def test_the_task_of_a_client_follows_that_of_a_server_through_a_restart_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_tasks, "GONE_AFTER", 0)
    monkeypatch.setattr(client_tasks, "AT_ONCE", 0.2)
    tasks = tmp_path / "tasks"
    with HttpProcess(tmp_path, "--folder", str(tasks), program="task_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("jobs", url=server.url, approval="never")
            call = {"name": "mcp_jobs_work", "arguments": {}}
            task = await ask(door, "tools/call", call)
            assert task["resultType"] == "task"
            await until(lambda: "tasks/get" in (tasks / "log").read_text())
            lost = await ask(door, "tools/call", {"name": "mcp_jobs_forgets", "arguments": {}})
        server.kill()
        (tasks / "finish").touch()
        server.start()
        async with open_door(tmp_path / "home") as door:
            done = await ended(door, task)
            assert done["result"]["content"][0]["text"] == "work is done"
            told = lost if "content" in lost else (await ended(door, lost))["result"]
            assert told["content"][0]["text"].startswith("uncertain")
        assert (tasks / "log").read_text().count("begun work") == 1
