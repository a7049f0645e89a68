"""The tools of a hub in other libraries: real clients and agents, over HTTP to models with a script."""

import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from dragoman import Annotations, BoundHub, Hub, Tool, ToolDefinition
from dragoman.integrations.anthropic import AnthropicTools
from dragoman.integrations.langchain import langchain_tools
from dragoman.integrations.model_tools import ModelTools, parameters
from dragoman.integrations.openai import ChatTools, ResponsesTools
from dragoman.integrations.pydantic_ai import HubToolset
from servers.hubs import open_hub, quick
from servers.processes import HERE
from servers.scenarios import Call, Reply, Turn, as_text
from servers.scripted_models import (
    ScriptedServer,
    open_scripted_anthropic,
    open_scripted_openai,
    open_scripted_responses,
)

pytestmark = pytest.mark.anyio
MODEL: dict[str, Any] = {"model": "scripted"}
SENT: list[str] = []


@asynccontextmanager
async def open_desk(home: Path) -> AsyncGenerator[Hub]:
    """A hub with a tool that only reads and one that destroys something; nobody answers in time."""
    SENT.clear()
    async with open_hub(home, approval_wait=0.001) as hub:

        @hub.tool(annotations=Annotations(read_only=True))
        def add(a: int, b: int) -> int:
            """Adds two numbers."""
            return a + b

        @hub.tool(annotations=Annotations(read_only=False, destructive=True))
        def send(to: str) -> str:
            """Sends a letter that cannot be taken back."""
            SENT.append(to)
            return f"sent to {to}"

        yield hub


# Conversations as programs have them: what the model says at last


async def by_chat(hub: BoundHub, server: ScriptedServer, text: str) -> str | None:
    tools = ChatTools(hub)
    messages: list[Any] = [{"role": "user", "content": text}]
    async with AsyncOpenAI(api_key="k", base_url=server.base_url) as client:
        while True:
            given = await tools.definitions()
            answer = await client.chat.completions.create(**MODEL, messages=messages, tools=given)
            message = answer.choices[0].message
            results = await tools.run(message)
            messages += [message, *results]
            if not results:
                return message.content


async def by_responses(hub: BoundHub, server: ScriptedServer, text: str) -> str | None:
    tools = ResponsesTools(hub)
    conversation: list[Any] = [{"role": "user", "content": text}]
    async with AsyncOpenAI(api_key="k", base_url=server.base_url) as client:
        while True:
            given = await tools.definitions()
            answer = await client.responses.create(**MODEL, input=conversation, tools=given)
            results = await tools.run(answer)
            conversation += [*answer.output, *results]
            if not results:
                return answer.output_text


async def by_messages(hub: BoundHub, server: ScriptedServer, text: str) -> str | None:
    tools = AnthropicTools(hub)
    messages: list[Any] = [{"role": "user", "content": text}]
    async with AsyncAnthropic(api_key="k", base_url=server.base_url) as client:
        while True:
            given = await tools.definitions()
            answer = await client.messages.create(**MODEL, max_tokens=500, messages=messages, tools=given)
            results = await tools.run(answer)
            messages += [{"role": "assistant", "content": answer.content}, *results]
            if not results:
                [last] = answer.content
                return last.text if last.type == "text" else None


async def by_pydantic_ai(hub: BoundHub, server: ScriptedServer, text: str) -> str | None:
    async with AsyncOpenAI(api_key="k", base_url=server.base_url) as client:
        model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
        return (await Agent(model, toolsets=[HubToolset(hub)]).run(text)).output


Conversation = Callable[[BoundHub, ScriptedServer, str], Awaitable[str | None]]
WAYS = pytest.mark.parametrize(
    ("talk", "opened"),
    [
        (by_chat, open_scripted_openai),
        (by_responses, open_scripted_responses),
        (by_messages, open_scripted_anthropic),
        (by_pydantic_ai, open_scripted_openai),
    ],
    ids=["chat", "responses", "anthropic", "pydantic-ai"],
)


def three_calls(turn: Turn) -> Reply:
    """One that works, one that needs a yes, one that nobody knows; then what came of them."""
    if turn.fresh:
        return Reply(text=" | ".join(as_text(result.value) for result in turn.fresh))
    calls = (Call("add", {"a": 2, "b": 3}), Call("send", {"to": "ada"}), Call("add", {"a": 2}))
    return Reply(tool_calls=calls)


@WAYS
async def test_a_model_gets_results_in_its_order_and_reads_what_to_do_about_the_others(
    tmp_path: Path, talk: Conversation, opened: Any
) -> None:
    async with open_desk(tmp_path) as hub, opened(three_calls) as server:
        said = await talk(hub, server, "Add, and send.")
        waiting = await hub.approvals.list()
        calls = {(one.tool, one.code, one.way) for one in await hub.calls()}
    assert said is not None
    added, asked, wrong = said.split(" | ")
    assert added == "5"
    assert "approval_pending: a person has to allow this call of send first" in asked
    # A model has no commands: what to do is in plain words.
    assert f"have a person decide on the approval {waiting[0].approval.id}, then call again" in asked
    assert "invalid_arguments: " in wrong
    assert "What to do: " in wrong
    assert (waiting[0].approval.binding.agent, SENT) == ("program", [])
    assert {("add", None, "agent"), ("send", "approval_pending", "agent")} <= calls
    described = json.dumps(server.requests[0]["tools"])
    assert "Adds two numbers." in described


async def test_anthropic_is_told_which_results_are_errors(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as hub, open_scripted_anthropic(three_calls) as server:
        await by_messages(hub, server, "Add, and send.")
    results = server.requests[1]["messages"][-1]["content"]
    assert [result["is_error"] for result in results] == [False, True, True]


async def test_langchain_runs_tools_by_messages_and_converts_their_definitions(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as hub:
        tools = {tool.name: tool for tool in await langchain_tools(hub)}
        called = {"type": "tool_call", "id": "c1"}
        added: Any = await tools["add"].ainvoke({**called, "name": "add", "args": {"a": 2, "b": 3}})
        asked: Any = await tools["send"].ainvoke({**called, "name": "send", "args": {"to": "ada"}})
    assert isinstance(added, ToolMessage)
    assert (added.content, added.tool_call_id, added.status) == ("5", "c1", "success")
    assert (asked.status, "have a person decide" in str(asked.content)) == ("error", True)
    defined = convert_to_openai_tool(tools["add"])["function"]
    assert (defined["name"], defined["description"]) == ("add", "Adds two numbers.")
    assert set(defined["parameters"]["properties"]) == {"a", "b"}


# What all of them have


async def test_after_a_person_said_yes_the_same_call_goes_through_once(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as hub:
        tools = ModelTools(hub)
        assert not (await tools.call("send", {"to": "ada"})).ok
        [waiting] = await hub.approvals.list()
        await hub.approvals.answer(waiting.approval.id, "once")
        assert not (await tools.call("send", {"to": "eve"})).ok
        allowed = await tools.call("send", {"to": "ada"})
        again = await tools.call("send", {"to": "ada"})
    assert (allowed.text, again.ok, SENT) == ("sent to ada", False, ["ada"])


async def test_only_narrows_what_a_model_sees_and_what_it_can_call(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as hub:
        tools = ChatTools(hub, only=["add"])
        seen = [one["function"]["name"] for one in await tools.definitions()]
        reply = await tools.call("send", {"to": "ada"})
        nothing = await ChatTools(hub, only=[]).definitions()
    assert (seen, nothing) == (["add"], [])
    assert reply.text.startswith("not_found: ")
    assert SENT == []


async def test_arguments_that_are_no_object_are_told_to_the_model(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as hub:
        tools = ModelTools(hub)
        told = [(await tools.call("add", text)).text for text in ('{"a": 1', "[1]", '{"a": 1, "b": 1}')]
    assert "invalid_arguments: the arguments are no valid JSON" in told[0]
    assert told[1] == "invalid_arguments: the arguments are no JSON object\nWhat to do: send one JSON object"
    assert told[2] == "2"


async def test_what_a_server_asks_is_answered_by_the_program_or_told_to_the_model(tmp_path: Path) -> None:
    asking = [str(HERE / "asking_stdio.py"), "1"]
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add(
            "old", command=sys.executable, args=["-S", *asking], approval="never", **quick()
        )
        answered = ModelTools(hub, on_elicitation=lambda asked: {"name": "Ada"})
        silent = ModelTools(hub)
        told = await answered.call("mcp_old_rename", {"old": "bob"})
        nobody = await silent.call("mcp_old_rename", {"old": "bob"})
    assert told.text == "bob is Ada"
    assert "nobody can be asked" in nobody.text


async def test_a_user_of_the_hub_has_their_own_tools_and_limits(tmp_path: Path) -> None:
    async with open_hub(tmp_path, multi_user=True) as hub:

        @hub.tool(annotations=Annotations(read_only=True))
        def add(a: int, b: int) -> int:
            """Adds two numbers."""
            return a + b

        acme = await hub.people.add_workspace("acme")
        await hub.people.add_user("ann", workspace=acme.id, limits={"calls_per_hour": 1})
        tools = ModelTools(await hub.as_user("ann", workspace="acme"))
        first, second = [await tools.call("add", {"a": 1, "b": 1}) for _ in range(2)]
    assert first.text == "2"
    assert "limit_reached: " in second.text


def test_a_schema_of_alternatives_becomes_an_object_that_providers_take() -> None:
    by_name = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
    by_number = {"properties": {"number": {"type": "integer"}}, "required": ["number"]}
    definition = ToolDefinition(original_name="find", input_schema={"anyOf": [by_name, by_number]})
    tool = Tool(name="find", workspace="local", connector_id="c", slug="c", definition=definition)
    assert parameters(tool) == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "number": {"type": "integer"}},
    }
