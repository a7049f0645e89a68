"""What a source answered, in the one shape that every caller gets. Pure: writes nothing.

Structured content is preferred, then text that is JSON, then text. What is too large is cut, and
the whole of it handed back to be kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from dragoman.errors import ProtocolFault
from dragoman.tokens import count_tokens
from dragoman.tool import Json, RawResult, json_bytes

Block = Mapping[str, Any]
_MODEST = 1024 * 1024  # parsing more than this would hold up the others for too long
_LONGEST_NUMBER = 15  # a longer one would lose digits
_MOST_NESTED = 200
_MESSAGE = 4000
# A picture is no text in anybody's context: it may be larger before it is kept aside.
BINARY_ROOM = 16
_JSON_WORDS = {"true": True, "false": False, "null": None}


@dataclass(slots=True)
class ShapedResult:
    """A result for its caller. `whole` is set when it was cut, for the store to keep."""

    result: Json = None
    content: tuple[Block, ...] = ()
    content_type: str | None = None
    is_error: bool = False
    message: str = ""
    whole: bytes | None = None
    whole_type: str = "text/plain"
    size: int | None = None
    has_structured: bool = False
    meta: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()


def shape(raw: RawResult, limit: int) -> ShapedResult:
    """`limit` is the most bytes of text or structure that the caller gets."""
    content = raw.content
    if not raw.has_structured and len(content) == 1 and content[0].get("type") == "text":
        texts: list[str] = [str(content[0].get("text", ""))]
    else:
        texts = [text for block in content if (text := _text_of(block)) is not None]
    shaped = ShapedResult(
        content=content, is_error=raw.is_error, has_structured=raw.has_structured, meta=raw.meta
    )
    if raw.has_structured:
        _take_structured(shaped, raw.structured, texts, limit)
    else:
        _take_texts(shaped, texts, limit)
    if shaped.whole is None and len(content) > len(texts):
        _set_binary_aside(shaped, limit * BINARY_ROOM)
    if raw.is_error:
        shaped.message = "\n".join(texts)[:_MESSAGE] or "the tool failed and did not say why"
        shaped.result = None
    return shaped


def tokens_in(arguments: Mapping[str, Any], shaped: ShapedResult | None) -> int:
    """How many tokens a model reads and writes for a call."""
    written = count_tokens(json_bytes(arguments))
    result = shaped.result if shaped else None
    if result is None:
        return written
    return written + count_tokens(result if isinstance(result, str) else json_bytes(result))


def cut_note(shown: int, size: int, handle: str | None) -> str:
    """The last line of what was cut: it says what is missing and how to read it."""
    rest = (
        f"the whole is kept as {handle}: read it by that handle" if handle else "the rest could not be kept"
    )
    return f"\n[cut here: {shown:,} of {size:,} bytes are shown; {rest}]"


def _take_structured(shaped: ShapedResult, value: Json, texts: Sequence[str], limit: int) -> None:
    try:
        body = orjson.dumps(value)
    except (TypeError, RecursionError) as error:
        raise ProtocolFault(
            f"the tool's result cannot be written as JSON: {error!s:.200}",
            hint="its structured content is nested too deep or holds numbers that are too large",
        ) from None
    shaped.content_type = "application/json"
    if len(body) > limit:
        _cut(shaped, body, limit)
        return
    shaped.result = value
    # The text beside a structure usually says the same; where it is far longer it would flood just as well.
    if sum(map(len, texts)) > limit:
        whole = "\n".join(texts).encode("utf-8", "replace")
        if len(whole) > limit:
            shaped.whole, shaped.size = whole, len(whole)
            shaped.content = tuple(block for block in shaped.content if _text_of(block) is None)


def _take_texts(shaped: ShapedResult, texts: list[str], limit: int) -> None:
    if not texts:
        shaped.content_type = _type_of_blocks(shaped.content)
        return
    length = sum(map(len, texts)) + len(texts) - 1
    # No character has more than four bytes: small texts need not be measured.
    if length * 4 > limit:
        body = (texts[0] if len(texts) == 1 else "\n".join(texts)).encode("utf-8", "replace")
        if len(body) > limit:
            is_json = len(texts) == 1 and texts[0][:1] in "{["
            shaped.content_type = "application/json" if is_json else "text/plain"
            _cut(shaped, body, limit)
            return
    values = [_parsed(text) for text in texts] if length <= _MODEST else [_TEXT]
    if _TEXT in values or (len(values) > 1 and not all(isinstance(value, dict | list) for value in values)):
        shaped.result = texts[0] if len(texts) == 1 else "\n".join(texts)
        shaped.content_type = "text/plain"
    else:
        shaped.result = values[0] if len(values) == 1 else values
        shaped.content_type = "application/json"


def _cut(shaped: ShapedResult, body: bytes, limit: int) -> None:
    shaped.whole, shaped.size = body, len(body)
    shaped.whole_type = shaped.content_type or "text/plain"
    shaped.result = body[:limit].decode("utf-8", "ignore")
    shaped.content_type = "text/plain"
    shaped.content = tuple(block for block in shaped.content if _text_of(block) is None)


def _set_binary_aside(shaped: ShapedResult, limit: int) -> None:
    """Pictures, sounds and files over the limit: half a picture is worth nothing, so the whole block goes."""
    size = sum(_binary_size(block) for block in shaped.content)
    if size > limit:
        shaped.whole = orjson.dumps(list(shaped.content))
        shaped.whole_type, shaped.size = "application/json", len(shaped.whole)
        shaped.content = tuple(block for block in shaped.content if not _binary_size(block))


class _Text:
    """Stands for a text that is no JSON: None will not do, for `null` is JSON."""


_TEXT = _Text()


def _parsed(text: str) -> Any:
    first = text[:1]
    if first in ("{", "["):
        return _loaded(text)
    if first and first in '"-0123456789':
        return _loaded(text) if first == '"' or len(text) <= _LONGEST_NUMBER else _TEXT
    return _JSON_WORDS.get(text, _TEXT) if first in ("t", "f", "n") else _TEXT


def _loaded(text: str) -> Any:
    try:
        value = orjson.loads(text)
        if text.count("[") + text.count("{") > _MOST_NESTED:
            orjson.dumps(value)  # what cannot be written again would fail later, at a door
    except (ValueError, TypeError, RecursionError):
        return _TEXT
    return value


def _text_of(block: Block) -> str | None:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    text = _resource(block).get("text") if kind == "resource" else None
    return text if isinstance(text, str) else None


def _binary_size(block: Block) -> int:
    data = block.get("data") or _resource(block).get("blob")
    return len(data) if isinstance(data, str) else 0


def _resource(block: Block) -> Mapping[str, Any]:
    resource = block.get("resource")
    return cast("Mapping[str, Any]", resource) if isinstance(resource, Mapping) else {}


def _type_of_blocks(content: Sequence[Block]) -> str | None:
    if len(content) == 1:
        kind = content[0].get("mimeType") or _resource(content[0]).get("mimeType")
        return str(kind) if kind else None
    return "multipart/mixed" if content else None
