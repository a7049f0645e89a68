"""Ways back to a client while its request is answered, in both eras. They fill `ClientChannel`."""

from collections.abc import Mapping
from typing import Any, Protocol, cast

from mcp_types import CLIENT_CAPABILITIES_META_KEY

from dragoman.errors import InputRequired
from dragoman.mcp_endpoint.messages import Params, RpcError, notification_message
from dragoman.mcp_endpoint.sessions import EndpointSession
from dragoman.tool import AdmittedCall

_ASKED_BY = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_NOTHING: Mapping[str, Any] = {}


class TellsClient(Protocol):
    """The answer to a client's POST, which becomes a stream when something is told before its end."""

    @property
    def can_stream(self) -> bool: ...

    async def tell(self, message: bytes) -> bool: ...


class AsksByResult(Protocol):
    """Takes a question to a client that is not asked in the middle of its request, and brings the answer."""

    async def ask(self, method: str, params: Params) -> Params: ...


def can_answer(capabilities: Mapping[str, Any], method: str, params: Params) -> bool:
    """Whether the client declared that it can be asked this. One that names no mode of asking has forms."""
    declared = capabilities.get(_ASKED_BY.get(method, ""))
    if not isinstance(declared, dict):
        return False
    return params.get("mode") != "url" or "url" in declared


def signed(params: Params, connector: str) -> Params:
    """The question with who asks it: the client knows only Dragoman, its person must know more."""
    message = params.get("message")
    return {**params, "message": f"[{connector}] {message}"} if isinstance(message, str) else params


class NoChannel:
    """For requests that nothing is told about, and that ask nothing."""

    capabilities: Mapping[str, Any] = _NOTHING
    inputs: Mapping[str, Any] = _NOTHING
    retries = False
    wants_progress = False
    patience: float | None = None

    def __init__(self) -> None:
        self.pending: Mapping[str, Any] | None = None
        self.refused: tuple[int, str, Any] | None = None
        self.admitted: AdmittedCall | None = None
        self.continues: AdmittedCall | None = None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        return None

    async def ask(self, method: str, params: Params, connector: str) -> Params:
        raise InputRequired(f"this client cannot be asked for {method}")


class PostChannel(NoChannel):
    """Over the answer to the client's own POST, which then becomes a stream."""

    def __init__(self, reply: TellsClient, params: Params, patience: float) -> None:
        super().__init__()
        self._reply: TellsClient | None = reply
        self.patience: float | None = patience
        meta = params.get("_meta")
        self._meta = cast("Mapping[str, Any]", meta) if isinstance(meta, dict) else _NOTHING
        self._token: Any = self._meta.get("progressToken")
        self.wants_progress = self._token is not None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._reply is None or self._token is None:
            return
        facts = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        told = {name: value for name, value in facts.items() if value is not None}
        await self._reply.tell(notification_message("notifications/progress", told))


class StatelessChannel(PostChannel):
    """A client of the 2026 era is never asked: it gets the question as a result, and retries with answers.

    A question that somebody waits for in the middle of a call goes out by way of `parked`.
    """

    retries = True

    def __init__(self, reply: TellsClient, params: Params, patience: float) -> None:
        super().__init__(reply, params, patience)
        declared = self._meta.get(CLIENT_CAPABILITIES_META_KEY)
        self.capabilities = cast("Mapping[str, Any]", declared) if isinstance(declared, dict) else _NOTHING
        self.inputs = {name: params[name] for name in ("inputResponses", "requestState") if name in params}
        self.parked: AsksByResult | None = None

    @property
    def is_away(self) -> bool:
        """Whether the client has been given a question and has not come back yet."""
        return self._reply is None

    @property
    def progress_token(self) -> Any:
        return self._token

    async def pass_on(self, message: bytes) -> None:
        """What another process tells of the request."""
        if self._reply is not None:
            await self._reply.tell(message)

    def leave(self) -> None:
        self._reply = None

    def come_back(self, channel: "StatelessChannel") -> None:
        """Over the answer to another POST, that of `channel`, from now on."""
        self._reply, self._token = channel._reply, channel._token

    async def ask(self, method: str, params: Params, connector: str) -> Params:
        if self.parked is None or not can_answer(self.capabilities, method, params):
            return await super().ask(method, params, connector)
        return await self.parked.ask(method, signed(params, connector))


class SessionChannel(PostChannel):
    """A client of the 2025 era is asked in the middle of its request, and answers by another."""

    def __init__(self, reply: TellsClient, params: Params, patience: float, session: EndpointSession) -> None:
        super().__init__(reply, params, patience)
        self._session = session
        self.capabilities = session.capabilities

    async def ask(self, method: str, params: Params, connector: str) -> Params:
        if (
            self._reply is None
            or not self._reply.can_stream
            or not can_answer(self.capabilities, method, params)
        ):
            return await super().ask(method, params, connector)
        try:
            return await self._session.ask(self._reply.tell, method, signed(params, connector))
        except RpcError as error:
            raise InputRequired(f"the client refused {method}: {error.message}") from None
