"""Requests of the 2026 era that are asked back in the middle: parked while their client fetches an answer.

A server of the 2025 era asks during a call and waits. Its client gets the question as a result, and the
same request again, with the answer, goes on where the first one stopped: in the process that it began in,
to which any other hands the answer on. Where that process has died, what may be repeated is begun anew with
the answers that were given so far. Owns the tasks of such requests; `stop` ends them. One waits for as long
as a call waits for a person: then the question is declined.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from secrets import token_hex
from time import monotonic
from typing import Any, cast

from mcp_types import INVALID_PARAMS

from dragoman.errors import InputRequired
from dragoman.hub import clients_of
from dragoman.hub.door_clients import DoorClients
from dragoman.mcp_endpoint.channels import StatelessChannel
from dragoman.mcp_endpoint.messages import Params, RpcError, RpcRequest
from dragoman.mcp_endpoint.methods import McpMethods, stamped, told
from dragoman.mcp_endpoint.request_context import RequestContext
from dragoman.mcp_endpoint.request_states import LASTS, RequestState, RequestStates
from dragoman.mcp_endpoint.sessions import CANCELLED
from dragoman.scope import Caller
from dragoman.web.encoding import encode

MAY_ASK = frozenset({"tools/call", "resources/read", "prompts/get"})
MOST = 2_000
_QUESTION = "question"
_ANSWERS = frozenset({"inputResponses", "requestState"})
_OWN = _ANSWERS | {"_meta"}
_LOOK_EVERY = 1.0  # seconds between two looks whether the process that a request waits in still lives
_TAKEN_WITHIN = 10.0  # seconds in which that process takes an answer, if it still has the request
_RESULT, _ERROR, _TOLD = b"=", b"!", b"~"


class ParkedRequests:
    """`most` wait in this process at once."""

    def __init__(self, answers: McpMethods, *, most: int = MOST) -> None:
        self._answers = answers
        self._states = RequestStates("asked")
        self._most = most
        self._parked: dict[str, ParkedRequest] = {}  # by token
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
            return await self._resumed(mark.token, request, context, channel)
        if "elicitation" not in channel.capabilities:
            return await self._answers.answer(request, context)
        return await self._begun(request, context, channel)

    async def _begun(
        self,
        request: RpcRequest,
        context: RequestContext,
        channel: StatelessChannel,
        answered: "Sequence[_AnsweredQuestion]" = (),
    ) -> bytes:
        parked = ParkedRequest(request, channel, lambda one: self._give(one, context), answered)
        channel.parked = parked
        return await parked.begin(self._started(self._answers.answer(request, context)))

    async def _give(self, parked: "ParkedRequest", context: RequestContext) -> str | None:
        """The token by which its client finds it again, at this process or by way of another."""
        clients = clients_of(context.hub)
        if len(self._parked) >= self._most:
            return None
        kept = _KeptRequest(clients.node, parked.digest, parked.question, parked.answered)
        token = await self._states.give(context, encode(kept))
        if token is None:
            return None
        self._parked[token] = parked

        def handed_on(message: bytes) -> None:
            # An answer that came to another process; what becomes of the request goes back there.
            if self._parked.pop(token, None) is not None:
                self._started(_answered_elsewhere(parked, message, clients, context.caller))

        forget = clients.expect("resume", (token,), handed_on)

        def left() -> None:
            self._parked.pop(token, None)
            timer.cancel()
            forget()

        # Who comes back after the request has ended still gets what became of it.
        timer = asyncio.get_running_loop().call_later(LASTS, left)
        parked.on_left(left)
        return token

    async def _resumed(
        self, token: str, request: RpcRequest, context: RequestContext, channel: StatelessChannel
    ) -> bytes:
        found = await self._states.take(token, context)
        kept = _KeptRequest(**json.loads(found)) if found else None
        if kept is None or kept.digest != _digest(request):
            raise _not_waiting()
        parked = self._parked.pop(token, None)
        if parked is not None:
            return await parked.resume(request.params, channel)
        if kept.node == clients_of(context.hub).node:
            raise _not_waiting()
        try:
            return await _resumed_elsewhere(kept.node, token, request, context, channel)
        except _ProcessGone:
            if not await self._answers.may_repeat(request, context):
                raise _not_waiting() from None
        channel.inputs = {}  # the state was ours, the answers are for who asks again
        again = replace(
            request, params={name: value for name, value in request.params.items() if name not in _ANSWERS}
        )
        return await self._begun(again, context, channel, kept.with_answer(_answer_in(request.params)))

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


_AnsweredQuestion = tuple[str, Params]
"""The digest of a question, and what the client answered."""


@dataclass(frozen=True, slots=True)
class _KeptRequest:
    """What any process must know of a request whose client was asked `question`, by its digest."""

    node: str
    digest: str
    question: str
    answered: Sequence[_AnsweredQuestion]

    def with_answer(self, answer: Params | None) -> Sequence[_AnsweredQuestion]:
        return self.answered if answer is None else [*self.answered, (self.question, answer)]


class _ProcessGone(Exception):
    """The process that a request waits in has died, and the request with it."""


class ParkedRequest:
    """One request under way. `give` makes the token by which its client finds it again.

    `answered` are questions that the client need not be asked again, for as long as they come in that order.
    """

    def __init__(
        self,
        request: RpcRequest,
        channel: StatelessChannel,
        give: "Callable[[ParkedRequest], Awaitable[str | None]]",
        answered: Sequence[_AnsweredQuestion] = (),
    ) -> None:
        self.digest = _digest(request)
        self.question = ""
        self.answered: list[_AnsweredQuestion] = []
        self._known = [*answered]
        self._channel = channel
        self._give = give
        self._turn = asyncio.Lock()
        self._asked: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[Params] | None = None
        self._left: Callable[[], None] | None = None

    async def begin(self, task: asyncio.Task[bytes]) -> bytes:
        self._task = task
        return await self._outcome()

    def on_left(self, left: Callable[[], None]) -> None:
        """`left` is called once nobody can come back to it with the token that was given last."""
        self._leave()
        self._left = left

    def _leave(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            left()

    async def resume(self, params: Params, channel: StatelessChannel) -> bytes:
        """The client is back. One that brings no answer is asked again."""
        self._leave()
        answer = _answer_in(params)
        self._channel.come_back(channel)
        waiting, asked = self._answer, self._asked
        self._asked = asyncio.get_running_loop().create_future()
        if waiting is not None and not waiting.done():
            if answer is not None:
                self.answered.append((self.question, answer))
                waiting.set_result(answer)
            else:
                await self._send_away(asked.result()["inputRequests"])
        return await self._outcome()

    async def ask(self, method: str, params: Params) -> Params:
        """One question at a time goes out in place of the result."""
        async with self._turn:
            if self._channel.is_away or self._task.done():
                raise InputRequired("the client has not come back with an answer in time")
            self.question = _question_digest(method, params)
            if self._known and self._known[0][0] == self.question:
                self.answered.append(self._known.pop(0))
                return self.answered[-1][1]
            self._known.clear()
            self._answer = asyncio.get_running_loop().create_future()
            await self._send_away({_QUESTION: {"method": method, "params": params}})
            return await self._answer

    async def _send_away(self, questions: dict[str, Any]) -> None:
        token = await self._give(self)
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


# A client that comes back to another process than the one its request waits in


async def _resumed_elsewhere(
    node: str, token: str, request: RpcRequest, context: RequestContext, channel: StatelessChannel
) -> bytes:
    """Hands its answer on, and what becomes of the request back; a client that leaves takes it along."""
    clients, caller, reply = clients_of(context.hub), context.caller, token_hex(16)
    messages: asyncio.Queue[bytes] = asyncio.Queue()
    forget = clients.expect("outcome", (reply,), messages.put_nowait)
    facts = [reply, request.params.get("inputResponses"), channel.written.token]
    try:
        async with clients.streams.follow(reply, lambda told: messages.put_nowait(_TOLD + told)):
            await clients.send("resume", (token,), encode(facts), caller)
            return await _outcome_of(node, token, messages, clients, channel)
    except asyncio.CancelledError:
        await clients.send("cancel", (reply,), b"", caller)
        raise
    finally:
        forget()


async def _outcome_of(
    node: str, token: str, messages: asyncio.Queue[bytes], clients: DoorClients, channel: StatelessChannel
) -> bytes:
    began = monotonic()
    while monotonic() - began < LASTS:
        try:
            async with asyncio.timeout(_LOOK_EVERY):
                message = await messages.get()
        except TimeoutError:
            is_late = monotonic() - began > _TAKEN_WITHIN
            # What can still be taken here, nobody took there.
            if clients.is_gone(node) or (is_late and await clients.take("resume", (token,))):
                raise _ProcessGone from None
            continue
        kind, said = message[:1], message[1:]
        if kind == _RESULT:
            return said
        if kind == _ERROR:
            raise RpcError(*json.loads(said))
        await channel.pass_on(said)
    raise _not_waiting()


async def _answered_elsewhere(
    parked: ParkedRequest, message: bytes, clients: DoorClients, caller: Caller
) -> bytes:
    """A request goes on here whose client is at another process."""
    reply, answers, progress_token = json.loads(message)
    work = asyncio.current_task()
    assert work is not None

    def cancelled(_: bytes) -> None:
        work.cancel()

    forget = clients.expect("cancel", (reply,), cancelled)
    channel = StatelessChannel(_RelayedReply(clients, reply), {"_meta": {"progressToken": progress_token}}, 0)
    try:
        outcome = _RESULT + await parked.resume({"inputResponses": answers}, channel)
    except Exception as error:  # noqa: BLE001
        # boundary: a fault of ours is the failure of one request and no more
        refusal = told(error, method="a request that was parked")
        outcome = _ERROR + encode([refusal.code, refusal.message, refusal.data])
    finally:
        forget()
    await clients.send("outcome", (reply,), outcome, caller)
    return outcome


class _RelayedReply:
    """The answer to a POST that came to another process."""

    can_stream = True

    def __init__(self, clients: DoorClients, reply: str) -> None:
        self._clients = clients
        self._reply = reply

    async def tell(self, message: bytes) -> bool:
        self._clients.streams.push(self._reply, message)
        return True


def _not_waiting() -> RpcError:
    return RpcError(
        INVALID_PARAMS, "This request waits for no answer any more (send it again without requestState)"
    )


def _answer_in(params: Params) -> Params | None:
    given = params.get("inputResponses")
    answer = cast("Params", given).get(_QUESTION) if isinstance(given, dict) else None
    return cast("Params", answer) if isinstance(answer, dict) else None


def _question_digest(method: str, params: Params) -> str:
    """By what a person reads and fills in: the rest may differ with the process that holds the connection."""
    asked = {name: params.get(name) for name in ("message", "requestedSchema", "url")}
    return blake2b(json.dumps([method, asked], sort_keys=True).encode(), digest_size=16).hexdigest()


def _digest(request: RpcRequest) -> str:
    facts = {name: value for name, value in request.params.items() if name not in _OWN}
    return blake2b(encode([request.method, facts]), digest_size=16).hexdigest()
