"""Who asks this door, where and how: what every answer is made from."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.hub import BoundHub
from dragoman.mcp_endpoint.views import EndpointTarget
from dragoman.scope import Caller
from dragoman.tool import CallObserver, ClientChannel


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Who asks, at which address, in which era, and the way back while the answer is made.

    `hub` acts for who asks: there is no other one on the way to an answer.
    `headers` are those of a request of the 2026 era over HTTP, which must agree with its body.
    `subscriptions` are of a session of the 2025 era: to resources that it wants to hear of.
    `console` is where people find the console, None where there is none.
    `observer` follows a call that has become a task.
    """

    hub: BoundHub
    target: EndpointTarget
    is_modern: bool
    channel: ClientChannel
    headers: Mapping[str, str] | None = None
    subscriptions: "SessionSubscriptions | None" = None
    console: str | None = None
    observer: CallObserver | None = None

    @property
    def approval_link(self) -> tuple[str, str | None] | None:
        """The question that the call ended with, and where it is answered."""
        approval = self.channel.approval
        if approval is None:
            return None
        return approval, f"{self.console.rstrip('/')}/approvals#{approval}" if self.console else None

    @property
    def caller(self) -> Caller:
        return self.hub.caller


Watch = Callable[[str], Awaitable[Callable[[], None]]]
"""Watches a resource, by the address that the client knows; what it returns ends that."""


class SessionSubscriptions(Protocol):
    """To which resources a session has subscribed; filled by `EndpointSession`."""

    async def tell(self, method: str, params: Mapping[str, Any]) -> None: ...
    async def subscribe(self, uri: str, watch: Watch) -> None: ...
    async def unsubscribe(self, uri: str) -> None: ...
