"""What can befall one request on the wire, and what the caller is told of it.

The one question that matters is whether the request may have been executed. The table says what
each fault means for a tool that is safe to repeat and for one that is not.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Literal

from dragoman.errors import (
    DragomanError,
    Forbidden,
    InvalidConfig,
    NeedsAuth,
    ProtocolFault,
    RateLimited,
    ServerError,
    Timeout,
    Uncertain,
    Unreachable,
)
from dragoman.loading import LateModule

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LateModule("aiohttp")

_LONGEST_WAIT = 365 * 86_400.0


def plain(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"there is no host {error.host}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        reason = os.strerror(number).lower() if number and number > 0 else str(error.os_error)
        return f"cannot connect to {error.host}:{error.port}: {reason}"
    if isinstance(error, aiohttp.ClientResponseError):  # in full it tells the address too
        return f"the answer cannot be read: {error.message.partition('. Please')[0].strip()[:300]}"
    return str(error).strip()[:300] or type(error).__name__


FaultKind = Literal[
    "refused",  # no connection could be made
    "lost",  # the connection went away before the answer came
    "timeout",  # no answer in time
    "unauthorized",
    "forbidden",
    "session_unknown",  # the server forgot our session: the request never ran
    "rate_limited",
    "server_error",
    "garbled",  # an answer came, and nobody can read it
    "no_result",  # an answer came that can be read and is no result
    "too_large",  # one message is larger than it may be
    "flooded",  # the server sends more than it may
]

_NEVER_RAN: frozenset[FaultKind] = frozenset(
    {"refused", "unauthorized", "forbidden", "session_unknown", "rate_limited"}
)
_WORTH_REPEATING: frozenset[FaultKind] = frozenset(
    {"refused", "lost", "session_unknown", "rate_limited", "server_error", "garbled"}
)
_AT_ONCE: frozenset[FaultKind] = frozenset({"lost", "session_unknown"})

_ERRORS: dict[FaultKind, Callable[..., DragomanError]] = {
    "refused": Unreachable,
    "lost": Unreachable,
    "timeout": Timeout,
    "unauthorized": NeedsAuth,
    "forbidden": Forbidden,
    "session_unknown": Unreachable,
    "rate_limited": RateLimited,
    "server_error": ServerError,
    "garbled": ProtocolFault,
    "no_result": ProtocolFault,
    "too_large": ProtocolFault,
    "flooded": ProtocolFault,
}

_HINTS: dict[FaultKind, str] = {
    "refused": "is the server running? Dragoman goes on trying, and the next call tries at once",
    "lost": "reconnecting automatically; call again",
    "timeout": "the server did not answer in time; raise request_timeout if this tool is slow by nature",
    "unauthorized": "the server wants a valid credential: dragoman connectors update SLUG --bearer TOKEN",
    "forbidden": "the credential is known to the server but may not do this",
    "rate_limited": "the server asks to wait; call again later",
    "server_error": "the fault is the server's; its log should say more",
    "garbled": "the server does not speak MCP correctly; its log should say more",
    "no_result": "the server answered with something else than the tool's result; its log should say more",
    "too_large": "ask for less, or raise max_message_bytes",
    "flooded": "raise max_messages_per_second or max_bytes_per_second if the server is meant to send so much",
}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait, where it says so in a way that can be read."""
    value = headers.get("Retry-After", "").strip()
    with suppress(ValueError, TypeError, OverflowError):
        if value.isdecimal():
            return min(float(value), _LONGEST_WAIT)
        return min(max(0.0, parsedate_to_datetime(value).timestamp() - time()), _LONGEST_WAIT)
    return None


def too_large(what: str) -> "WireFault":
    """Asked again, a server would send it again."""
    return WireFault("too_large", f"the server sent {what}")


class WireFault(Exception):
    """One request got no usable answer. `sent` False means that it never reached the server.

    `is_permanent`: nothing will be different next time unless somebody changes something.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        sent: bool = True,
        retry_after: float | None = None,
        hint: str | None = None,
        is_permanent: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind
        self.message = message
        self.retry_after = retry_after
        self.hint = hint
        self.is_permanent = is_permanent
        self.never_ran = not sent or kind in _NEVER_RAN

    def again(self, *, sent: bool = True) -> "WireFault":
        """The same fault for another of those who wait: an exception is raised once."""
        return WireFault(
            self.kind,
            self.message,
            sent=sent and not self.never_ran,
            retry_after=self.retry_after,
            hint=self.hint,
            is_permanent=self.is_permanent,
        )

    def may_be_repeated(self, safe: bool) -> bool:
        """Whether sending the same request again can help and cannot do a thing twice."""
        if self.kind == "rate_limited":
            return safe
        return self.kind in _WORTH_REPEATING and (safe or self.never_ran)

    @property
    def is_repeated_at_once(self) -> bool:
        """A new connection is a new chance; a busy server needs time."""
        return self.kind in _AT_ONCE

    def as_error(self, subject: str, safe: bool) -> DragomanError:
        """What the caller is told. `subject` names the connector and tool for a person."""
        if not safe and not self.never_ran:
            return Uncertain(
                f"{subject} may or may not have been executed: {self.message}",
                hint="look at the server before you repeat it: it is not known to be safe to repeat",
                cause=self.kind,
            )
        made = InvalidConfig if self.is_permanent else _ERRORS[self.kind]
        return made(
            f"{subject}: {self.message}" if subject else self.message,
            hint=self.hint or _HINTS.get(self.kind),
            cause=self.kind,
            retry_after=self.retry_after,
        )
