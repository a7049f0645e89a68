import asyncio
import math
import time
from datetime import datetime
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.calls.arguments import ArgumentValidator
from dragoman.errors import DragomanError, InvalidArguments, ProtocolFault
from dragoman.tool import Tool, ToolDefinition
from patience import patient

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "format": "email"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
        "sort": {"enum": ["newest", "oldest"]},
        "when": {"type": "string", "format": "date-time"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"price": {"type": "number"}}}},
        "label": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["to"],
    "additionalProperties": False,
}


def made(schema: Any) -> Tool:
    definition = ToolDefinition(original_name="send", input_schema=schema)
    return Tool(
        name="mcp_mail_send",
        workspace="local",
        connector_id="c",
        slug="mail",
        definition=definition,
        fingerprint=definition.fingerprint,
    )


def refusal(arguments: Any, schema: Any = SCHEMA) -> DragomanError:
    with pytest.raises(InvalidArguments) as caught:
        ArgumentValidator().check(made(schema), arguments)
    return caught.value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "the argument 'to' is missing"),
        ({"to": 5}, "the argument 'to' must be text, not a whole number"),
        ({"to": "nobody"}, "the argument 'to' is not a valid email"),
        ({"to": "a@b.cc", "limit": "1"}, "the argument 'limit' must be a whole number, not text"),
        ({"to": "a@b.cc", "limit": 0}, "the argument 'limit' must be at least 1"),
        ({"to": "a@b.cc", "sort": "best"}, "the argument 'sort' must be \"newest\" or \"oldest\""),
        ({"to": "a@b.cc", "when": "noon"}, "the argument 'when' is not a valid date-time"),
        ({"to": "a@b.cc", "rows": [{"price": "x"}]},
         "the argument 'rows[0].price' must be a number, not text"),
        ({"to": "a@b.cc", "subjekt": 1}, "unknown argument 'subjekt'"),
        ({"to": "a@b.cc", "label": 4},
         "the argument 'label' fits none of the allowed forms"
         " (must be text, not a whole number; or must be null, not a whole number)"),
    ],
)  # fmt: skip
def test_a_refusal_says_which_argument_what_is_wrong_and_what_is_expected(
    arguments: Any, message: str
) -> None:
    assert refusal(arguments).message == message


def test_a_misspelt_name_gets_a_suggestion() -> None:
    assert refusal({"to": "a@b.cc", "limt": 3}).hint == "'limt': did you mean 'limit'?"
    assert "it takes to, limit" in (refusal({}).hint or "")


def test_a_refusal_never_repeats_a_value() -> None:
    secret = "hunter2-hunter2"
    schema = {"type": "object", "properties": {"p": {"type": "string", "maxLength": 3, "pattern": "^x$"}}}
    for arguments in ({"to": secret}, {"to": "a@b.cc", "sort": secret}, {"to": {"x": secret}}):
        assert secret not in refusal(arguments).message
    assert secret not in refusal({"p": secret}, schema).message


def test_many_faults_are_told_at_once_but_not_all() -> None:
    schema = {"type": "object", "required": [f"a{number}" for number in range(20)]}
    message = refusal({}, schema).message
    assert message.count("is missing") == 5
    assert message.endswith("and more")


def test_what_the_schema_does_not_know_passes_with_a_warning() -> None:
    schema = {"type": "object", "properties": {"limit": {"type": "integer"}}}
    arguments, warnings = ArgumentValidator().check(made(schema), {"limit": 1, "limitt": 2})
    assert arguments == {"limit": 1, "limitt": 2}
    assert warnings == ("unknown argument 'limitt': did you mean 'limit'?",)
    open_ended = {**schema, "additionalProperties": {"type": "integer"}}
    assert ArgumentValidator().check(made(open_ended), {"limitt": 2})[1] == ()


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, {1, 2}, b"x", {1: 2}, object(), 2**70, datetime.now(), "\ud800", {"n": [math.nan]}],
)  # fmt: skip
def test_what_is_no_json_never_leaves(value: Any) -> None:
    assert refusal({"a": value}, {"type": "object"}).hint


@pytest.mark.parametrize("arguments", [[], "text", None, 5])
def test_arguments_are_an_object(arguments: Any) -> None:
    assert "must be an object" in refusal(arguments).message


def test_any_mapping_will_do() -> None:
    assert ArgumentValidator().check(made({"type": "object"}), MappingProxyType({"a": 1}))[0] == {"a": 1}


def test_ten_megabytes_are_refused_quickly() -> None:
    before = time.thread_time()
    one = refusal({"a": "x" * 10_000_000}, {"type": "object"})
    assert time.thread_time() - before < patient(0.1)
    spread = refusal({"a": ["x" * 1000] * 10_000}, {"type": "object"})
    for error in (one, spread):
        assert "at most 4,194,304" in error.message
        assert error.hint


def test_depth_is_bounded() -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return {"a": value}

    schema = {"type": "object"}
    assert ArgumentValidator().check(made(schema), nested(90))[0]
    assert "levels" in refusal(nested(150), schema).message
    assert "levels" in (refusal(nested(5000), schema).hint or "")


@pytest.mark.anyio
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema"])
async def test_a_schema_never_causes_a_request(keyword: str) -> None:
    visits = 0

    def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visits
        visits += 1
        writer.close()

    async with await asyncio.start_server(visited, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/schema.json"
        tool = made({"type": "object", "properties": {"a": {keyword: address}}, keyword: address})
        # In a thread, so that a request, were there one, could be answered.
        check = asyncio.to_thread(ArgumentValidator().check, tool, {"a": 1})
        if keyword == "$schema":
            await check
        else:
            with pytest.raises(ProtocolFault, match=address) as caught:
                await check
            assert caught.value.hint == "the tool's server must mend its schema"
        await asyncio.sleep(0)
    assert visits == 0


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_schema_never_causes_a_file_to_be_read(tmp_path: Any, keyword: str) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "string"}')
    for address in (f"file://{file}", str(file)):
        with pytest.raises(ProtocolFault):
            ArgumentValidator().check(
                made({"type": "object", "properties": {"a": {keyword: address}}}), {"a": 1}
            )


def test_a_reference_inside_the_schema_is_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/whole"}},
        "$defs": {"whole": {"type": "integer"}},
    }
    assert ArgumentValidator().check(made(schema), {"a": 1})[1] == ()
    assert "whole number" in refusal({"a": "x"}, schema).message


def test_a_schema_that_cannot_be_used_lets_arguments_pass_with_a_warning() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/absent"}}}
    arguments, warnings = ArgumentValidator().check(made(schema), {"a": 1})
    assert arguments == {"a": 1}
    assert "not checked" in warnings[0]


def test_the_draft_that_a_schema_names_is_the_one_in_force() -> None:
    draft_7 = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"items": [{"type": "integer"}]}},
    }
    assert "a[0]" in refusal({"a": ["x"]}, draft_7).message


def test_a_pattern_made_to_hang_does_not() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a|a)*(?=b)$"}}}
    before = time.thread_time()
    refusal({"a": "a" * 5000}, schema)
    assert time.thread_time() - before < patient(1)


def test_the_number_of_compiled_schemas_is_bounded() -> None:
    arguments = ArgumentValidator(max_schemas=3)
    for number in range(10):
        arguments.check(made({"type": "object", "title": str(number)}), {})
    assert len(arguments._rules) == 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


@given(st.dictionaries(st.text(max_size=6), json_values, max_size=4))
def test_whatever_the_arguments_are_the_answer_is_a_verdict(arguments: dict[str, Any]) -> None:
    for schema in (SCHEMA, {"type": "object"}):
        verdict = None
        try:
            assert ArgumentValidator().check(made(schema), arguments)[0] == arguments
        except InvalidArguments as error:
            verdict = error
        assert verdict is None or (verdict.message and verdict.hint)


LOOSE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "minimum": 1},
        "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "unread_only": {"type": "boolean", "default": False},
        "page": {"enum": [1, 2, 3]},
        "code": {"type": "string"},
        "either": {"type": ["string", "integer"]},
        "since": {"type": "string", "format": "date"},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
        "needed": {"type": "integer"},
    },
    "$defs": {"row": {"type": "object", "properties": {"seen": {"type": "boolean"}}}},
}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"limit": "5"}, {"limit": 5}),
        ({"limit": " 5 "}, {"limit": 5}),
        ({"limit": "5.0", "price": "-0.10"}, {"limit": 5, "price": -0.1}),
        ({"price": "1e3"}, {"price": 1000}),
        ({"unread_only": "True"}, {"unread_only": True}),
        ({"unread_only": "", "limit": "2"}, {"limit": 2}),
        ({"page": "2"}, {"page": 2}),
        ({"since": "", "code": ""}, {"code": ""}),
        ({"code": "5", "either": "5"}, {"code": "5", "either": "5"}),
        (
            {"rows": [{"seen": "false"}, {"seen": "true"}] * 6},
            {"rows": [{"seen": False}, {"seen": True}] * 6},
        ),
    ],
)
def test_text_of_a_model_becomes_the_number_or_boolean_that_is_wanted(
    given: dict[str, Any], sent: dict[str, Any]
) -> None:
    before = repr(given)
    for way in ("agent", "code", "mcp"):
        arguments, warnings = ArgumentValidator().check(made(LOOSE), given, way)
        assert (arguments, repr(arguments)) == (sent, repr(sent))
        assert bool(warnings) == (given != sent), "what was changed is said"
    assert repr(given) == before, "what came stays as it came"


@pytest.mark.parametrize(
    "given",
    [
        {"limit": "007"},
        {"limit": "5.5"},
        {"limit": "five"},
        {"limit": "1_000"},
        {"limit": "0"},
        {"limit": "９"},
        {"price": "0.1234567890123456789"},
        {"price": "NaN"},
        {"limit": "9" * 30},
        {"unread_only": "yes"},
        {"unread_only": "1"},
        {"page": "4"},
        {"since": "noon"},
    ],
)
def test_where_something_would_be_lost_nothing_is_converted(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        ArgumentValidator().check(made(LOOSE), given, "agent")


def test_an_empty_text_is_no_way_around_a_required_argument_and_programs_are_told_of_theirs() -> None:
    with pytest.raises(InvalidArguments, match="needed"):
        ArgumentValidator().check(made({**LOOSE, "required": ["needed"]}), {"needed": ""}, "agent")
    for wrong in ({"limit": "5"}, {"unread_only": ""}):
        with pytest.raises(InvalidArguments):
            ArgumentValidator().check(made(LOOSE), wrong, "direct")
