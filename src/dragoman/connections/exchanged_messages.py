"""What one call says to its server and hears of it, for who made the call and asked to see it.

A wire or a service tells here what it has cleaned of secrets already. Nothing is kept. Most calls have
nobody who listens: then `hearing` is None.
"""

import time
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Literal

from dragoman.tool import ExchangedMessage, OnMessage, json_bytes

_MOST_MESSAGES = 200
_MOST_BYTES = 256 * 1024
_heard: ContextVar["MessageListener | None"] = ContextVar("exchanged_messages", default=None)


class MessageListener:
    """Of one call: its first messages, each within a size that a person reads."""

    def __init__(self, on_message: OnMessage) -> None:
        self._on_message = on_message
        self._began = time.monotonic()
        self._left = _MOST_MESSAGES

    def sent(self, message: Mapping[str, Any]) -> None:
        self._tell("sent", message)

    def received(self, message: Mapping[str, Any]) -> None:
        self._tell("received", message)

    def _tell(self, direction: Literal["sent", "received"], message: Mapping[str, Any]) -> None:
        if self._left <= 0:
            return
        self._left -= 1
        size = len(json_bytes(message))
        if size > _MOST_BYTES:
            message = {name: value for name, value in message.items() if name in ("jsonrpc", "id", "method")}
            message |= {"withheld": f"{size:,} bytes: more than is shown"}
        took = (time.monotonic() - self._began) * 1000
        self._on_message(ExchangedMessage(direction=direction, message=dict(message), milliseconds=took))


def telling(on_message: OnMessage | None) -> AbstractContextManager[None]:
    """Within it, what this task and those that it begins exchange with a server is told."""
    return nullcontext() if on_message is None else _telling(on_message)


@contextmanager
def _telling(on_message: OnMessage) -> Generator[None]:
    token = _heard.set(MessageListener(on_message))
    try:
        yield
    finally:
        _heard.reset(token)


def hearing() -> MessageListener | None:
    return _heard.get()
