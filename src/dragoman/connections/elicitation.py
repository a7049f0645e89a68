"""Questions of a server in the middle of a request, and for whom it asks.

In the 2025 era the server asks by a request of its own, in the 2026 era by a result that wants input.
Knows neither the wire nor who is asked: `send` carries the request, the channel leads to who can answer.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, ElicitRequestParams, ElicitResult, ErrorData, RequestId

from dragoman.connections.source import SourceChannel
from dragoman.connections.wire import Wire, is_object
from dragoman.connections.wire_faults import WireFault
from dragoman.errors import InputRequired

Json = dict[str, Any]
Send = Callable[[Json], Awaitable[Json]]
_MOST_ROUNDS = 10
_DECLINED: Json = {"action": "decline"}


async def converse(send: Send, params: Json, channel: SourceChannel) -> Json:
    """The result, once whatever the server asks for has been answered."""
    meta: Json = params.get("_meta") or {}
    if CLIENT_CAPABILITIES_META_KEY in meta and (channel.capabilities or channel.inputs):
        # The 2026 era says with each request what the client can be asked.
        own: Json = meta[CLIENT_CAPABILITIES_META_KEY]
        declared = {**channel.capabilities, **own}
        if "extensions" in channel.capabilities:
            declared["extensions"] = {**channel.capabilities["extensions"], **own.get("extensions", {})}
        meta = {**meta, CLIENT_CAPABILITIES_META_KEY: declared}
        params = {**params, "_meta": meta, **channel.inputs}
    for _ in range(_MOST_ROUNDS):
        try:
            result = await send(params)
        except MCPError as error:
            channel.note_refused(error.error.code, error.error.message, error.error.data)
            raise
        if result.get("resultType") != "input_required":
            return result
        if channel.retries:
            channel.note_pending(result)
            raise InputRequired("the tool asks for input", hint="answer it, and send the same request again")
        params = {**params, "inputResponses": await _answers(result, channel)}
        params.pop("requestState", None)
        if (state := result.get("requestState")) is not None:
            params["requestState"] = state
    raise InputRequired(f"the tool asked more than {_MOST_ROUNDS} times for input")


async def _answers(result: Mapping[str, Any], channel: SourceChannel) -> Json:
    requests: Any = result.get("inputRequests") or {}
    if not is_object(requests):
        raise WireFault("no_result", "the server asks for input without saying for which")
    answers: Json = {}
    for name, request in requests.items():
        facts = cast("Json", request) if isinstance(request, dict) else {}
        answers[name] = await channel.ask(str(facts.get("method")), facts.get("params") or {})
    return answers


class PendingRequest:
    """One request under way."""

    __slots__ = ("channel", "request_id")

    def __init__(self, channel: SourceChannel, request_id: RequestId) -> None:
        self.channel = channel
        self.request_id = request_id


class ElicitationRouter:
    """Who has a request under way on one session."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._parties: list[PendingRequest] = []

    def begin(self, channel: SourceChannel) -> PendingRequest:
        party = PendingRequest(channel, self._wire.next_id())
        self._parties.append(party)
        return party

    def end(self, party: PendingRequest) -> None:
        self._parties.remove(party)

    async def elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        asked: dict[str, Any] = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        asked.pop("_meta", None)
        party = self._find(self._wire.about(context.request_id))
        if party is None:
            for one in self._parties:
                one.channel.decline(
                    asked, "several calls are under way, and it does not say for which it asks"
                )
            return ElicitResult.model_validate(_DECLINED)
        return ElicitResult.model_validate(await party.channel.ask("elicitation/create", asked))

    def _find(self, request_id: RequestId | None) -> PendingRequest | None:
        if request_id is not None:
            return next((one for one in self._parties if one.request_id == request_id), None)
        return self._parties[0] if len(self._parties) == 1 else None
