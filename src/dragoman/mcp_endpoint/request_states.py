"""Requests of the 2026 era that wait for their client to come back, found by the token in `requestState`.

A token is for one caller at one address and is used once. Tokens are limited in number and in time, and kept
in memory: after a restart there are none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_urlsafe
from time import monotonic
from typing import Any, Generic, Literal, TypeVar, get_args

from dragoman.mcp_endpoint.request_context import RequestContext
from dragoman.mcp_endpoint.views import EndpointTarget
from dragoman.scope import Caller

LASTS = 15 * 60.0
MOST = 2_000
MOST_PER_USER = 50
Kind = Literal["allowed", "asked"]
Value = TypeVar("Value")
_PREFIX = "dragoman"


@dataclass(frozen=True, slots=True)
class RequestState:
    """What Dragoman adds to a request's state: `allowed`, a call that goes on; `asked`, one that waits here.

    `state` is the server's own, None where it gave none.
    """

    kind: Kind
    token: str
    state: str | None = None

    def __str__(self) -> str:
        mark = f"{_PREFIX}.{self.kind}.{self.token}"
        return mark if self.state is None else f"{mark}.{self.state}"

    @classmethod
    def find(cls, state: Any) -> "RequestState | None":
        prefix, *parts = str(state).split(".", 3)
        if prefix != _PREFIX or len(parts) < 2 or parts[0] not in get_args(Kind):
            return None
        kind: Any = parts[0]
        return cls(kind, parts[1], parts[2] if len(parts) == 3 else None)


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Value]):
    caller: Caller
    target: EndpointTarget
    value: Value
    until: float


class RequestStates(Generic[Value]):
    def __init__(
        self,
        *,
        lasts: float = LASTS,
        most: int = MOST,
        most_per_user: int = MOST_PER_USER,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._lasts = lasts
        self._most = most
        self._most_per_user = most_per_user
        self._clock = clock
        self._kept: dict[str, _Kept[Value]] = {}  # the oldest first

    def give(self, context: RequestContext, value: Value) -> str | None:
        """A token, or None when there are too many already."""
        now = self._clock()
        for token, kept in [*self._kept.items()]:
            if kept.until > now:
                break
            del self._kept[token]
        caller = context.caller
        own = sum(
            (kept.caller.workspace, kept.caller.user) == (caller.workspace, caller.user)
            for kept in self._kept.values()
        )
        if own >= self._most_per_user or len(self._kept) >= self._most:
            return None
        token = token_urlsafe(18)
        self._kept[token] = _Kept(caller, context.target, value, now + self._lasts)
        return token

    def take(self, token: str, context: RequestContext) -> Value | None:
        """None for a token that is used, too old, or somebody else's."""
        kept = self._kept.get(token)
        if kept is None or (kept.caller, kept.target) != (context.caller, context.target):
            return None
        del self._kept[token]
        return kept.value if kept.until > self._clock() else None
