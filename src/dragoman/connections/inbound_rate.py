"""How much a server may send that answers nothing: a token bucket over bytes and messages. Pure arithmetic.

Answers are as many as requests and each is limited in size, so they are not counted. All else is: events,
notifications, requests of the server, answers to nobody, comments, garbage.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from dragoman.connector import Configuration

_AT_ONCE = 10.0  # seconds' worth that may come in one burst


@dataclass(frozen=True, slots=True)
class WireLimits:
    """What one message may hold, and what may come unasked in a second."""

    message_bytes: int
    bytes_per_second: int
    messages_per_second: int

    @classmethod
    def of(cls, configuration: Configuration) -> "WireLimits":
        return cls(
            configuration.max_message_bytes,
            configuration.max_bytes_per_second,
            configuration.max_messages_per_second,
        )


class InboundRate:
    def __init__(self, limits: WireLimits, clock: Callable[[], float] = monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._bytes = 0.0
        self._messages = 0.0
        self._at = clock()

    def excess(self, size: int, messages: int = 1) -> str | None:
        """Counts what came; says what is too much, once it is."""
        limits, now = self._limits, self._clock()
        passed, self._at = now - self._at, now
        self._bytes = max(0.0, self._bytes - passed * limits.bytes_per_second) + size
        self._messages = max(0.0, self._messages - passed * limits.messages_per_second) + messages
        if self._messages > limits.messages_per_second * _AT_ONCE:
            return f"more than {limits.messages_per_second:,} messages a second that nobody asked for"
        if self._bytes > limits.bytes_per_second * _AT_ONCE:
            return f"more than {limits.bytes_per_second:,} bytes a second that nobody asked for"
        return None
