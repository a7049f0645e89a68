"""How values are kept in columns, the same on both databases. Knows no table."""

import json
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import JSON, DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time: aware in, UTC out. SQLite keeps no zone, so only UTC ever goes in."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class FreeText(TypeDecorator[str]):
    """Text that somebody else wrote. What a database cannot hold (NUL, half a surrogate) becomes U+FFFD.

    Never for a key: two different keys must not become one.
    """

    impl = Text()
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


def storable(text: str) -> str:
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# JSON and not JSONB: JSONB refuses the \u0000 that a server may well send.
Document = JSON(none_as_null=True)


def to_json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # Integers beyond 64 bits and half surrogates: legal in a server's JSON, refused by orjson.
        return json.dumps(value)


def from_json(text: str | bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)
