"""Calls that ask back: who is asked, who answers, and what an approval is good for meanwhile."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult

from doors import META, Door, open_door
from dragoman.mcp_endpoint.request_context import RequestContext
from dragoman.mcp_endpoint.request_states import RequestState, RequestStates
from dragoman.mcp_endpoint.views import EndpointTarget
from dragoman.scope import Caller
from dragoman.tool import NoChannel
from patience import deadline, patient
from servers.hubs import open_hub, until
from servers.processes import HERE, HttpProcess

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
CAN_BE_ASKED = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
ASKS = {"name": "test_input_required_result_elicitation", "arguments": {}}
STATE = {"name": "test_input_required_result_request_state", "arguments": {}}
# People are asked for approval in the console alone, so that only servers ask the client.
ASKED_ELSEWHERE: dict[str, Any] = {"approval_wait": 0.1, "client_approvals": False}
ADA = {"action": "accept", "content": {"name": "Ada"}}


async def ask(door: Door, params: Any, path: str = "/mcp/all", **headers: str) -> Any:
    """A request of a client of the 2026 era that can be asked; its result or its error."""
    value = (await door.ask("tools/call", params, path, meta=CAN_BE_ASKED, **headers)).value
    return value.get("result") or value["error"]


def answered(params: Any, asked: Any, answer: Any = ADA) -> Any:
    """The same request again, with the answer to all that was asked."""
    responses = dict.fromkeys(asked["inputRequests"], answer)
    state = {"requestState": asked["requestState"]} if "requestState" in asked else {}
    return {**params, "inputResponses": responses, **state}


def text_of(result: Any) -> str:
    return result["content"][0]["text"]


async def allow_once(door: Door) -> None:
    (question,) = await door.hub.approvals.list()
    await door.hub.approvals.answer(question.approval.id, "once")


# A yes for one call


@pytest.mark.parametrize("params", [ASKS, STATE], ids=["without a state", "with a state"])
async def test_a_yes_for_once_lasts_until_its_call_is_answered_and_no_longer(
    tmp_path: Path, params: Any
) -> None:
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(tmp_path / "home", **ASKED_ELSEWHERE) as door:
            await door.hub.connectors.add("all", url=server.url, approval="always")
            assert text_of(await ask(door, params)).startswith("approval_pending")
            await allow_once(door)
            asked = await ask(door, params)
            assert asked["resultType"] == "input_required"
            retry = answered(params, asked)
            done = await ask(door, retry)
            assert "isError" not in done, done
            assert await door.hub.approvals.list() == []
            # It was one call: the same answers again are another one.
            assert text_of(await ask(door, retry)).startswith("approval_pending")


async def test_a_retry_leaves_a_yes_for_another_call_alone(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(tmp_path / "home", **ASKED_ELSEWHERE) as door:
            await door.hub.connectors.add("all", url=server.url, approval="always")
            await ask(door, ASKS)
            await allow_once(door)
            asked = await ask(door, ASKS)
            await ask(door, ASKS)  # another call, that waits for a yes of its own
            await allow_once(door)
            assert text_of(await ask(door, answered(ASKS, asked))) == "Hello, Ada!"
            assert (await ask(door, ASKS))["resultType"] == "input_required"


async def test_what_was_allowed_for_one_call_is_good_for_no_other(tmp_path: Path) -> None:
    callers = {"eve": Caller(user="eve")}
    call = {"name": "test_elicitation", "arguments": {"message": "who?"}}
    other = {"name": "test_elicitation", "arguments": {"message": "whose key?"}}
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(
            tmp_path / "home", callers=callers, approval_wait=0.1, client_approvals=False
        ) as door:
            await door.hub.connectors.add("all", url=server.url, approval="always", shared=True)
            await ask(door, call)
            await allow_once(door)
            asked = await ask(door, call)
            stolen = await ask(door, answered(call, asked), x_test_caller="eve")
            assert text_of(stolen).startswith("approval_pending")
            assert text_of(await ask(door, answered(other, asked))).startswith("approval_pending")


# A server that asks in the middle of a call


@ERAS
async def test_both_eras_are_asked_by_a_server_of_the_2025_era(tmp_path: Path, mode: str) -> None:
    names = iter(["Ada", "Lovelace"])

    async def says(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": next(names)})

    with HttpProcess(tmp_path, program="asking_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)
            async with door.client("/mcp/all", mode=mode, elicitation_callback=says) as client:
                result: Any = await client.call_tool("introduce", {})
                assert result.content[0].text == "Ada Lovelace"
            (record,) = await door.hub.calls()
            assert (record.tool, record.ok) == ("mcp_all_introduce", True)


@ERAS
async def test_over_http_each_of_many_is_asked_about_its_own_call(tmp_path: Path, mode: str) -> None:
    waiting = asyncio.Barrier(5)

    async def says(context: Any, params: Any) -> ElicitResult:
        async with deadline(10):
            await waiting.wait()  # all of them are asked before any answers
        old = re.search(r"name of (\w+)", params.message)
        assert old is not None
        return ElicitResult(action="accept", content={"name": old[1].upper()})

    with HttpProcess(tmp_path, program="asking_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)

            async def renamed(old: str) -> str:
                async with door.client("/mcp/all", mode=mode, elicitation_callback=says) as client:
                    result: Any = await client.call_tool("rename", {"old": old})
                    return result.content[0].text

            said = await asyncio.gather(*(renamed(old) for old in "abcde"))
            assert said == ["a is A", "b is B", "c is C", "d is D", "e is E"]


async def test_a_call_that_nobody_can_be_asked_about_is_declined_beside_one_that_can(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, program="asking_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)
            call = {"name": "rename", "arguments": {"old": "bob"}}
            asked = await ask(door, call)
            output = await door.hub.call("mcp_all_rename", {"old": "eve"})
            assert output.result == {"result": "eve: declined"}
            assert text_of(await ask(door, answered(call, asked))) == "bob is Ada"


@pytest.mark.parametrize(("calls", "expected"), [(1, "bob is Ada"), (2, "decline")])
async def test_over_stdio_nobody_is_asked_where_it_may_be_another(
    tmp_path: Path, calls: int, expected: str
) -> None:
    program: dict[str, Any] = {
        "command": sys.executable,
        "args": ["-S", str(HERE / "asking_stdio.py"), str(calls)],
    }
    async with open_door(tmp_path) as door, asyncio.TaskGroup() as tasks:
        await door.hub.connectors.add("all", **program)
        if calls == 2:
            tasks.create_task(door.hub.call("mcp_all_rename", {"old": "eve"}))
        call = {"name": "rename", "arguments": {"old": "bob"}}
        result = await ask(door, call)
        if "inputRequests" in result:
            result = await ask(door, answered(call, result))
        assert text_of(result) == expected


async def test_who_comes_back_too_late_has_declined_and_gets_the_result(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, program="asking_server.py") as server:
        async with open_door(tmp_path / "home", approval_wait=patient(0.5)) as door:
            await door.hub.connectors.add("all", url=server.url)
            call = {"name": "introduce", "arguments": {}}
            asked = await ask(door, call)

            async def is_over() -> bool:
                return bool(await door.hub.calls())

            await until(is_over)
            assert text_of(await ask(door, answered(call, asked))) == "declined declined"


async def test_a_question_is_answered_once_by_whom_it_was_put_to_and_for_the_same_call(
    tmp_path: Path,
) -> None:
    callers = {"eve": Caller(user="eve")}
    with HttpProcess(tmp_path, program="asking_server.py") as server:
        async with open_door(tmp_path / "home", callers=callers) as door:
            await door.hub.connectors.add("all", url=server.url, shared=True)
            call = {"name": "rename", "arguments": {"old": "bob"}}
            asked = await ask(door, call)
            retry = answered(call, asked)
            assert (await ask(door, retry, x_test_caller="eve"))["code"] == -32602
            again = await ask(door, {**call, "requestState": asked["requestState"]})
            assert again["inputRequests"] == asked["inputRequests"], "who brings no answer is asked again"
            assert (await ask(door, retry))["code"] == -32602
            assert text_of(await ask(door, answered(call, again))) == "bob is Ada"
            assert (await ask(door, answered(call, again)))["code"] == -32602
            other = await ask(door, call)
            misled = answered({"name": "rename", "arguments": {"old": "eve"}}, other)
            assert (await ask(door, misled))["code"] == -32602


async def test_no_more_requests_wait_in_a_process_than_it_has_room_for(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, program="asking_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)
            door.endpoint._parked._most = 1
            first = await ask(door, {"name": "greet", "arguments": {}})
            assert text_of(await ask(door, {"name": "greet", "arguments": {}})) == "declined"
            done = await ask(door, answered({"name": "greet", "arguments": {}}, first))
            assert text_of(done) == "Hello, Ada!"


async def test_a_client_that_cannot_be_asked_has_declined(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, program="asking_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)
            reply = await door.ask("tools/call", {"name": "greet", "arguments": {}}, "/mcp/all")
            assert text_of(reply.value["result"]) == "declined"


async def test_call_tool_of_the_search_view_asks_as_the_tool_itself_does(tmp_path: Path) -> None:
    with (
        HttpProcess(tmp_path, program="asking_server.py") as old,
        HttpProcess(tmp_path, program="everything_server.py") as new,
    ):
        async with open_door(tmp_path / "home", **ASKED_ELSEWHERE) as door:
            await door.hub.connectors.add("old", url=old.url)
            await door.hub.connectors.add("new", url=new.url, approval="never")
            for tool in ("mcp_old_greet", "mcp_new_test_input_required_result_elicitation"):
                call = {"name": "call_tool", "arguments": {"name": tool}}
                asked = await ask(door, call, "/mcp?view=search")
                done = await ask(door, answered(call, asked), "/mcp?view=search")
                assert text_of(done) == "Hello, Ada!"


# Tokens of requests that wait


async def test_tokens_of_requests_that_wait_are_limited_in_number_and_time(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:

        def asker(user: str, slug: str | None = None) -> RequestContext:
            return RequestContext(hub.acting_for(Caller(user=user)), EndpointTarget(slug), True, NoChannel())

        states = RequestStates("asked", most_per_user=2)
        first, second = await states.give(asker("ada"), b"a"), await states.give(asker("ada"), b"b")
        assert first
        assert second
        assert await states.give(asker("ada"), b"c") is None
        assert await states.give(asker("eve"), b"d")
        assert await states.take(first, asker("eve")) is None
        assert await states.take(first, asker("ada", "box")) is None
        assert await RequestStates("allowed").take(first, asker("ada")) is None
        assert await states.take(first, asker("ada")) == b"a"
        assert await states.take(first, asker("ada")) is None
        short = RequestStates("asked", lasts=0, most_per_user=2)
        late = await short.give(asker("bob"), b"e")
        assert late
        assert await short.take(late, asker("bob")) is None
        assert await short.give(asker("bob"), b"f")
        assert await short.give(asker("bob"), b"g")
        assert await short.give(asker("bob"), b"h"), "those before are too old to count"


@pytest.mark.parametrize("state", [None, "", "a.b.c", "dragoman.allowed.x.y", "§"])
async def test_a_mark_carries_the_state_of_the_server_unchanged(state: str | None) -> None:
    mark = RequestState("allowed", "token", state)
    assert RequestState.find(str(mark)) == mark
    for other in (None, 5, "", "state", "dragoman.x", "dragoman.other.token"):
        assert RequestState.find(other) is None


async def test_what_hooks_hide_is_hidden_in_questions_and_refusals_too(tmp_path: Path) -> None:
    """The door passes on what a server asks and refuses with in its own words: hooks look at these words."""
    who, path = "Wilhelmina Verschwiegen", "/mcp/bundles/people"
    with HttpProcess(tmp_path, program="asking_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)
            fixed = {"parameters": {"old": {"value": who}}}
            tools = [{"tool": f"all__{name}", "name": name, **fixed} for name in ("rename", "find")]
            await door.hub.bundles.create("people", tools)
            asked = await ask(door, {"name": "rename", "arguments": {}}, path)
            (question,) = asked["inputRequests"].values()
            assert question["params"]["message"] == "[all] What is the new name of [hidden]?"
            done = await ask(door, answered({"name": "rename", "arguments": {}}, asked), path)
            assert text_of(done) == "[hidden] is Ada"
            refused = await ask(door, {"name": "find", "arguments": {}}, path)
            assert (refused["message"], refused["data"]) == ("there is no [hidden]", {"name": "[hidden]"})
            declined = str((await door.ask("tools/call", {"name": "rename", "arguments": {}}, path)).value)
            assert "declined" in declined
            assert who not in declined
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(tmp_path / "modern", hooks=["size 60"]) as door:
            await door.hub.connectors.add("all", url=server.url, approval="never")
            assert "inputRequests" not in await ask(door, ASKS)
