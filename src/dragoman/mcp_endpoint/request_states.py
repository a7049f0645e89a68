"""Requests of the 2026 era that wait for their client to come back, found by the token in `requestState`.

A token is for one caller at one address and is used once, at whichever process the client comes back to.
Tokens are limited in number and in time.
"""

from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Any, Literal, get_args

from dragoman.hub import clients_of
from dragoman.mcp_endpoint.request_context import RequestContext

LASTS = 15 * 60.0
MOST_PER_USER = 50
Kind = Literal["allowed", "asked"]
_PREFIX = "dragoman"


@dataclass(frozen=True, slots=True)
class RequestState:
    """What Dragoman adds to a request's state: `allowed`, a call that goes on; `asked`, one that waits.

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


class RequestStates:
    """Of one kind, each with what is kept for it."""

    def __init__(self, kind: Kind, *, lasts: float = LASTS, most_per_user: int = MOST_PER_USER) -> None:
        self._kind = kind
        self._lasts = lasts
        self._most_per_user = most_per_user

    async def give(self, context: RequestContext, value: bytes) -> str | None:
        """A token, or None when there are too many already."""
        token = token_urlsafe(18)
        is_kept = await clients_of(context.hub).put(
            self._kind,
            _words(token, context),
            value,
            context.caller,
            lasts=self._lasts,
            most=self._most_per_user,
        )
        return token if is_kept else None

    async def take(self, token: str, context: RequestContext) -> bytes | None:
        """None for a token that is used, too old, or somebody else's."""
        return await clients_of(context.hub).take(self._kind, _words(token, context))


def _words(token: str, context: RequestContext) -> tuple[str, ...]:
    return token, context.caller.fingerprint, str(context.target)
