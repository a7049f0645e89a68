"""Ways back to a client while its request is answered, in both eras. They fill `Line`."""

from collections.abc import Mapping
from typing import Any, cast

from mcp_types import CLIENT_CAPABILITIES_META_KEY

from dragoman.errors import InputRequired
from dragoman.mcp_endpoint.messages import Params, RpcError, notification_message
from dragoman.mcp_endpoint.sessions import Session
from dragoman.mcp_endpoint.streams import Reply

_ASKED_BY = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_NOTHING: Mapping[str, Any] = {}


class NoLine:
    """For requests that nothing is told about, and that ask nothing."""

    capabilities: Mapping[str, Any] = _NOTHING
    inputs: Mapping[str, Any] = _NOTHING
    retries = False
    wants_progress = False

    def __init__(self) -> None:
        self.pending: Mapping[str, Any] | None = None
        self.refused: tuple[int, str, Any] | None = None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        return None

    async def ask(self, method: str, params: Params) -> Params:
        raise InputRequired(f"this client cannot be asked for {method}")


class PostLine(NoLine):
    """Over the answer to the client's own POST, which then becomes a stream."""

    def __init__(self, reply: Reply, params: Params) -> None:
        super().__init__()
        self._reply = reply
        meta = params.get("_meta")
        self._meta = cast("Mapping[str, Any]", meta) if isinstance(meta, dict) else _NOTHING
        self._token: Any = self._meta.get("progressToken")
        self.wants_progress = self._token is not None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        facts = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        told = {name: value for name, value in facts.items() if value is not None}
        await self._reply.tell(notification_message("notifications/progress", told))


class ModernLine(PostLine):
    """A client of the 2026 era is never asked: it gets the question as a result, and retries with answers."""

    retries = True

    def __init__(self, reply: Reply, params: Params) -> None:
        super().__init__(reply, params)
        declared = self._meta.get(CLIENT_CAPABILITIES_META_KEY)
        self.capabilities = cast("Mapping[str, Any]", declared) if isinstance(declared, dict) else _NOTHING
        self.inputs = {name: params[name] for name in ("inputResponses", "requestState") if name in params}


class SessionLine(PostLine):
    """A client of the 2025 era is asked in the middle of its request, and answers by another."""

    def __init__(self, reply: Reply, params: Params, session: Session) -> None:
        super().__init__(reply, params)
        self._session = session
        declared = session.client.get("capabilities")
        self.capabilities = cast("Mapping[str, Any]", declared) if isinstance(declared, dict) else _NOTHING

    async def ask(self, method: str, params: Params) -> Params:
        if _ASKED_BY.get(method) not in self.capabilities or not self._reply.can_stream:
            return await super().ask(method, params)
        try:
            return await self._session.ask(self._reply.tell, method, params)
        except RpcError as error:
            raise InputRequired(f"the client refused {method}: {error.message}") from None
