import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.calls.outputs import shape
from dragoman.errors import ProtocolFault
from dragoman.tool import RawResult
from patience import patient

LIMIT = 256 * 1024
PICTURE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}


def texts(*parts: str, **facts: Any) -> RawResult:
    return RawResult(content=tuple({"type": "text", "text": part} for part in parts), **facts)


def structured(value: Any, *parts: str) -> RawResult:
    return texts(*parts, structured=value, has_structured=True)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ('{"a": [1, 2]}', {"a": [1, 2]}),
        ("[]", []),
        ("42", 42),
        ("-1.5", -1.5),
        ('"quoted"', "quoted"),
        ("true", True),
        ("null", None),
        ("", ""),
        ("plain", "plain"),
        ("true story", "true story"),
        ("{not json", "{not json"),
        ("0042", "0042"),
        ("12345678901234567890", "12345678901234567890"),
        ("NaN", "NaN"),
        (" 42", " 42"),
    ],
)
def test_text_that_is_json_is_parsed_and_other_text_is_left_alone(answer: str, result: Any) -> None:
    shaped = shape(texts(answer), LIMIT)
    assert shaped.result == result
    assert type(shaped.result) is type(result)
    assert shaped.content == ({"type": "text", "text": answer},)


def test_structured_content_is_preferred() -> None:
    shaped = shape(structured({"a": 1}, "something else"), LIMIT)
    assert (shaped.result, shaped.content_type) == ({"a": 1}, "application/json")
    assert shaped.content[0]["text"] == "something else"
    assert shape(structured(None, "null"), LIMIT).result is None


def test_several_texts_are_joined_and_several_documents_are_a_list() -> None:
    assert shape(texts("one", "2"), LIMIT).result == "one\n2"
    assert shape(texts('{"a":1}', '{"a":2}'), LIMIT).result == [{"a": 1}, {"a": 2}]


def test_pictures_sounds_and_resources_are_kept_as_they_are() -> None:
    sound = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    resource = {"type": "resource", "resource": {"uri": "x:1", "mimeType": "text/x", "text": "inside"}}
    shaped = shape(RawResult(content=(PICTURE, sound, link, resource)), LIMIT)
    assert shaped.content == (PICTURE, sound, link, resource)
    assert shaped.result == "inside"
    assert shape(RawResult(content=(PICTURE,)), LIMIT).content_type == "image/png"
    assert shape(RawResult(content=(PICTURE, sound)), LIMIT).content_type == "multipart/mixed"
    nothing = shape(RawResult(), LIMIT)
    assert (nothing.result, nothing.content_type, nothing.content) == (None, None, ())


def test_a_failure_has_a_message_even_when_the_tool_says_nothing() -> None:
    assert shape(texts("broken", is_error=True), LIMIT).message == "broken"
    assert shape(RawResult(is_error=True), LIMIT).message == "the tool failed and did not say why"
    assert len(shape(texts("x" * 100_000, is_error=True), LIMIT).message) == 4000


def test_a_large_structure_is_cut_as_text_and_handed_back_whole() -> None:
    value = {"rows": list(range(100_000))}
    shaped = shape(structured(value, orjson.dumps(value).decode()), LIMIT)
    assert orjson.loads(shaped.whole or b"") == value
    assert shaped.whole_type == "application/json"
    assert shaped.content_type == "text/plain"
    assert len(shaped.result) == LIMIT
    assert shaped.content == ()


def test_a_long_text_beside_a_small_structure_is_kept_aside() -> None:
    shaped = shape(structured({"a": 1}, "x" * (LIMIT + 1)), LIMIT)
    assert shaped.result == {"a": 1}
    assert len(shaped.whole or b"") == LIMIT + 1
    assert shaped.content == ()


def test_a_picture_has_more_room_than_text_and_is_never_cut_in_half() -> None:
    larger = {**PICTURE, "data": "A" * (LIMIT + 4)}
    assert shape(RawResult(content=(larger,)), LIMIT).content == (larger,)
    huge = {**PICTURE, "data": "A" * (LIMIT * 17)}
    shaped = shape(RawResult(content=(huge, {"type": "text", "text": "a map"})), LIMIT)
    assert shaped.content == ({"type": "text", "text": "a map"},)
    assert shaped.result == "a map"
    assert orjson.loads(shaped.whole or b"")[0] == huge


@given(st.text(max_size=60), st.integers(1, 40))
def test_a_cut_never_exceeds_the_limit_nor_breaks_a_character(text: str, limit: int) -> None:
    body = text.encode("utf-8", "replace")
    shaped = shape(texts(text), limit)
    if len(body) > limit:
        assert shaped.whole == body
        assert len(shaped.result.encode()) <= limit
        assert body.startswith(shaped.result.encode())
    else:
        assert shaped.whole is None


def test_nesting_that_could_not_be_written_again_stays_text() -> None:
    deep = "[" * 500 + "]" * 500
    assert shape(texts(deep), LIMIT).result == deep
    with pytest.raises(ProtocolFault):
        shape(structured(orjson.loads(deep)), LIMIT)


def test_sixteen_megabytes_do_not_hold_up_the_loop() -> None:
    raw = texts("[" + "1234567, " * (16 * 1024 * 1024 // 9) + "1]")
    before = time.thread_time()
    shaped = shape(raw, LIMIT)
    assert time.thread_time() - before < patient(0.1)
    assert shaped.size is not None
    assert shaped.size > 16_000_000
