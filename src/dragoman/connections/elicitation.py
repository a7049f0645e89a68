"""Questions of a server in the middle of a request, and for whom it asks.

In the 2025 era the server asks by a request of its own, in the 2026 era by a result that wants input.
Knows neither the wire nor who is asked: `send` carries the request, the channel leads to the client.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, ElicitRequestParams, ElicitResult, ErrorData, RequestId

from dragoman.connections.wire import Wire
from dragoman.errors import InputRequired
from dragoman.tool import ClientChannel

Json = dict[str, Any]
Send = Callable[[Json], Awaitable[Json]]
_MOST_ROUNDS = 10
_PATIENCE = 0.8
"""Of the time that is left, so much may be spent on waiting for a person."""
DECLINED: Json = {"action": "decline"}


async def converse(send: Send, params: Json, channel: ClientChannel, deadline: float) -> Json:
    """The result, once whatever the server asks for has been answered."""
    if "_meta" in params:  # the 2026 era says with each request what the client can be asked
        meta = {**params["_meta"], CLIENT_CAPABILITIES_META_KEY: channel.capabilities}
        params = {**params, "_meta": meta, **channel.inputs}
    for _ in range(_MOST_ROUNDS):
        try:
            result = await send(params)
        except MCPError as error:
            channel.refused = (error.error.code, error.error.message, error.error.data)
            raise
        if result.get("resultType") != "input_required":
            return result
        if channel.retries:
            channel.pending = result
            raise InputRequired("the tool asks for input", hint="answer it, and send the same request again")
        params = {**params, "inputResponses": await _answers(result, channel, deadline)}
        params.pop("requestState", None)
        if (state := result.get("requestState")) is not None:
            params["requestState"] = state
    raise InputRequired(f"the tool asked more than {_MOST_ROUNDS} times for input")


async def _answers(result: Mapping[str, Any], channel: ClientChannel, deadline: float) -> Json:
    requests = cast("dict[str, Any]", result.get("inputRequests") or {})
    answers: Json = {}
    for name, request in requests.items():
        facts = cast("Json", request) if isinstance(request, dict) else {}
        answers[name] = await answered(channel, str(facts.get("method")), facts.get("params") or {}, deadline)
    return answers


async def answered(channel: ClientChannel, method: str, params: Mapping[str, Any], deadline: float) -> Json:
    """What the client says. A person who is not there in time, or cannot be asked, has declined."""
    left = deadline - asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(max(0.0, left * _PATIENCE)):
            return dict(await channel.ask(method, params))
    except (TimeoutError, InputRequired):
        if method == "elicitation/create":
            return DECLINED
        raise InputRequired(f"the tool asks for {method}, which nobody here can answer") from None


class PendingRequest:
    """One request under way; `channel` is None where its caller cannot be asked."""

    __slots__ = ("channel", "deadline", "request_id")

    def __init__(self, channel: ClientChannel | None, deadline: float) -> None:
        self.channel = channel
        self.deadline = deadline
        self.request_id: RequestId | None = None


class ElicitationRouter:
    """Who has a request under way on one session."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._parties: list[PendingRequest] = []

    @contextmanager
    def on_behalf_of(self, channel: ClientChannel | None, deadline: float) -> Generator[PendingRequest]:
        party = PendingRequest(channel, deadline)
        self._parties.append(party)
        try:
            yield party
        finally:
            self._parties.remove(party)

    async def elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        party = self._find(self._wire.about(context.request_id))
        if party is None or party.channel is None:
            return ElicitResult.model_validate(DECLINED)
        asked: dict[str, Any] = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        asked.pop("_meta", None)
        answer = await answered(party.channel, "elicitation/create", asked, party.deadline)
        return ElicitResult.model_validate(answer)

    def _find(self, request_id: RequestId | None) -> PendingRequest | None:
        if request_id is not None:
            return next((one for one in self._parties if one.request_id == request_id), None)
        return self._parties[0] if len(self._parties) == 1 else None
