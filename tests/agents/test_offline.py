"""The offline model in whole turns, through pydantic-ai's own loop."""

import json
import random
import time
from collections.abc import AsyncIterable
from datetime import date
from typing import Any

import pytest
from offline_sets import ASK_PERSON, calls_in, cases_instructions, respond, sets, text_in
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from dragoman.agents.offline import OfflineModel
from dragoman.agents.offline.answers import NOTE
from dragoman.agents.offline.model import Mind
from dragoman.agents.offline.turn import Done, Turn, read_turn
from patience import patient

pytestmark = pytest.mark.anyio

MAIL = sets()["mail"]
READ, SEND = "mcp_email_read-emails", "mcp_email_send-email"
INBOX = {
    "emails": [
        {
            "id": "m1",
            "from": "ann@example.com",
            "subject": "Lunch on Friday",
            "body": "Hi! " * 60,
            "read": False,
        },
        {
            "id": "m2",
            "from": "bob@example.com",
            "subject": "Your invoice",
            "body": "See below. " * 30,
            "read": True,
        },
    ],
    "count": 2,
    "more": False,
}


def asked(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def returned(response: ModelResponse, *contents: Any, outcome: Any = "success") -> list[ModelMessage]:
    """The response, and the results of its calls in their order."""
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    parts = [
        ToolReturnPart(call.tool_name, content, call.tool_call_id, outcome=outcome)
        for call, content in zip(calls, contents, strict=True)
    ]
    return [response, ModelRequest(parts=parts)]


async def test_news_of_tools_in_the_middle_of_a_turn_are_nobodys_request() -> None:
    first = await respond([asked("check my 2 latest emails")], MAIL)
    called, results = returned(first, INBOX)
    news = ModelRequest(parts=[*results.parts, ToolAvailabilityDeltaPart(tools_added=[SEND])])  # type: ignore[list-item]
    messages = OfflineModel().prepare_messages([asked("check my 2 latest emails"), called, news])
    turn = read_turn(messages, "")
    assert (turn.text, turn.instructions, len(turn.done)) == ("check my 2 latest emails", "", 1)
    assert text_in(await respond(messages, MAIL)).startswith("2 emails:")


async def test_a_list_becomes_short_lines_with_its_telling_fields_and_says_what_this_is() -> None:
    turn: list[ModelMessage] = [asked("check my 2 latest emails")]
    first = await respond(turn, MAIL)
    assert calls_in(first) == [(READ, {"limit": 2})]
    answer = text_in(await respond([*turn, *returned(first, INBOX)], MAIL))
    assert answer.startswith("2 emails:")
    assert "- **Lunch on Friday** · " in answer
    assert "ann@example.com" in answer
    assert "Hi! Hi!" not in answer
    assert answer.count(NOTE) == 1


async def test_the_note_comes_once_in_a_thread() -> None:
    turn: list[ModelMessage] = [asked("check my emails")]
    first = await respond(turn, MAIL)
    turn += returned(first, INBOX)
    turn += [await respond(turn, MAIL), asked("check my latest email")]
    second = await respond(turn, MAIL)
    assert calls_in(second)
    answer = text_in(await respond([*turn, *returned(second, INBOX)], MAIL))
    assert answer
    assert NOTE not in answer


async def test_two_clauses_are_two_calls_and_the_second_carries_the_result_of_the_first() -> None:
    turn: list[ModelMessage] = [asked("check my emails and send a summary to bob@example.com")]
    first = await respond(turn, MAIL)
    assert calls_in(first) == [(READ, {})]
    turn += returned(first, INBOX)
    second = await respond(turn, MAIL)
    ((name, arguments),) = calls_in(second)
    assert (name, arguments["to"]) == (SEND, "bob@example.com")
    assert "Lunch on Friday" in arguments["body"]
    answer = text_in(await respond([*turn, *returned(second, {"id": "s1"})], MAIL))
    assert "read-emails" in answer
    assert "send-email" in answer


async def test_one_of_the_earlier_rows_is_pointed_at() -> None:
    reply = ToolDefinition(
        name="reply",
        description="Reply to an e-mail.",
        parameters_json_schema={
            "type": "object",
            "properties": {"email_id": {"type": "string"}, "body": {"type": "string"}},
            "required": ["email_id", "body"],
        },
    )
    turn: list[ModelMessage] = [asked("check my emails")]
    turn += returned(await respond(turn, [*MAIL, reply]), INBOX)
    turn += [await respond(turn, [*MAIL, reply]), asked('reply to the second one saying "Thanks, paid."')]
    assert calls_in(await respond(turn, [*MAIL, reply])) == [
        ("reply", {"email_id": "m2", "body": "Thanks, paid."})
    ]


async def test_words_in_quotes_are_a_value_and_point_at_nothing() -> None:
    turn: list[ModelMessage] = [asked("check my emails")]
    turn += returned(await respond(turn, MAIL), INBOX)
    request = "send an email to ann@example.com with subject Tea and body 'Looking into it'"
    turn += [await respond(turn, MAIL), asked(request)]
    ((_, arguments),) = calls_in(await respond(turn, MAIL))
    assert arguments["body"] == "Looking into it"


async def test_a_missing_value_is_asked_for_and_the_answer_is_used() -> None:
    turn: list[ModelMessage] = [asked('send an email with subject "Hello"')]
    question = await respond(turn, [*MAIL, ASK_PERSON])
    ((name, arguments),) = calls_in(question)
    assert name == "ask_person"
    assert arguments["fields"] == ["to"]
    turn += returned(question, "use ann@example.com please")
    sending = await respond(turn, [*MAIL, ASK_PERSON])
    assert calls_in(sending) == [(SEND, {"subject": "Hello", "to": "ann@example.com"})]


async def test_an_answer_by_field_is_used_too() -> None:
    turn: list[ModelMessage] = [asked("show me the forecast")]
    question = await respond(turn, [*sets()["weather"], ASK_PERSON])
    turn += returned(question, {"location": "Oslo"})
    assert calls_in(await respond(turn, [*sets()["weather"], ASK_PERSON])) == [
        ("get_forecast", {"location": "Oslo"})
    ]


async def test_a_question_that_was_not_answered_is_not_put_again() -> None:
    turn: list[ModelMessage] = [asked("send an email")]
    question = await respond(turn, [*MAIL, ASK_PERSON])
    answer = await respond(
        [*turn, *returned(question, "nobody answered", outcome="failed")], [*MAIL, ASK_PERSON]
    )
    assert calls_in(answer) == []
    assert "`to`" in text_in(answer)


async def test_without_a_way_to_ask_the_question_is_the_answer_and_the_next_message_its_reply() -> None:
    turn: list[ModelMessage] = [asked("send an email")]
    question = await respond(turn, MAIL)
    assert "I still need `to`" in text_in(question)
    turn += [question, asked("ann@example.com")]
    assert calls_in(await respond(turn, MAIL)) == [(SEND, {"to": "ann@example.com"})]


async def test_an_error_is_told_with_its_hint_and_later_steps_do_not_run() -> None:
    turn: list[ModelMessage] = [asked("check my emails and send a summary to bob@example.com")]
    first = await respond(turn, MAIL)
    failure = {"error": {"code": "needs_auth", "message": "the mailbox is locked", "hint": "sign in again"}}
    answer = await respond([*turn, *returned(first, failure, outcome="failed")], MAIL)
    assert calls_in(answer) == []
    assert "the mailbox is locked" in text_in(answer)
    assert "sign in again" in text_in(answer)


async def test_a_refused_call_is_not_made_again() -> None:
    turn: list[ModelMessage] = [asked("send a test email to ann@example.com")]
    first = await respond(turn, MAIL)
    answer = await respond([*turn, *returned(first, "the person said no", outcome="denied")], MAIL)
    assert calls_in(answer) == []
    assert "the person said no" in text_in(answer)


async def test_several_people_of_a_tool_that_takes_one_are_calls_side_by_side() -> None:
    invite = ToolDefinition(
        name="invite",
        description="Invite a person.",
        parameters_json_schema={
            "type": "object",
            "properties": {"address": {"type": "string", "format": "email"}},
            "required": ["address"],
        },
    )
    response = await respond("invite ann@example.com, bob@example.com and eve@example.com", [invite])
    assert [arguments["address"] for _, arguments in calls_in(response)] == [
        "ann@example.com",
        "bob@example.com",
        "eve@example.com",
    ]


async def test_what_fits_nothing_is_answered_honestly() -> None:
    text = text_in(await respond("what is the capital of France?", MAIL))
    assert "not a language model" in text
    assert "`read-emails`" in text
    for way in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "Ollama", "dragoman models"):
        assert way in text


async def test_markers_of_sources_stay_in_the_answer() -> None:
    turn: list[ModelMessage] = [asked("check my emails")]
    first = await respond(turn, MAIL)
    answer = text_in(await respond([*turn, *returned(first, {"result": INBOX, "source": "c1"})], MAIL))
    assert "[c1]" in answer
    assert "Lunch on Friday" in answer


async def test_tools_that_a_search_found_are_called_through_call_tool() -> None:
    search = ToolDefinition(
        name="search_tools",
        description="Finds tools by what they do.",
        parameters_json_schema={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    )
    call = ToolDefinition(
        name="call_tool",
        description="Calls a tool that search_tools found.",
        parameters_json_schema={
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name"],
        },
    )
    turn: list[ModelMessage] = [asked("water the roses for 5 minutes")]
    first = await respond(turn, [search, call])
    assert calls_in(first) == [("search_tools", {"query": "water the roses for 5 minutes"})]
    hits = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters_json_schema}
        for tool in sets()["greenhouse"]
    ]
    turn += returned(first, {"tools": hits, "total": 4})
    second = await respond(turn, [search, call])
    wanted = {"name": "water_plants", "arguments": {"bed": "roses", "minutes": 5}}
    assert calls_in(second) == [("call_tool", wanted)]
    answer = text_in(
        await respond([*turn, *returned(second, "Watered roses for 5 minutes.")], [search, call])
    )
    assert "Watered roses" in answer
    nothing = await respond([*turn[:1], *returned(first, {"tools": [], "total": 4})], [search, call])
    assert "found nothing" in text_in(nothing)


async def test_tools_that_a_search_loads_are_called_in_the_next_step() -> None:
    search = ToolDefinition(
        name="search_tools",
        description="Finds tools among 900 by what they do. What it finds can be called in the next step.",
        parameters_json_schema={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    )
    turn: list[ModelMessage] = [asked("check my 2 latest emails")]
    first = await respond(turn, [search])
    assert calls_in(first) == [("search_tools", {"query": "check my 2 latest emails"})]
    found = {
        "tools": [{"name": tool.name, "description": tool.description} for tool in MAIL],
        "shown": "2 of 900",
    }
    turn += returned(first, found)
    second = await respond(turn, [search, *MAIL])
    assert calls_in(second) == [(READ, {"limit": 2})]
    answer = text_in(await respond([*turn, *returned(second, INBOX)], [search, *MAIL]))
    assert answer.startswith("2 emails:")
    assert "search_tools" not in answer


async def test_the_answer_of_a_connector_is_passed_on_as_it_is() -> None:
    tools, instructions = sets()["management"], cases_instructions("management")
    turn: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("check my emails and send a summary to bob@example.com")])
    ]
    first = await respond(turn, tools, instructions)
    ((name, arguments),) = calls_in(first)
    assert name == "query_mcp_connector"
    assert arguments["query"] == "check my emails and send a summary to bob@example.com"
    result = {"status": "success", "data": f"2 emails: Lunch [c1]\n\n_{NOTE}_", "metadata": {"plan": []}}
    answer = text_in(await respond([*turn, *returned(first, result)], tools, instructions))
    assert answer.startswith("2 emails: Lunch [c1]")
    assert answer.count(NOTE) == 1


async def test_where_only_a_plan_is_wanted_it_is_stated_and_nothing_else_is_called() -> None:
    state = ToolDefinition(
        name="state_plan",
        description="Says your plan before you begin.",
        parameters_json_schema={
            "type": "object",
            "properties": {"steps": {"type": "array"}},
            "required": ["steps"],
        },
    )
    told = "\n".join(
        f"- {tool.name}: {tool.description}\n  {json.dumps(tool.parameters_json_schema)}" for tool in MAIL
    )
    instructions = f"Only a plan is wanted: state it with state_plan. Your tools would be:\n{told}"
    turn: list[ModelMessage] = [asked("check my emails and send a summary to bob@example.com")]
    first = await respond(turn, [state], instructions)
    ((name, arguments),) = calls_in(first)
    assert name == "state_plan"
    assert [(step["tool"], step["depends_on"]) for step in arguments["steps"]] == [(READ, []), (SEND, [1])]
    assert "read-emails" in text_in(await respond([*turn, *returned(first, "Noted.")], [state], instructions))


async def test_the_loop_of_pydantic_ai_runs_it_with_plain_functions() -> None:
    orders: list[tuple[str, int]] = []
    agent = Agent(OfflineModel())

    @agent.tool_plain
    def order_bread(bread: str, quantity: int) -> str:
        """Orders bread for pick-up."""
        orders.append((bread, quantity))
        return f"{quantity} {bread} will be ready at noon"

    result = await agent.run('please order 3 "rye bread"')
    assert orders == [("rye bread", 3)]
    assert "3 rye bread will be ready at noon" in result.output
    assert result.response.model_name == "offline"


async def test_a_tool_that_asks_for_another_try_is_called_once() -> None:
    tries: list[str] = []
    agent = Agent(OfflineModel(), retries=3)

    @agent.tool_plain
    def order_bread(bread: str) -> str:
        """Orders bread for pick-up."""
        tries.append(bread)
        raise ModelRetry("no such bread")

    result = await agent.run('order bread "brick"')
    assert tries == ["brick"]
    assert "no such bread" in result.output


async def test_text_is_streamed_word_by_word() -> None:
    events: list[Any] = []

    async def keep(_: Any, stream: AsyncIterable[Any]) -> None:
        events.extend([event async for event in stream])

    result = await Agent(OfflineModel()).run("what is the capital of France?", event_stream_handler=keep)
    assert any(isinstance(event, PartStartEvent) for event in events)
    assert len([event for event in events if isinstance(event, PartDeltaEvent)]) > 20
    assert "not a language model" in result.output


async def test_calls_are_streamed_too() -> None:
    parameters = ModelRequestParameters(function_tools=MAIL)
    async with OfflineModel().request_stream([asked("check my 2 latest emails")], None, parameters) as stream:
        async for _ in stream:
            pass
    assert calls_in(stream.get()) == [(READ, {"limit": 2})]
    assert stream.get().finish_reason == "tool_call"


class Plan(BaseModel):
    reason: str
    tools: list[str]
    sure: bool


async def test_a_structured_output_is_filled_in_its_form() -> None:
    result = await Agent(OfflineModel(), output_type=Plan).run("what is the capital of France?")
    assert "not a language model" in result.output.reason
    assert result.output.tools == []


async def test_it_stops_after_six_calls() -> None:
    turn: list[ModelMessage] = [asked("check my emails")]
    for number in range(6):
        call = ToolCallPart("elsewhere", json.dumps({"number": number}), f"c{number}")
        turn += [
            ModelResponse(parts=[call]),
            ModelRequest(parts=[ToolReturnPart("elsewhere", "x", f"c{number}")]),
        ]
    assert calls_in(await respond(turn, MAIL)) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "🍞" * 500,
        "\x00\x01",
        "'\"“«`",
        "zeige meine letzten 2 Emails",
        "メールを見せて",
        "a" * 20_000,
        "@ # / : =",
    ],
)
async def test_odd_input_gets_an_answer(text: str) -> None:
    response = await respond(text, MAIL)
    assert calls_in(response) or text_in(response)


async def test_a_megabyte_is_read_quickly_and_answered() -> None:
    assert (await respond("lorem, and ipsum: dolor 12 " * 40_000, MAIL)).parts


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {
            "type": "object",
            "properties": {"x": True, "y": {"$ref": "#/$defs/Y"}},
            "$defs": {"Y": {"$ref": "#/$defs/Y"}},
        },
        {"type": "object", "properties": {"emails": {"type": ["array", "null"], "items": {"type": "weird"}}}},
        {"type": "object", "properties": {"emails": {"anyOf": []}}, "required": ["emails", "absent"]},
        {"properties": {"check": {"enum": [1, None, "two"], "format": "nonsense"}}, "required": "check"},
    ],
)
async def test_odd_schemas_get_an_answer(schema: dict[str, Any]) -> None:
    tool = ToolDefinition(name="check_emails", description="Check emails", parameters_json_schema=schema)
    response = await respond('check emails "now" 2 times for ann@example.com', [tool])
    assert calls_in(response) or "I still need" in text_in(response)


async def test_a_history_of_texts_only_is_read() -> None:
    turn: list[ModelMessage] = [
        asked("hello"),
        ModelResponse(parts=[TextPart("hi")]),
        asked("check my emails"),
    ]
    assert calls_in(await respond(turn, MAIL)) == [(READ, {})]


async def test_no_jumble_of_words_breaks_it() -> None:
    """Below the boundary of the model, which would hide an error."""
    decider = await Mind().ready()
    chance = random.Random(7)  # the same jumbles in every run
    words = [
        *[
            "send",
            "check",
            "the",
            "first",
            "one",
            "and",
            "then",
            "@bob",
            "#x",
            "ann@e.com",
            "'q'",
            ",",
            ".",
            ";",
            ":",
            "=",
            "/",
            "/a/b",
            "12",
            "2026-01-01",
            "5pm",
            "to",
        ],
        *[
            "from",
            "in",
            "for",
            "with",
            "called",
            "saying",
            "about",
            "😀",
            "é",
            "to=",
            "it",
            "them",
            "summary",
            "a",
            "of",
            "not",
            "open",
            "list",
            "delete",
            "Rome",
        ],
        *["https://x.y/z", "three", "tomorrow", '"quoted', 'text"', "(", "[", "`", "-", "\n"],
        *(
            name
            for tools in sets().values()
            for tool in tools
            for name in tool.parameters_json_schema["properties"]
        ),
        *(word for tools in sets().values() for tool in tools for word in tool.name.split("_")),
    ]
    results = [INBOX, [], "text", None, {"error": "x"}, [1, 2], {"result": {"k": "v"}}, 5, "{broken"]
    for _ in range(400):
        tools = chance.choice([*sets().values()])
        text = " ".join(chance.choices(words, k=chance.randint(0, 25)))
        done = tuple(
            Done(chance.choice(tools).name, {}, chance.choice(results), "success", has_result=True)
            for _ in range(chance.randint(0, 2))
        )
        decision = decider.decide(
            Turn(text=text, done=done, earlier=done), [*tools, ASK_PERSON], date(2026, 1, 1)
        )
        assert decision.calls or decision.text


@pytest.mark.parametrize(
    "piece",
    [
        "send email 12 ann@example.com #x ",
        "send email, ",
        '"',
        "'",
        "a-",
        "a.b.",
        "/a/b.",
        "to in for with ",
        "subject: ",
    ],
)
async def test_no_text_takes_long(piece: str) -> None:
    await respond("check my emails", MAIL)
    started = time.process_time()
    await respond(piece * (6_000 // len(piece)), MAIL)
    assert time.process_time() - started < patient(0.5)
