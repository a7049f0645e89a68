"""Requests of the 2026 era that are asked back in the middle: parked while their client fetches an answer.

A server of the 2025 era asks during a call and waits. Its client gets the question as a result, and the
same request again, with the answer, goes on where the first one stopped. Owns the tasks of such requests;
`stop` ends them. One waits for as long as a call waits for a person: then the question is declined.
"""

import asyncio
from collections.abc import Callable, Coroutine
from hashlib import blake2b
from typing import Any, cast

from mcp_types import INVALID_PARAMS

from dragoman.errors import InputRequired
from dragoman.mcp_endpoint.channels import StatelessChannel
from dragoman.mcp_endpoint.messages import Params, RpcError, RpcRequest
from dragoman.mcp_endpoint.methods import McpMethods, stamped
from dragoman.mcp_endpoint.request_context import RequestContext
from dragoman.mcp_endpoint.request_states import RequestState, RequestStates
from dragoman.mcp_endpoint.sessions import CANCELLED
from dragoman.web.encoding import encode

MAY_ASK = frozenset({"tools/call", "resources/read", "prompts/get"})
_QUESTION = "question"
_OWN = frozenset({"_meta", "inputResponses", "requestState"})


class ParkedRequests:
    def __init__(self, answers: McpMethods, tickets: "RequestStates[ParkedRequest] | None" = None) -> None:
        self._answers = answers
        self._states: RequestStates[ParkedRequest] = RequestStates() if tickets is None else tickets
        self._tasks: set[asyncio.Task[bytes]] = set()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def answer(self, request: RpcRequest, context: RequestContext, channel: StatelessChannel) -> bytes:
        """As `McpMethods.answer`, for a request that may be asked back or that comes back with answers."""
        if request.method not in MAY_ASK:
            return await self._answers.answer(request, context)
        mark = RequestState.find(request.params.get("requestState"))
        if mark is not None and mark.kind == "asked":
            return await self._resumed(mark, request, context, channel)
        if "elicitation" not in channel.capabilities:
            return await self._answers.answer(request, context)
        parked = ParkedRequest(request, channel, lambda one: self._states.give(context, one))
        channel.parked = parked
        return await parked.begin(self._started(self._answers.answer(request, context)))

    async def _resumed(
        self, mark: RequestState, request: RpcRequest, context: RequestContext, channel: StatelessChannel
    ) -> bytes:
        parked = self._states.take(mark.token, context)
        if parked is None or not parked.is_about(request):
            raise RpcError(
                INVALID_PARAMS,
                "This request waits for no answer any more (send it again without requestState)",
            )
        return await parked.resume(request.params, channel)

    def _started(self, work: Coroutine[Any, Any, bytes]) -> asyncio.Task[bytes]:
        # Held here and ended by `stop`: it outlives the request that began it.
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[bytes]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen, also where the client never came back for it


class ParkedRequest:
    """One request under way. `give` makes the token by which its client finds it again."""

    def __init__(
        self, request: RpcRequest, channel: StatelessChannel, give: "Callable[[ParkedRequest], str | None]"
    ) -> None:
        self._digest = _digest(request)
        self._channel = channel
        self._give = give
        self._turn = asyncio.Lock()
        self._asked: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[Params] | None = None

    def is_about(self, request: RpcRequest) -> bool:
        return self._digest == _digest(request)

    async def begin(self, task: asyncio.Task[bytes]) -> bytes:
        self._task = task
        return await self._outcome()

    async def resume(self, params: Params, channel: StatelessChannel) -> bytes:
        """The client is back. One that brings no answer is asked again."""
        given = params.get("inputResponses")
        answer = cast("Params", given).get(_QUESTION) if isinstance(given, dict) else None
        self._channel.come_back(channel)
        waiting, asked = self._answer, self._asked
        self._asked = asyncio.get_running_loop().create_future()
        if waiting is not None and not waiting.done():
            if isinstance(answer, dict):
                waiting.set_result(cast("Params", answer))
            else:
                self._send_away(asked.result()["inputRequests"])
        return await self._outcome()

    async def ask(self, method: str, params: Params) -> Params:
        """One question at a time goes out in place of the result."""
        async with self._turn:
            if self._channel.is_away or self._task.done():
                raise InputRequired("the client has not come back with an answer in time")
            self._send_away({_QUESTION: {"method": method, "params": params}})
            self._answer = asyncio.get_running_loop().create_future()
            return await self._answer

    def _send_away(self, questions: dict[str, Any]) -> None:
        token = self._give(self)
        if token is None:
            raise InputRequired("too many requests wait for an answer")
        self._channel.leave()
        state = str(RequestState("asked", token))
        self._asked.set_result(
            {"resultType": "input_required", "inputRequests": questions, "requestState": state}
        )

    async def _outcome(self) -> bytes:
        """The result, or a question in its place. A client that leaves before takes the request along."""
        asked = self._asked
        try:
            await asyncio.wait([self._task, asked], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        if not self._task.done():
            return encode(stamped(asked.result()))
        if self._task.cancelled():
            raise RpcError(CANCELLED, "Request cancelled")
        return self._task.result()


def _digest(request: RpcRequest) -> bytes:
    facts = {name: value for name, value in request.params.items() if name not in _OWN}
    return blake2b(encode([request.method, facts]), digest_size=16).digest()
