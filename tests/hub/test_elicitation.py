"""What servers ask in the middle of a call reaches whoever can answer: a function, or a person by REST."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from api.live import Live, open_service
from dragoman import Elicitation, Hub, Progress
from dragoman.hub.call_questions import CallbackChannel
from dragoman.settings import Settings
from migrated import put_sqlite
from patience import deadline, give_time, patient
from servers.hubs import open_hub, quick, until
from servers.processes import HERE, HttpProcess, stdio

pytestmark = pytest.mark.anyio
ASKING: dict[str, Any] = {
    "command": sys.executable,
    "args": ["-S", str(HERE / "asking_stdio.py"), "1"],
}
MODERN = "mcp_new_test_input_required_result_elicitation"


@asynccontextmanager
async def asked_hub(home: Path, answer: Any) -> AsyncGenerator[Hub]:
    put_sqlite(home / "dragoman.db")
    async with Hub(Settings(home=home), on_elicitation=answer) as hub:
        yield hub


def saying(answer: Any) -> Any:
    """A function that always answers so."""

    def answered(asked: Elicitation) -> Any:
        return answer

    return answered


async def capabilities(hub: Hub, **how: Any) -> Any:
    return (await hub.call("mcp_old_told", {}, **how)).result


# The library


async def test_a_function_of_the_hub_answers_servers_of_both_eras(tmp_path: Path) -> None:
    heard: list[Elicitation] = []

    async def answer(asked: Elicitation) -> dict[str, Any]:
        heard.append(asked)
        return {"name": "Ada"}

    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with asked_hub(tmp_path / "home", answer) as hub:
            await hub.connectors.add("old", **ASKING, **quick())
            await hub.connectors.add("new", url=server.url, **quick())
            old = await hub.call("mcp_old_rename", {"old": "bob"})
            assert (old.result, old.metadata.warnings) == ("bob is Ada", ())
            new = await hub.call(MODERN, {})
            assert (new.result, new.metadata.warnings) == ("Hello, Ada!", ())
    assert [asked.connector for asked in heard] == ["old", "new"]
    assert heard[0].message == "What is the new name of bob?"
    assert heard[0].tool == "mcp_old_rename"
    assert (heard[0].fields or {})["required"] == ["name"]


async def test_a_call_may_bring_a_function_of_its_own_and_none_declines(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("old", **ASKING, **quick())
        said = await hub.call("mcp_old_rename", {"old": "bob"}, on_elicitation=lambda asked: {"name": "Eve"})
        assert said.result == "bob is Eve"
        said = await hub.call("mcp_old_rename", {"old": "bob"}, on_elicitation=lambda asked: None)
        assert said.result == "decline"
        went: list[str | None] = []

        def visit(asked: Elicitation) -> dict[str, Any]:
            went.append(asked.url)
            return {}

        said = await hub.call("mcp_old_visit", {}, on_elicitation=visit)
        assert (said.result, went) == ("accept", ["https://x.example/s"])


async def test_an_answer_that_was_not_asked_for_never_leaves(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("old", **ASKING, **quick())

        def breaks(asked: Elicitation) -> dict[str, Any]:
            raise RuntimeError("hunter2")

        answers: list[tuple[Any, str]] = [
            (saying({"name": 7}), "must be text"),
            (saying({}), "'name' is missing"),
            (saying(7), "failed: TypeError"),
            (breaks, "failed: RuntimeError"),
        ]
        for answer, why in answers:
            said = await hub.call("mcp_old_rename", {"old": "bob"}, on_elicitation=answer)
            assert said.result == "decline", why
            assert why in said.metadata.warnings[0]
            assert "hunter2" not in said.metadata.warnings[0]


async def test_where_nobody_can_be_asked_the_server_is_not_told_that_somebody_can(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_hub(tmp_path / "home") as hub:
            await hub.connectors.add("old", **ASKING, **quick())
            await hub.connectors.add("new", url=server.url, **quick())
            assert "elicitation" not in await capabilities(hub)
            assert (await hub.call("mcp_new_test_input_required_result_capabilities", {})).result == (
                "nothing more to ask"
            )
            unasked = await hub.call(MODERN, {})
            assert "nobody can be asked" in unasked.metadata.warnings[0]
            # The first caller who can be asked has the connection opened anew.
            assert "elicitation" in await capabilities(hub, on_elicitation=saying(None))
            assert "elicitation" in await capabilities(hub)
            silent = await hub.call("mcp_old_rename", {"old": "bob"})
            assert silent.result == "decline"
            (warning,) = silent.metadata.warnings
            assert "'What is the new name of bob?'" in warning
            assert "nobody can be asked" in warning


async def test_a_connector_may_forbid_its_server_to_ask(tmp_path: Path) -> None:
    async with asked_hub(tmp_path, saying({"name": "Ada"})) as hub:
        await hub.connectors.add("old", **ASKING, **quick(client_capabilities=[]))
        assert "elicitation" not in await capabilities(hub)
        said = await hub.call("mcp_old_rename", {"old": "bob"})
        assert (said.ok, said.result) == (True, "None")


async def test_a_persons_time_is_no_latency_and_does_not_end_a_call(tmp_path: Path) -> None:
    async def slowly(asked: Elicitation) -> dict[str, Any]:
        await asyncio.sleep(patient(1.5))
        return {"name": "Ada"}

    async with asked_hub(tmp_path, slowly) as hub:
        await hub.connectors.add("old", **ASKING, **quick(request_timeout=patient(1)))
        await capabilities(hub)
        said = await hub.call("mcp_old_rename", {"old": "bob"})
        assert said.result == "bob is Ada", said.error
        assert said.metadata.waited_ms >= patient(1400)
        assert said.metadata.duration_ms < patient(1000)
        record = (await hub.calls())[0]
        assert record.duration_ms < patient(1000)


async def test_progress_is_told_to_who_wants_to_hear(tmp_path: Path) -> None:
    heard: list[Progress] = []
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **quick())
        output = await hub.call("mcp_a_progress", {"n": 3}, on_progress=heard.append)
        assert output.result == "3 steps, told"
    assert [(one.progress, one.total) for one in heard] == [(1, 3), (2, 3), (3, 3)]


# REST


async def events_of(live: Live, body: Any, path: str = "/api/call") -> AsyncGenerator[tuple[str, Any]]:
    headers = {"Authorization": f"Bearer {live.token}", "Accept": "text/event-stream"}
    async with live.session.post(live.url + path, json=body, headers=headers) as response:
        assert response.status == 200
        kind = ""
        async for line in response.content:
            if line.startswith(b"event: "):
                kind = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                yield kind, json.loads(line[6:])


async def waiting(live: Live) -> Any:
    found: list[Any] = []

    async def is_there() -> bool:
        found[:] = (await live.ask("GET", "/api/questions")).value["questions"]
        return bool(found)

    await until(is_there)
    return found[0]


async def test_a_call_by_rest_waits_for_the_answer_to_a_question(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("old", **ASKING, **quick())
        async with deadline(20):
            call = asyncio.create_task(live.call("mcp_old_rename", old="bob"))
            question = await waiting(live)
            assert (question["connector"], question["text"]) == ("old", "What is the new name of bob?")
            assert (question["run"], question["agent"]) == (None, "")
            path = f"/api/questions/{question['id']}"
            wrong = await live.ask("POST", path, {"answer": {"name": 7}})
            assert wrong.status == 422, wrong.value
            assert (await live.ask("POST", path, {"answer": {"name": "Ada"}})).value["status"] == "answered"
            assert (await call)["result"] == "bob is Ada"
            call = asyncio.create_task(live.call("mcp_old_rename", old="bob"))
            path = f"/api/questions/{(await waiting(live))['id']}"
            assert (await live.ask("POST", path, {"decline": True})).value["status"] == "declined"
            output = await call
            assert output["result"] == "decline"
            assert "declined to answer" in output["metadata"]["warnings"][0]
            assert (await live.ask("POST", path, {"answer": {"name": "Ada"}})).status == 409


async def test_a_call_by_rest_that_nobody_answers_is_declined_and_says_so(tmp_path: Path) -> None:
    async with open_service(tmp_path, approval_wait=patient(0.3)) as live:
        await live.hub.connectors.add("old", **ASKING, **quick())
        output = await live.call("mcp_old_rename", old="bob")
        assert output["result"] == "decline"
        assert "nobody answered" in output["metadata"]["warnings"][0]
        assert (await live.ask("GET", "/api/questions")).value["questions"] == []
        body = {"tool": "mcp_old_rename", "arguments": {"old": "bob"}, "ask": False}
        output = (await live.ask("POST", "/api/call", body)).value
        assert output["result"] == "decline"
        assert "nobody can be asked" in output["metadata"]["warnings"][0]
        assert output["metadata"]["waited_ms"] == 0
        assert (await live.ask("POST", "/api/call", {**body, "ask": "no"})).status == 422


@pytest.mark.parametrize("path", ["/api/call", "/api/tools/{}/call"])
async def test_the_events_of_a_call_tell_progress_questions_and_the_end(tmp_path: Path, path: str) -> None:
    def body(tool: str, **arguments: Any) -> tuple[Any, str]:
        named = {"tool": tool} if path == "/api/call" else {}
        return {**named, "arguments": arguments}, path.format(tool)

    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("old", **ASKING, **quick())
        await live.hub.connectors.add("a", **stdio(), **quick())
        steps = [event async for event in events_of(live, *body("mcp_a_progress", n=2))]
        assert [kind for kind, _ in steps] == ["call.progress", "call.progress", "call.finished"]
        assert steps[0][1] == {"progress": 1, "total": 2, "message": None}
        assert steps[-1][1]["result"] == "2 steps, told"
        async for kind, data in events_of(live, *body("mcp_old_visit")):
            if kind == "question.asked":
                assert (data["url"], data["connector"]) == ("https://x.example/s", "old")
                await live.ask("POST", f"/api/questions/{data['id']}", {"answer": "done"})
            else:
                assert data["result"] == "accept"


async def test_a_question_of_a_call_is_its_users_alone_and_goes_when_the_caller_does(tmp_path: Path) -> None:
    async with open_service(tmp_path, multi_user=True) as live:
        for name in ("ann", "bob"):
            await live.ask("POST", "/api/users", {"name": name})
        keys = {
            name: (
                await live.ask(
                    "POST", "/api/keys", {"name": "k", "user": name, "scopes": ["read", "call", "approve"]}
                )
            ).value["key"]
            for name in ("ann", "bob")
        }
        await live.hub.connectors.add("old", **ASKING, **quick(), shared=True)
        body = {"tool": "mcp_old_rename", "arguments": {"old": "bob"}}
        ann, bob = ({"Authorization": f"Bearer {keys[name]}"} for name in ("ann", "bob"))
        call = asyncio.create_task(live.ask("POST", "/api/call", body, **ann))

        async def theirs(who: dict[str, str]) -> Any:
            return (await live.ask("GET", "/api/questions", **who)).value["questions"]

        await until(lambda: theirs(ann))
        (question,) = await theirs(ann)
        assert await theirs(bob) == []
        path = f"/api/questions/{question['id']}"
        assert (await live.ask("POST", path, {"answer": {"name": "Eve"}}, **bob)).status == 404
        assert (await live.ask("POST", path, {"answer": {"name": "Ann"}}, **ann)).status == 200
        assert (await call).value["result"] == "bob is Ann"


# What a client declares


async def test_a_clients_own_extensions_are_never_told_to_a_server(tmp_path: Path) -> None:
    with HttpProcess(tmp_path) as server:
        async with open_hub(tmp_path / "home") as hub:
            await hub.connectors.add("a", url=server.url, **quick())
            channel = CallbackChannel("x", None, None)
            channel.capabilities = {
                "elicitation": {"form": {}, "com.example/odd": {}},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
                "experimental": {"a": {}},
                "tasks": {"list": {}},
            }
            await hub.call("mcp_a_echo", {"text": "hi"}, channel=channel)
            sent = server.seen("tools/call")[-1]["meta"]
            assert sent["io.modelcontextprotocol/clientCapabilities"] == {"elicitation": {"form": {}}}


# Agents


async def test_a_person_sees_which_server_asks_through_an_agent_and_their_time_is_no_latency(
    tmp_path: Path,
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("old", **ASKING, **quick(request_timeout=patient(2)))
        began = monotonic()
        accepted = await hub.messages.post("mcp_old_rename old=bob")

        async def is_asked() -> bool:
            return bool(await hub.runs.questions())

        await until(is_asked)
        (question,) = await hub.runs.questions()
        assert (question.connector, question.agent) == ("old", accepted.run.agent)
        asked = monotonic()
        await give_time(2.5)  # a person thinks, for longer than the server may take
        thought = monotonic() - asked
        await hub.runs.answer(question.id, {"name": "Ada"})
        run = await hub.runs.finished(accepted.run)
        without_the_person = 1000 * (monotonic() - began - thought)
        assert "bob is Ada" in (run.answer or ""), run
        events = (await hub.runs.view(run.id)).events
        (finished,) = [one.data for one in events if one.kind == "call.finished"]
        assert finished["duration_ms"] < without_the_person
        assert 0 < (await hub.agents.view(run.agent)).numbers.latency_ms < without_the_person
