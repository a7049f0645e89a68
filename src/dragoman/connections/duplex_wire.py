"""A wire where answers come back on one standing stream, in any order: stdio and the old SSE."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from mcp_types import RequestId

from dragoman.connections.wire import Message, Wire, is_object, request_message, result_of
from dragoman.connections.wire_faults import WireFault

_NO_COURTESY = frozenset({"initialize", "server/discover"})


class DuplexWire(Wire):
    """Matches answers to requests by id. A lost wire fails what was waiting on it, once each."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[RequestId, asyncio.Future[Message]] = {}

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None = None,
        request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        if request_id is None:
            request_id = next(self._ids)
        message = request_message(request_id, method, params)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        try:
            await self._send(message, headers)
            reply = await answer
        except asyncio.CancelledError:
            if method not in _NO_COURTESY:
                self._forget_request(request_id)
            raise
        finally:
            self._waiting.pop(request_id, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # seen, also where a cancellation came first
        return result_of(reply, method)

    def lose(self, fault: WireFault) -> None:
        super().lose(fault)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(WireFault(fault.kind, fault.message))

    def _dispatch(self, message: Any) -> None:
        """Takes whatever came in: an answer, a request, a notification, or a batch of them."""
        if isinstance(message, list):
            for part in cast("list[Any]", message):
                self._dispatch(part)
            return
        if not is_object(message):
            self.garbage += 1
            return
        if "method" in message:
            self._receive(message)
            return
        answer = self._find_waiting(message.get("id"))
        if answer is not None and not answer.done():
            answer.set_result(message)

    def _find_waiting(self, request_id: Any) -> asyncio.Future[Message] | None:
        if not isinstance(request_id, int | str):
            return None
        found = self._waiting.get(request_id)
        if found is None and isinstance(request_id, str) and request_id.isdecimal():
            found = self._waiting.get(int(request_id))  # some servers answer "7" to 7
        return found

    def _forget_request(self, request_id: RequestId) -> None:
        """Tells the server, without waiting, that nobody waits for this answer any more."""
        raise NotImplementedError
