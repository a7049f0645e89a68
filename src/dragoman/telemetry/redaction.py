"""Keeps secrets out of what is written for people: by the name of a field, and by known values."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, cast
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

HIDDEN = "[hidden]"
_SHORTEST = 6  # a shorter value would be found inside ordinary words
_MOST = 20_000  # renewed tokens come for ever; a process that lives long must not keep them all
_DEEPEST = 6
_SECRET_KEY = re.compile(
    r"token|secret|passw|api[-_]?key|private|credential|authorization|cookie|bearer|^auth$", re.IGNORECASE
)


class Redactor:
    """Knows the secrets of this process and takes them out of any text, in the usual encodings too."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None
        self._is_stale = False

    def register(self, values: Iterable[str | SecretStr]) -> None:
        for value in values:
            text = value.get_secret_value() if isinstance(value, SecretStr) else value
            if len(text) >= _SHORTEST:
                for spelling in _spellings(text):
                    self._is_stale |= spelling not in self._values
                    # Again at the end: of those that were not seen for long the oldest go first.
                    self._values.pop(spelling, None)
                    self._values[spelling] = None
        while len(self._values) > _MOST:
            del self._values[next(iter(self._values))]

    def clean(self, text: str) -> str:
        if self._is_stale:
            longest_first = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join(re.escape(value) for value in longest_first))
            self._is_stale = False
        return self._pattern.sub(HIDDEN, text) if self._pattern else text

    def clean_value(self, value: Any, depth: int = 0) -> Any:
        """The same value without secrets: known ones in any string, and all under a telling key."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, SecretStr):
            return HIDDEN
        if isinstance(value, bytes):
            return self.clean(value.decode("utf-8", "replace"))
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth >= _DEEPEST:
            return self.clean(repr(value))
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {
                key: HIDDEN if _is_telling(key) else self.clean_value(item, depth + 1) for key, item in items
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self.clean_value(item, depth + 1) for item in cast("Iterable[Any]", value)]
        return self.clean(repr(value))


def _is_telling(key: object) -> bool:
    return isinstance(key, str) and _SECRET_KEY.search(key) is not None


def _spellings(value: str) -> Iterable[str]:
    """How a value is written: as it is, quoted for JSON (twice, too) or for an address, or in base64.

    Words and no patterns: what is searched comes from servers, and none may make the search slow.
    """
    escaped = json.dumps(value)[1:-1]
    plain = {value, escaped, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(escaped)[1:-1]}
    encoded = b64encode(value.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    plain |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    for word in plain:
        yield word
        yield quote(word, safe="", errors="replace")
        yield quote(word, errors="replace")
        yield quote_plus(word, errors="replace")
