"""What else than tools passes through: resources, prompts, completion, progress, questions to a person."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult, PromptReference

from doors import open_door
from dragoman.scope import Caller
from servers.library_server import BIG, open_library
from servers.processes import HttpProcess, stdio

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])


async def says_ada(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


@ERAS
async def test_resources_and_prompts_of_one_connector_keep_their_names(tmp_path: Path, mode: str) -> None:
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)
            async with door.client("/mcp/all", mode=mode) as client:
                if mode == "legacy":
                    assert client.instructions == "Ask me."
                uris = [str(one.uri) for one in (await client.list_resources()).resources]
                assert "test://static-text" in uris
                read: Any = await client.read_resource("test://static-text")
                assert read.contents[0].text.startswith("This is the content")
                prompts = [one.name for one in (await client.list_prompts()).prompts]
                assert "test_simple_prompt" in prompts
                arguments = {"arg1": "a", "arg2": "b"}
                prompt: Any = await client.get_prompt("test_prompt_with_arguments", arguments)
                assert "arg1='a'" in prompt.messages[0].content.text


@ERAS
async def test_at_the_address_of_all_each_has_a_name_of_its_own(tmp_path: Path, mode: str) -> None:
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            for slug in ("one", "two"):
                await door.hub.connectors.add(slug, url=server.url)
            await door.hub.connectors.add("box", **stdio())
            async with door.client(mode=mode) as client:
                uris = {str(one.uri) for one in (await client.list_resources()).resources}
                assert {"one+test://static-text", "two+test://static-text"} <= uris
                read: Any = await client.read_resource("two+test://template/7/data")
                assert json.loads(read.contents[0].text)["id"] == "7"
                assert str(read.contents[0].uri) == "two+test://template/7/data"
                templates = [
                    one.uri_template for one in (await client.list_resource_templates()).resource_templates
                ]
                assert "one+test://template/{id}/data" in templates
                prompt: Any = await client.get_prompt("one__test_simple_prompt")
                assert prompt.messages[0].content.text == "This is a simple prompt for testing."
                reference = PromptReference(type="ref/prompt", name="two__test_prompt_with_arguments")
                completed = await client.complete(reference, {"name": "arg1", "value": "pa"})
                assert "paris" in completed.completion.values
                with pytest.raises(Exception, match="not found"):
                    await client.read_resource("box+test://static-text")
                with pytest.raises(Exception, match="Unknown name"):
                    await client.get_prompt("three__test_simple_prompt")


@ERAS
async def test_a_tool_that_asks_is_answered_by_the_person_at_the_client(tmp_path: Path, mode: str) -> None:
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)
            name = "test_input_required_result_elicitation"
            async with door.client("/mcp/all", mode=mode, elicitation_callback=says_ada) as client:
                result: Any = await client.call_tool(name, {})
                assert result.content[0].text == "Hello, Ada!"


async def test_who_cannot_be_asked_has_declined(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)
            async with door.client("/mcp/all", mode="legacy") as client:
                result: Any = await client.call_tool("test_elicitation", {"message": "who?"})
                assert "action=decline" in result.content[0].text
            output = await door.hub.call("mcp_all_test_elicitation", {"message": "who?"})
            assert "action=decline" in output.result
            assert "nobody can be asked" in output.metadata.warnings[0]


@ERAS
async def test_progress_reaches_the_client_that_wants_it(tmp_path: Path, mode: str) -> None:
    seen: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("all", url=server.url)
            async with door.client("/mcp/all", mode=mode) as client:
                await client.call_tool("test_tool_with_progress", {}, progress_callback=progressed)
                assert seen == [0, 50, 100]


async def test_resources_need_the_whole_connector(tmp_path: Path) -> None:
    callers = {"eve": Caller(user="eve", grants=(frozenset({"mcp_all_test_simple_text"}),))}
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        async with open_door(tmp_path / "home", callers=callers) as door:
            await door.hub.connectors.add("all", url=server.url, shared=True)
            uri = {"uri": "test://static-text"}
            assert "result" in (await door.ask("resources/read", uri, "/mcp/all")).value
            reply = await door.ask("resources/read", uri, "/mcp/all", x_test_caller="eve")
            assert (reply.status, reply.value["error"]["code"]) == (400, -32602)
            listed = (await door.ask("resources/list", path="/mcp/all", x_test_caller="eve")).value
            assert listed["result"]["resources"] == []


async def test_the_whole_of_a_resource_that_was_cut_has_an_address(tmp_path: Path) -> None:
    async with open_library() as library, open_door(tmp_path) as door:
        await door.hub.connectors.add("books", url=library.url)

        async def read(uri: str, path: str) -> str:
            reply = await door.ask("resources/read", {"uri": uri}, path)
            return reply.value["result"]["contents"][0]["text"]

        for uri, path in (("books+book:///big", "/mcp"), ("book:///big", "/mcp/books")):
            text = await read(uri, path)
            assert len(text.encode()) < 257 * 1024
            address = text.rpartition("[the whole, as a resource: ")[2].rstrip("]")
            assert await read(address, path) == BIG


@ERAS
async def test_code_runs_through_the_search_view(tmp_path: Path, mode: str) -> None:
    async with open_door(tmp_path) as door, door.client("/mcp?view=search", mode=mode) as client:
        ran: Any = await client.call_tool("run_code", {"code": "print('hi')\n6 * 7"})
        facts = json.loads(ran.content[0].text)
        assert (facts["result"], facts["printed"].strip(), facts["calls"]) == (42, "hi", 0)
        wrong: Any = await client.call_tool("run_code", {"code": "1 +"})
        assert wrong.is_error
        assert json.loads(wrong.content[0].text)["error"]["code"] == "code_syntax"
