"""Ways back to a client while its request is answered, in both eras. They fill `ClientChannel`."""

import json
from collections.abc import Mapping
from math import inf
from typing import Any, Protocol, cast

from mcp_types import CLIENT_CAPABILITIES_META_KEY

from dragoman.errors import InputRequired
from dragoman.mcp_endpoint.messages import Params, RpcError, notification_message
from dragoman.mcp_endpoint.sessions import EndpointSession
from dragoman.tool import NoChannel, passed_on

_ASKED_BY = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_NOTHING: Mapping[str, Any] = {}
LONGEST_WAIT = 45.0
"""Seconds that a call waits for a yes of which its client hears nothing: clients give up after 60."""
_STEP = 1e-6


class TellsClient(Protocol):
    """The answer to a client's POST, which becomes a stream when something is told before its end."""

    @property
    def can_stream(self) -> bool: ...

    async def tell(self, message: bytes) -> bool: ...


class AsksByResult(Protocol):
    """Takes a question to a client that is not asked in the middle of its request, and brings the answer."""

    async def ask(self, method: str, params: Params) -> Params: ...


def declared_in(params: Params) -> Mapping[str, Any]:
    """The capabilities that a client of the 2026 era declares with its request."""
    meta: Any = params.get("_meta")
    declared: Any = cast("Params", meta).get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, dict) else None
    return cast("Mapping[str, Any]", declared) if isinstance(declared, dict) else _NOTHING


def can_answer(capabilities: Mapping[str, Any], method: str, params: Params) -> bool:
    """Whether the client declared that it can be asked this. One that names no mode of asking has forms."""
    declared = capabilities.get(_ASKED_BY.get(method, ""))
    if not isinstance(declared, dict):
        return False
    return params.get("mode") != "url" or "url" in declared


def has_forms(capabilities: Mapping[str, Any]) -> bool:
    """Whether its person can be shown a form. One that names no mode of asking has them."""
    declared: Any = capabilities.get("elicitation")
    return isinstance(declared, dict) and ("form" in declared or "url" not in declared)


def signed(params: Params, connector: str) -> Params:
    """The question with who asks it: the client knows only Dragoman, its person must know more."""
    message = params.get("message")
    return {**params, "message": f"[{connector}] {message}"} if isinstance(message, str) else params


class ProgressWriter:
    """Progress of one request, over the answer to its POST. Each is more than the last, as MCP wants it."""

    def __init__(self, reply: TellsClient, token: Any) -> None:
        self._reply = reply
        self.token = token
        self._last = -inf

    async def write(self, progress: float, total: float | None, message: str | None) -> None:
        if self.token is None:
            return
        self._last = progress if progress > self._last else self._last + _STEP
        facts = {"progressToken": self.token, "progress": self._last, "total": total, "message": message}
        told = {name: value for name, value in facts.items() if value is not None}
        await self._reply.tell(notification_message("notifications/progress", told))

    async def still_running(self, message: str) -> None:
        """That nothing has changed: a client that hears nothing gives up."""
        await self.write(max(self._last, 0.0), None, message)

    async def pass_on(self, message: bytes) -> None:
        """What another process has written of the request."""
        self._last = max(self._last, json.loads(message)["params"]["progress"])
        await self._reply.tell(message)


class PostChannel(NoChannel):
    """Over the answer to the client's own POST, which then becomes a stream."""

    def __init__(self, reply: TellsClient, params: Params, patience: float) -> None:
        super().__init__()
        self.reply: TellsClient | None = reply
        self.patience: float | None = patience
        self.approval_wait: float | None = min(patience, LONGEST_WAIT)
        meta = params.get("_meta")
        self._meta = cast("Mapping[str, Any]", meta) if isinstance(meta, dict) else _NOTHING
        self.meta = passed_on(self._meta) if self._meta else _NOTHING
        self.written: ProgressWriter = ProgressWriter(reply, self._meta.get("progressToken"))
        self.wants_progress: bool = self.written.token is not None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self.reply is not None:
            await self.written.write(progress, total, message)

    async def still_running(self) -> None:
        waits = f"waits for a person to answer approval {self.approval}" if self.approval else "still running"
        await self.written.still_running(waits)


class StatelessChannel(PostChannel):
    """A client of the 2026 era is never asked: it gets the question as a result, and retries with answers.

    A question that somebody waits for in the middle of a call goes out by way of `parked`.
    """

    retries = True

    def __init__(
        self, reply: TellsClient, params: Params, patience: float, *, may_approve: bool = False
    ) -> None:
        super().__init__(reply, params, patience)
        self.capabilities = declared_in(params)
        self.inputs: Mapping[str, Any] = {
            name: params[name] for name in ("inputResponses", "requestState") if name in params
        }
        self.parked: AsksByResult | None = None
        self.approves = may_approve and has_forms(self.capabilities)

    @property
    def is_away(self) -> bool:
        """Whether the client has been given a question and has not come back yet."""
        return self.reply is None

    async def pass_on(self, message: bytes) -> None:
        """What another process tells of the request."""
        await self.written.pass_on(message)

    def leave(self) -> None:
        self.reply = None

    def come_back(self, channel: "StatelessChannel") -> None:
        """Over the answer to another POST, that of `channel`, from now on."""
        self.reply, self.written = channel.reply, channel.written
        self.wants_progress = channel.wants_progress

    async def ask(self, method: str, params: Params, connector: str) -> Params:
        if self.parked is None or not can_answer(self.capabilities, method, params):
            return await super().ask(method, params, connector)
        return await self.parked.ask(method, signed(params, connector))


class SessionChannel(PostChannel):
    """A client of the 2025 era is asked in the middle of its request, and answers by another."""

    def __init__(
        self,
        reply: TellsClient,
        params: Params,
        patience: float,
        session: EndpointSession,
        *,
        may_approve: bool = False,
    ) -> None:
        super().__init__(reply, params, patience)
        self._session = session
        self.capabilities = session.capabilities
        self.approves = may_approve and has_forms(self.capabilities)

    async def ask(self, method: str, params: Params, connector: str) -> Params:
        return await self.ask_signed(method, signed(params, connector))

    async def ask_signed(self, method: str, params: Params) -> Params:
        """What says already who asks."""
        if (
            self.reply is None
            or not self.reply.can_stream
            or not can_answer(self.capabilities, method, params)
        ):
            return await super().ask(method, params, "")
        try:
            return await self._session.ask(self.reply.tell, method, params)
        except RpcError as error:
            raise InputRequired(f"the client refused {method}: {error.message}") from None
