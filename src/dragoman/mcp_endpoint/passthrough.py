"""What this door needs of the hub for resources, prompts and completion; the hub fills it in."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Protocol

from dragoman.connections.source import ServerNotice
from dragoman.scope import Caller
from dragoman.tool import ClientChannel

Json = Mapping[str, Any]


class ForwardsRequests(Protocol):
    """Requests to the server behind a connector, with the rights and the connection of the caller."""

    async def ask(
        self, connector: str, method: str, params: Json, *, caller: Caller, channel: ClientChannel
    ) -> Json:
        """The server's result as it came. Raises a `DragomanError`; its own no is on the line too."""
        ...

    async def offering(self, capability: str, *, caller: Caller) -> list[str]:
        """Slugs of the connectors whose servers offer `resources`, `prompts` or `completions`.

        `resources.subscribe`: those that tell when a single resource changes.
        """
        ...

    async def watch(self, connector: str, uri: str, *, caller: Caller) -> Callable[[], None]:
        """From now on `news` tells when this resource changes, until what is returned is called, once."""
        ...

    def news(self, *, caller: Caller) -> AsyncGenerator[tuple[str, ServerNotice]]:
        """What servers tell of prompts and resources: slug and notice. Ends with whoever listens."""
        ...
