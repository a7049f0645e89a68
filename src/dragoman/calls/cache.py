"""Remembered results of read-only tools: off unless a time to live is set, one identity's own, not too many.

Results are kept as bytes: what one caller does to a result cannot reach the next one's.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from time import monotonic
from typing import Any

import orjson

from dragoman.calls.outputs import ShapedResult
from dragoman.connector import Connector
from dragoman.scope import Caller, identity_of
from dragoman.tool import Tool

Key = tuple[str, str, str, int, str, bytes]
_MAX_ENTRY = 256 * 1024


class ResultCache:
    def __init__(
        self,
        max_entries: int = 2000,
        max_bytes: int = 64 * 1024 * 1024,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._clock = clock
        self._entries: OrderedDict[Key, tuple[float, bytes]] = OrderedDict()
        self._bytes = 0

    def key(
        self, tool: Tool, connector: Connector, caller: Caller, arguments: Mapping[str, Any]
    ) -> Key | None:
        """What a result may be found by again, or None when this tool's results are not to be kept."""
        if not (tool.cache_ttl or connector.configuration.cache_ttl):
            return None
        if tool.definition.annotations.read_only is not True:
            return None
        text = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
        identity = identity_of(caller, connector.configuration.isolation)
        digest = blake2b(text, digest_size=20).digest()
        return (connector.id, tool.name, tool.fingerprint, connector.revision, identity, digest)

    def find(self, key: Key) -> ShapedResult | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        expires, body = entry
        if expires <= self._clock():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        result, content, content_type, has_structured, warnings = orjson.loads(body)
        return ShapedResult(
            result=result,
            content=tuple(content),
            content_type=content_type,
            has_structured=has_structured,
            warnings=tuple(warnings),
        )

    def keep(self, key: Key, tool: Tool, connector: Connector, shaped: ShapedResult) -> None:
        """Only what succeeded and was not cut."""
        if shaped.is_error or shaped.size is not None:
            return
        try:
            body = orjson.dumps(
                (
                    shaped.result,
                    shaped.content,
                    shaped.content_type,
                    shaped.has_structured,
                    shaped.warnings,
                )
            )
        except TypeError:
            return  # a native tool may return what JSON cannot hold
        if len(body) > _MAX_ENTRY:
            return
        self._drop(key)
        ttl = tool.cache_ttl or connector.configuration.cache_ttl
        self._entries[key] = (self._clock() + ttl, body)
        self._bytes += len(body)
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= len(entry[1])
