"""Who asks this door, where and how: what every answer is made from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dragoman.hub import BoundHub
from dragoman.mcp_endpoint.views import EndpointTarget
from dragoman.scope import Caller
from dragoman.tool import ClientChannel


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Who asks, at which address, in which era, and the way back while the answer is made.

    `hub` acts for who asks: there is no other one on the way to an answer.
    `headers` are those of a request of the 2026 era over HTTP, which must agree with its body. `watched` are
    the resources that a session of the 2025 era wants to hear of, each with what ends it.
    """

    hub: BoundHub
    target: EndpointTarget
    is_modern: bool
    channel: ClientChannel
    headers: Mapping[str, str] | None = None
    watched: "Watched | None" = None

    @property
    def caller(self) -> Caller:
        return self.hub.caller


Watched = dict[str, Callable[[], None]]
"""Addresses of resources as the client knows them, each with what ends the watch."""
