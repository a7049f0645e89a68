"""Text as data: JSON as people write it, with comments and trailing commas, and TOML."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.errors import InvalidConfig

MAX_TEXT = 8 * 1024 * 1024
# A string first, so that what looks like a comment inside one is left alone.
_COMMENTS = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'"(?:\\.|[^"\\\n])*"|,(?=\s*[}\]])')


def read_document(text: str, name: str) -> Any:
    """The value that a text holds; `InvalidConfig` says where it cannot be read."""
    if len(text) > MAX_TEXT:
        raise InvalidConfig(f"{name} is larger than {MAX_TEXT // 1024 // 1024} MB")
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InvalidConfig(f"{name} is empty")
    if text.lstrip().startswith("<"):
        raise InvalidConfig(f"{name} holds HTML or XML, not JSON or TOML")
    if name.lower().endswith(".toml") or not text.lstrip().startswith(("{", "[", "/", '"')):
        return _toml(text, name)
    try:
        return _json(text, name)
    except InvalidConfig:
        # A table such as [connectors.time] begins like a JSON list.
        if text.lstrip().startswith("[") and not name.lower().endswith(".json"):
            return _toml(text, name)
        raise


def table(value: Any) -> dict[str, Any]:
    """The value as a table; an empty one when it is something else."""
    if not isinstance(value, Mapping):
        return {}
    return {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}


def entries(value: Any) -> list[Any]:
    """The value as a list; an empty one when it is something else."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return list(cast("Sequence[Any]", value)) if is_list else []


def words(value: Any, field: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or any(isinstance(item, list | dict) for item in entries(value)):
        raise InvalidConfig(f"{field} must be a list of words")
    if not isinstance(value, list):
        raise InvalidConfig(f"{field} must be a list of words")
    return tuple(_word(item) for item in cast("list[Any]", value))


def pairs(value: Any, field: str) -> dict[str, str]:
    """Names and values; a name whose value is null is left out."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{field} must be a table of names and values")
    found = table(cast("Any", value))
    if any(isinstance(item, list | dict) for item in found.values()):
        raise InvalidConfig(f"{field} must be a table of names and plain values")
    return {name: _word(item) for name, item in found.items() if item is not None}


def text_of(value: Any, field: str) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    raise InvalidConfig(f"{field} must be text")


def truth(value: Any, field: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidConfig(f"{field} must be true or false")


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _json(text: str, name: str) -> Any:
    # Blanks in place of what is taken out: an error still names the right line.
    plain = _COMMENTS.sub(_blanked, text)
    plain = _TRAILING.sub(lambda match: match[0] if match[0].startswith('"') else " ", plain)
    try:
        return json.loads(plain)
    except json.JSONDecodeError as error:
        raise InvalidConfig(
            f"{name} is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        ) from None
    except (RecursionError, ValueError):
        raise InvalidConfig(f"{name} is not valid JSON: it is nested too deeply") from None


def _blanked(match: re.Match[str]) -> str:
    found = match[0]
    return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)


def _toml(text: str, name: str) -> Any:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # The parser's message tells the place and never the value.
        raise InvalidConfig(f"{name} is neither JSON nor valid TOML: {error}") from None
