"""What a Python function returned, as the content blocks that every source answers with.

Knows no tool and no caller. A value that is no JSON is the tool's failure, not ours.
"""

from base64 import b64encode
from enum import Enum
from typing import Any

import orjson
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from dragoman.errors import DragomanError, ToolFailed
from dragoman.tool import RawResult

_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def result_of(value: Any, *, tool: str, adapter: TypeAdapter[Any] | None = None) -> RawResult:
    """Text as text, bytes as an image or a resource, everything else as JSON and its text."""
    if isinstance(value, RawResult):
        return value
    if isinstance(value, str) and not isinstance(value, Enum):
        return RawResult(content=(text_block(value),))
    if isinstance(value, bytes | bytearray):
        return RawResult(content=(_blob_block(bytes(value), tool),))
    structured = _json_of(value, adapter)
    text = orjson.dumps(structured, option=orjson.OPT_NON_STR_KEYS).decode("utf-8", "replace")
    return RawResult(content=(text_block(text),), structured=structured, has_structured=True)


def failure_of(error: BaseException) -> RawResult:
    """Type and message of what a function raised; where it was raised stays in the log."""
    if isinstance(error, DragomanError):
        text = f"{error.message} ({error.hint})" if error.hint else error.message
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return RawResult(content=(text_block(text),), is_error=True)


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _json_of(value: Any, adapter: TypeAdapter[Any] | None) -> Any:
    try:
        if adapter is None:
            return to_jsonable_python(value)
        return adapter.dump_python(value, mode="json", by_alias=True, warnings="none")
    except (PydanticSerializationError, ValueError, TypeError) as error:
        raise ToolFailed(
            f"the tool returned a {type(value).__name__}, which cannot be written as JSON",
            hint="return text, bytes, numbers, lists, dictionaries, dataclasses or pydantic models",
        ) from error


def _blob_block(data: bytes, tool: str) -> dict[str, Any]:
    encoded = b64encode(data).decode("ascii")
    if mime := _image_type(data):
        return {"type": "image", "data": encoded, "mimeType": mime}
    resource = {"uri": f"native://{tool}/result", "mimeType": "application/octet-stream", "blob": encoded}
    return {"type": "resource", "resource": resource}


def _image_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _IMAGES if data.startswith(magic)), None)
