"""Ways back to a client while its request is answered. In the 2026 era a client is told, never asked."""

from typing import Any

from mcp_types import METHOD_NOT_FOUND

from dragoman.mcp_endpoint.messages import Params, RpcError, notification_message
from dragoman.mcp_endpoint.sessions import Session
from dragoman.mcp_endpoint.streams import Reply


class NoLine:
    """For requests that nothing is told about."""

    async def notify(self, method: str, params: Params) -> None:
        return None

    async def ask(self, method: str, params: Params) -> Params:
        raise _cannot(method)


class PostLine:
    """Over the answer to the client's own POST, which becomes a stream."""

    def __init__(self, reply: Reply, params: Params, session: Session | None = None) -> None:
        self._reply = reply
        self._params = params
        self._session = session

    @property
    def progress_token(self) -> Any:
        """What the client wants its progress marked with; None when it wants none."""
        meta = self._params.get("_meta")
        return meta.get("progressToken") if isinstance(meta, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]

    async def notify(self, method: str, params: Params) -> None:
        await self._reply.tell(notification_message(method, params))

    async def ask(self, method: str, params: Params) -> Params:
        session = self._session
        capability = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}.get(
            method, "roots"
        )
        if session is None or not session.can(capability):
            raise _cannot(method)
        return await session.ask(self._reply.tell, method, params)


def _cannot(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"this client cannot be asked for {method}")
