"""The offline model: what it does with sentences over the sample servers, and that it hides nothing."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from dragoman import Hub
from dragoman.agents.connector_query import ConnectorQuery
from dragoman.agents.model_errors import failed
from dragoman.agents.offline.decision import ASK, NOTE, Decider, Decision, Done, Turn, shown
from dragoman.agents.offline.model import OfflineModel
from dragoman.agents.offline.sentence import is_filler, tokens_of
from dragoman.catalog.search.vectors import WordVectors
from dragoman.catalog.search.words import parts, stem
from dragoman.errors import NeedsAuth
from dragoman.run import Question, Run
from dragoman.settings import Settings
from dragoman.tool import Tool
from servers.samples import add_every_sample, sample

READ, SEND = "mcp_email_read-emails", "mcp_email_send-email"
ISSUES, ISSUE, CLOSE = "mcp_tracker_list_issues", "mcp_tracker_get_issue", "mcp_tracker_close_issue"
POST, MESSAGES, SEARCH = "mcp_chat_post_message", "mcp_chat_read_messages", "mcp_chat_search_messages"
TASKS, CREATE_TASK = "mcp_tasks_list_tasks", "mcp_tasks_create_task"

# Called at once: the tool, its arguments, and what of the sentence it did not use.
CALLED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "check my 2 latest emails": (READ, {"limit": 2}, []),
    "look at my emails": (READ, {}, []),
    "and the latest email?": (READ, {}, []),
    "show my unread emails from giulia": (READ, {}, ["unread", "from giulia"]),
    "list open issues": (ISSUES, {"state": "open"}, []),
    "which issues are open and why?": (ISSUES, {"state": "open"}, ["and why"]),
    "show issue #12 of repository xyne": (ISSUE, {"repository": "xyne", "number": 12}, []),
    "list tasks due before 2026-11-20": (TASKS, {"due_before": "2026-11-20"}, []),
    "list my tasks": (TASKS, {}, ["my"]),
    "read messages from oncall": (MESSAGES, {}, ["from oncall"]),
    "read messages sender=oncall": (MESSAGES, {"sender": "oncall"}, []),
    "read the latest message": (MESSAGES, {}, []),
    'search messages for "invoice"': (SEARCH, {"query": "invoice"}, []),
    "list channels": ("mcp_chat_list_channels", {}, []),
    "who is here?": ("mcp_chat_who_is_here", {}, []),
    "find repositories": ("mcp_tracker_search_repositories", {}, []),
}
# Shown as a choice: the first tool, what is filled in, and what of the sentence it does not use.
ASKED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "send an email to bob@example.com with subject Hello and body 'See you'": (
        SEND,
        {"to": "bob@example.com", "subject": "Hello", "body": "See you"},
        [],
    ),
    "send an email to ann@example.com and bob@example.com": (
        SEND,
        {"to": ["ann@example.com", "bob@example.com"]},
        [],
    ),
    "send a test email": (SEND, {}, ["test"]),
    "close issue 3 in xyne": (CLOSE, {"number": 3}, ["in xyne"]),
    'post "lunch?" in #general': (POST, {"channel": "general", "text": "lunch?"}, []),
    "delete my emails": (READ, {}, ["delete"]),
    "list issues that are not open": (ISSUES, {}, ["not open"]),
    "check my emails and send a summary to bob@example.com": (SEND, {"to": "bob@example.com"}, ["summary"]),
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Tool]:
    """All tools of the four sample servers."""

    async def listed() -> Sequence[Tool]:
        data = tmp_path_factory.mktemp("samples")
        async with Hub(Settings(home=data / "home", model="offline")) as hub:
            await add_every_sample(hub, data)
            return hub.tools.list()

    return asyncio.run(listed())


@pytest.fixture(scope="module")
def decider() -> Decider:
    return Decider(WordVectors.load())


def offered(tools: Sequence[Tool]) -> dict[str, ToolDefinition]:
    found = {one.name: ToolDefinition(name=one.name, metadata={"tool": one}) for one in tools}
    return {**found, ASK: ToolDefinition(name=ASK)}


def forms_of(decision: Decision) -> list[Mapping[str, Any]]:
    """The calls that a question offers."""
    assert decision.tool == ASK
    return [one["properties"] for one in decision.arguments["fields"]["oneOf"] if "properties" in one]


def unused_in(text: str) -> list[str]:
    found = re.search(r"Not used: ([^·\n]*)", text)
    return found[1].strip().split(", ") if found else []


@pytest.mark.parametrize("sentence", CALLED)
def test_what_only_reads_is_clearly_first_and_has_its_values_is_called(
    sentence: str, tools: Sequence[Tool], decider: Decider
) -> None:
    tool, arguments, unused = CALLED[sentence]
    decision = decider.decide(Turn(sentence), offered(tools))
    assert (decision.tool, decision.arguments) == (tool, arguments)
    turn = Turn(sentence, done=[Done(tool, {"rows": []})])
    assert unused_in(decider.decide(turn, offered(tools)).text) == unused


@pytest.mark.parametrize("sentence", ASKED)
def test_everything_else_is_a_choice_of_three_with_what_can_be_filled_in(
    sentence: str, tools: Sequence[Tool], decider: Decider
) -> None:
    tool, arguments, unused = ASKED[sentence]
    decision = decider.decide(Turn(sentence), offered(tools))
    forms = forms_of(decision)
    assert len(forms) == 3
    assert (forms[0]["tool"]["const"], forms[0]["arguments"]["default"]) == (tool, arguments)
    assert unused_in(decision.arguments["fields"]["oneOf"][0]["description"]) == unused


def test_the_form_of_a_tool_is_its_own_schema(tools: Sequence[Tool], decider: Decider) -> None:
    decision = decider.decide(Turn("send an email"), offered(tools))
    question = Question(
        **dict.fromkeys(("id", "workspace", "user", "thread", "run", "root", "key", "agent", "text"), ""),
        fields=decision.arguments["fields"],
        expires_at=None,  # type: ignore[arg-type]
    )
    send = next(one for one in tools if one.name == SEND)
    schema = question.calls[0]["properties"]["arguments"]
    assert {**schema, "$id": "", "default": {}} == {**send.definition.input_schema, "$id": "", "default": {}}
    assert question.takes_text


def test_a_value_that_two_parameters_could_take_goes_to_neither(
    tools: Sequence[Tool], decider: Decider
) -> None:
    """`list_tasks` has two dates, and nothing says which of them is meant."""
    (match, *_) = decider.matches("list tasks of 2026-11-20", tools, {})
    assert (match.tool.name, match.filled.arguments) == (TASKS, {})
    assert match.filled.unused == ["of 2026-11-20"]


def test_names_that_an_earlier_result_brought_are_filled_in(tools: Sequence[Tool], decider: Decider) -> None:
    channels = Done("mcp_chat_list_channels", {"channels": [{"name": "alerts", "topic": "What broke"}]})
    without = decider.decide(Turn("read messages in alerts"), offered(tools))
    assert without.arguments == {}
    known = decider.decide(Turn("read messages in alerts", earlier=[channels]), offered(tools))
    assert (known.tool, known.arguments) == (MESSAGES, {"channel": "alerts"})


def test_hi_is_answered_with_what_is_connected_and_three_sentences_that_work(
    tools: Sequence[Tool], decider: Decider
) -> None:
    for sentence in ("hi, what can you do?", "help", "hello!", ""):
        text = decider.decide(Turn(sentence), offered(tools)).text
        assert text.startswith(NOTE), sentence
        for connector in ("email", "tracker", "chat", "tasks"):
            assert f"**{connector}**" in text
        tried = re.findall(r"^- (?!\*)(.+)$", text, re.M)
        assert len(tried) == 3
        for one in tried:
            assert decider.decide(Turn(one), offered(tools)).tool in {tool.name for tool in tools}, one
        assert "OPENAI_API_KEY" in text
    assert "Nothing is connected" in decider.decide(Turn("hi"), offered([])).text


def test_what_fits_nothing_is_said_to(tools: Sequence[Tool], decider: Decider) -> None:
    text = decider.decide(Turn("what is the capital of France?"), offered(tools)).text
    assert text.startswith("I found no tool for this. Not used: what is the capital of France?")
    assert NOTE in text


_WORDS = (
    "send check show list delete the my first emails issues open closed not without unread from giulia to in"
    " with subject repository xyne #12 #alerts 2 17 3.5 2026-11-20 ann@example.com bob@example.com limit=5"
    " state: 'see-you' \"two-words\" https://example.com/x /tmp/a.txt tasks due before after messages latest"
    " channel sender octocat and or then why é 🍞 ' \" = :"
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(_WORDS.split()), max_size=14).map(" ".join))
def test_no_value_is_invented_and_no_word_is_dropped_silently(
    tools: Sequence[Tool], decider: Decider, sentence: str
) -> None:
    for match in decider.matches(sentence, tools, {}):
        filled, definition = match.filled, match.tool.definition
        values = [
            str(one)
            for value in filled.arguments.values()
            for one in (value if isinstance(value, list) else [value])
        ]
        for value in values:
            assert value.lower() in sentence.lower() or value.removesuffix(".0") in sentence
        own = {stem(word) for word in parts(f"{match.tool.name} {match.tool.title} {definition.description}")}
        named = " ".join(filled.unused)
        for token in tokens_of(sentence):
            said = token.text.strip("'\"#")
            is_the_tools = bool({stem(part) for part in parts(token.text)} & own) or token.word == "latest"
            is_a_parameter = any(token.word in (name, *parts(name)) for name in filled.arguments)
            is_a_value = any(said.lower() in value.lower() for value in values) or is_a_parameter
            assert is_filler(token) or is_the_tools or is_a_value or said in named, (token, match)


@pytest.mark.parametrize("sentence", ["", "   ", "🍞" * 500, "\x00\x01", "'\"“«`", "メールを", "a" * 20_000])
@pytest.mark.anyio
async def test_odd_input_gets_an_answer(sentence: str, tools: Sequence[Tool]) -> None:
    assert await spoken(sentence, tools)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {"x": True, "y": {"$ref": "#/$defs/Y"}}, "$defs": {"Y": {"$ref": "#/$defs/Y"}}},
        {"type": "object", "properties": {"emails": {"type": ["array", "null"], "items": {"type": "weird"}}}},
        {"type": "object", "properties": {"emails": {"anyOf": []}}, "required": ["emails", "absent"]},
        {"properties": {"check": {"enum": [1, None, "two"], "format": "nonsense"}}, "required": "check"},
    ],
)  # fmt: skip
@pytest.mark.anyio
async def test_odd_schemas_get_an_answer(schema: dict[str, Any], tools: Sequence[Tool]) -> None:
    from dataclasses import replace

    (read,) = [one for one in tools if one.name == READ]
    odd = replace(read, definition=replace(read.definition, input_schema=schema))
    assert "could not be matched" not in await spoken('check emails "now" 2 for ann@example.com', [odd])


async def spoken(sentence: str, tools: Sequence[Tool]) -> str:
    """What comes of a request through pydantic-ai's interface: a text, or the name of a tool."""
    parameters = ModelRequestParameters(function_tools=[*offered(tools).values()])
    messages = [ModelRequest(parts=[UserPromptPart(sentence)])]
    async with OfflineModel().request_stream([*messages], None, parameters) as stream:
        pieces = [event async for event in stream]
    response = stream.get()
    assert pieces
    assert (response.model_name, response.usage.total_tokens) == ("offline", 0)
    return response.text or response.tool_calls[0].tool_name


@pytest.mark.anyio
async def test_text_is_streamed_in_pieces(tools: Sequence[Tool]) -> None:
    parameters = ModelRequestParameters(function_tools=[*offered(tools).values()])
    async with OfflineModel().request_stream(
        [ModelRequest(parts=[UserPromptPart("hi")])], None, parameters
    ) as stream:
        assert len([event async for event in stream]) > 5


@pytest.mark.anyio
async def test_an_error_is_told_with_its_hint_and_nothing_is_called_again(tools: Sequence[Tool]) -> None:
    asked = ModelRequest(parts=[UserPromptPart("check my emails")])
    failure = failed(NeedsAuth("the mailbox is locked", hint="sign in again")).content
    came = ModelRequest(parts=[ToolReturnPart(READ, failure, "c1", outcome="failed")])
    parameters = ModelRequestParameters(function_tools=[*offered(tools).values()])
    async with OfflineModel().request_stream([asked, came], None, parameters) as stream:
        _ = [event async for event in stream]
    told = stream.get().text or ""
    assert "`Read e-mails` did not work: the mailbox is locked" in told
    assert "Hint: sign in again" in told
    assert "Next:" not in told, "that is for models"


# Whole runs: the choice travels as a question, and the answer makes exactly that call.


async def question_of(hub: Hub, run: Run) -> Question:
    """What the run waits for."""
    async for event in hub.runs.follow(run.id):
        if event.kind == "question.asked":
            return await hub.runs.question(event.data["question"])
    raise AssertionError("nothing was asked")


@pytest.mark.anyio
async def test_the_form_that_is_answered_is_the_call_that_is_made_and_approved(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path / "home", model="offline")) as hub:
        await hub.connectors.add("email", **sample("email", tmp_path))
        accepted = await hub.messages.post("send an email to bob@example.com")
        question = await question_of(hub, accepted.run)
        chosen = question.calls[0]["properties"]
        arguments = {**chosen["arguments"]["default"], "subject": "Tea"}
        await hub.runs.answer(question.id, {"tool": chosen["tool"]["const"], "arguments": arguments})
        async for event in hub.runs.follow(accepted.run.id):
            if event.kind == "approval.requested":
                (asked,) = await hub.approvals.list()
                assert (asked.approval.binding.tool, asked.asked.arguments) == (SEND, arguments)
                await hub.approvals.answer(asked.approval.id, "once")
        run = await hub.runs.get(accepted.run.id)
        assert run.status == "done"
        assert "Tea" in (run.answer or "")


@pytest.mark.anyio
async def test_an_answer_that_the_tool_would_not_take_is_refused_and_none_calls_nothing(
    tmp_path: Path,
) -> None:
    from dragoman.errors import InvalidArguments

    async with Hub(Settings(home=tmp_path / "home", model="offline")) as hub:
        await hub.connectors.add("email", **sample("email", tmp_path))
        accepted = await hub.messages.post("send an email")
        question = await question_of(hub, accepted.run)
        for wrong in ({"tool": SEND, "arguments": {}}, {"tool": "other", "arguments": {}}, {"tool": SEND}):
            with pytest.raises(InvalidArguments):
                await hub.runs.answer(question.id, wrong)
        await hub.runs.answer(question.id, "none")
        run = await hub.runs.finished(accepted.run)
        assert (run.status, run.usage.calls) == ("done", 0)
        assert "Nothing was called" in (run.answer or "")


@pytest.mark.anyio
async def test_the_next_message_answers_a_choice_in_other_words(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path / "home", model="offline")) as hub:
        await hub.connectors.add("email", **sample("email", tmp_path))
        accepted = await hub.messages.post("delete my emails")
        await question_of(hub, accepted.run)
        again = await hub.messages.post("check my 2 latest emails", thread=accepted.run.thread)
        assert again.run.id == accepted.run.id
        assert (await hub.runs.finished(accepted.run)).answer.startswith("2 emails")  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_agents_of_connectors_and_several_at_once_say_what_they_are(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path / "home", model="offline")) as hub:
        for name in ("email", "tracker"):
            await hub.connectors.add(name, **sample(name, tmp_path))
        asked = await hub.queries.ask(ConnectorQuery(connector_id="tracker", query="list open issues"))
        assert asked["status"] == "success"
        assert "[c1]" in asked["data"]
        assert NOTE in asked["data"]
        context = ConnectorQuery(connector_id="tracker", query="list issues", context="only those of xyne")
        assert "Not read: only those of xyne" in (await hub.queries.ask(context))["data"]
        planned = ConnectorQuery(connector_id="tracker", query="close issue 3", plan_only=True)
        plan = await hub.queries.ask(planned)
        assert [step["tool"] for step in plan["metadata"]["plan"]] == [CLOSE]
        assert "you are asked first" in plan["data"]
        assert NOTE in plan["data"]
        both = await hub.ask("@email @tracker what can you do?")
        assert both.status == "done"
        said = [one.text for one in await hub.messages.list(both.thread) if one.author == "agent"]
        assert ["**email**" in "".join(said), "**tracker**" in "".join(said)] == [True, True]
        for exposure in ("search", "delegate", "code"):
            run = await hub.messages.ask("check my 2 latest emails", options={"exposure": exposure})
            assert "2 emails" in (run.answer or ""), exposure


def test_rows_are_shown_beside_figures_and_one_thing_with_what_belongs_to_it() -> None:
    rows = [{"name": "clock", "what": "Says the time"}, {"name": "calendar", "what": "Says the day"}]
    assert shown("manage", {"tools": rows, "shown": "2 of 2"}, "success").splitlines() == [
        "2 tools:",
        "- **clock** · Says the time",
        "- **calendar** · Says the day",
    ]
    told = shown("get", {"id": "7", "title": "Lamp is out", "labels": ["light", "urgent"]}, "success")
    assert told.splitlines()[1:] == ["- id: 7", "- title: Lamp is out", "- labels: light, urgent"]
