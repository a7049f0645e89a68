"""What else a connector offers, asked through Dragoman: resources, prompts, completion.

Declared here and filled by the hub, once connections can carry more than tools.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from dragoman.scope import Caller

Json = Mapping[str, Any]


class Line(Protocol):
    """The way back to the client whose request is being answered."""

    async def notify(self, method: str, params: Json) -> None:
        """Tells it something about its request; lost when it has no ear for that."""
        ...

    async def ask(self, method: str, params: Json) -> Json:
        """Its answer, such as a person's to an elicitation. Raises when it cannot be asked."""
        ...


class Passthrough(Protocol):
    """Requests to the server behind a connector, with the rights and the connection of the caller."""

    async def ask(self, connector: str, method: str, params: Json, *, caller: Caller, line: Line) -> Json:
        """The server's result as it came. Raises `NotFound` for a connector that the caller does not see,
        `Refused` for the server's own no, and a `ServerFault` for none.
        """
        ...

    async def offering(self, capability: str, *, caller: Caller) -> list[str]:
        """Slugs of the connectors whose servers offer `resources`, `prompts` or `completions`."""
        ...


class Refused(Exception):
    """The server said no, in the words of JSON-RPC."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
