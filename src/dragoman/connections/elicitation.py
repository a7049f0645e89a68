"""A server of the 2025 era asks by itself, in the middle of a call: for whom it asks is found here.

Over streamable HTTP it asks on the stream of the call that it asks about. Elsewhere (stdio, the old SSE, a
standing stream) a question does not say which call it belongs to: where one call is under way its client
is asked; where several are, nobody is, for an answer must never come from the wrong person.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, ErrorData, RequestId

from dragoman.connections.input_required import DECLINED, answered
from dragoman.connections.wire import Wire
from dragoman.tool import ClientChannel


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
