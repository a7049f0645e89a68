"""Keeps secrets out of what servers say and what is written for people: by known values, and by names."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, cast
from urllib.parse import quote, quote_plus

import orjson
from pydantic import SecretStr

HIDDEN = "[hidden]"
_SHORTEST = 6  # a shorter value would be found inside ordinary words
SHORTEST_IN_RESULTS = 8
_FEW = 64
_LEAST_CUT = 6  # letters of a secret that was cut
_AFTER_A_CUT = "….\"')]} "
# Values that are secret to nobody, and that ordinary results hold.
_COMMON = frozenset(
    {
        "00000000",
        "11111111",
        "12345678",
        "123456789",
        "1234567890",
        "administrator",
        "anonymous",
        "authorization",
        "automatic",
        "changeit",
        "changeme",
        "client_credentials",
        "database",
        "development",
        "disabled",
        "example.com",
        "external",
        "internal",
        "localhost",
        "my-secret",
        "my-token",
        "optional",
        "passphrase",
        "password",
        "passwort",
        "placeholder",
        "postgres",
        "postgresql",
        "production",
        "readonly",
        "required",
        "something",
        "undefined",
        "username",
        "your-api-key",
        "your-token",
        "your_api_key",
        "your_token",
    }
)
_MOST = 20_000  # renewed tokens come for ever; a process that lives long must not keep them all
_DEEPEST = 6
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_SECRET_KEY = re.compile(
    r"token|secret|passw|api[-_]?key|private|credential|authorization|cookie|bearer|^auth$", re.IGNORECASE
)


class Redactor:
    """Knows secrets and takes them out of any text, in the usual encodings too.

    One knows all secrets of this process, for logs and errors. Each connection has one of its own, for all
    that its server says: there a value must be longer, so that no result is mangled.
    """

    def __init__(self, shortest: int = _SHORTEST) -> None:
        self._shortest = shortest
        self._values: dict[str, None] = {}
        self._words: tuple[str, ...] = ()
        self._needles: tuple[bytes, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        self._is_stale = False

    def register(self, values: Iterable[str | SecretStr]) -> None:
        for value in values:
            text = value.get_secret_value() if isinstance(value, SecretStr) else value
            if len(text) >= self._shortest and text.lower() not in _COMMON:
                for spelling in _spellings(text):
                    self._is_stale |= spelling not in self._values
                    # Again at the end: of those that were not seen for long the oldest go first.
                    self._values.pop(spelling, None)
                    self._values[spelling] = None
        while len(self._values) > _MOST:
            del self._values[next(iter(self._values))]

    def clean(self, text: str) -> str:
        if self._is_stale:
            self._compile()
        if self._pattern is None:
            return text
        # Looking for a few words one by one is ten times as fast as the pattern, and nearly always enough.
        if len(self._words) <= _FEW and not any(word in text for word in self._words):
            return text
        return self._pattern.sub(HIDDEN, text)

    def clean_excerpt(self, text: str) -> str:
        """The same for a text that was cut before it came here: a secret may have begun at its end."""
        text = self.clean(text)
        body = text.rstrip(_AFTER_A_CUT)
        for word in self._words:
            longest = min(len(word) - 1, len(body))
            cut = next((n for n in range(longest, _LEAST_CUT - 1, -1) if body.endswith(word[:n])), None)
            if cut is not None:
                return body[:-cut] + HIDDEN + text[len(body) :]
        return text

    def clean_bytes(self, data: bytes) -> bytes:
        if not any(word.encode("utf-8", "surrogatepass") in data for word in self._values):
            return data
        return self.clean(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def clean_message(self, message: Any) -> Any:
        """A message just parsed, changed in its place: every string and number in it, and names of fields."""
        if not self._values or not self._may_hold_secret(message):
            return message
        if isinstance(message, str):
            return self.clean(message)
        open_nodes = [message]
        while open_nodes:  # no recursion: a server decides how deep a message is
            node = open_nodes.pop()
            if isinstance(node, dict):
                self._clean_table(cast("dict[str, Any]", node), open_nodes)
            elif isinstance(node, list):
                self._clean_list(cast("list[Any]", node), open_nodes)
        return message

    def cleaned(self, message: Any) -> Any:
        """The same as another message; the very same where it holds no secret."""
        if not self._values or not self._may_hold_secret(message):
            return message
        cleaned = self.clean_message(deepcopy(message))
        return message if cleaned == message else cleaned

    def _may_hold_secret(self, message: Any) -> bool:
        """One look at the whole, as JSON: nearly every message ends here, after a few microseconds."""
        if self._is_stale:
            self._compile()
        try:
            whole = orjson.dumps(message)
        except TypeError:
            return True
        return any(needle in whole for needle in self._needles)

    def _clean_table(self, table: dict[str, Any], open_nodes: list[Any]) -> None:
        for name, value in [*table.items()]:
            if isinstance(value, dict | list):
                open_nodes.append(value)
            else:
                table[name] = self._clean_leaf(value)
            if (clean_name := self.clean(name)) != name:
                table[clean_name] = table.pop(name)

    def _clean_list(self, items: list[Any], open_nodes: list[Any]) -> None:
        for index, value in enumerate(items):
            if isinstance(value, dict | list):
                open_nodes.append(value)
            else:
                items[index] = self._clean_leaf(value)

    def _clean_leaf(self, value: Any) -> Any:
        """A secret of digits may come back as a number."""
        if isinstance(value, str):
            return self.clean(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return HIDDEN if is_number and self.clean(str(value)) != str(value) else value

    def _compile(self) -> None:
        self._words = tuple(sorted(self._values, key=len, reverse=True))
        self._pattern = re.compile("|".join(map(re.escape, self._words))) if self._words else None
        # As they stand in JSON: what is in a string is in what the string is written as.
        self._needles = tuple(
            json.dumps(word, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
            for word in self._words
        )
        self._is_stale = False

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
    """How a value is written: as it is, quoted for JSON or for an address (twice, too), in base64 or in hex.

    Words and no patterns: what is searched comes from servers, and none may make the search slow.
    """
    escaped = json.dumps(value)[1:-1]
    plain = {value, escaped, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(escaped)[1:-1]}
    digits = value.encode("utf-8", "surrogatepass").hex()
    yield digits
    yield digits.upper()
    for word in {*plain, *_encoded(value)}:
        yield word
        for quoted in (
            quote(word, safe="", errors="replace"),
            quote(word, errors="replace"),
            quote_plus(word, errors="replace"),
        ):
            yield quoted
            yield quote(quoted)
            yield _ESCAPE.sub(lambda match: match[0].lower(), quoted)


def _encoded(value: str) -> Iterable[str]:
    """In base64, also in the midst of something longer (`user:password`): where it begins decides how it
    looks, in one of three ways, and the letters that it shares with its neighbours are left out."""
    data = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        bits = 8 * (before + len(data))
        first, last = -(-8 * before // 6), bits // 6
        core = b64encode(b"\0" * before + data).decode()[first:last]
        yield core
        yield core.replace("+", "-").replace("/", "_")
