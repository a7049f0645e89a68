"""What every wire shares: the SDK's Dispatcher seam, and the handling of what a server sends unasked.

A wire knows JSON-RPC and nothing of tools. It never raises out of `run`: a wire that breaks as a
whole says so by `lost`, and the connection that owns it opens a new one.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from typing import Any, NoReturn, TypeGuard, cast

import anyio
import anyio.abc
import orjson
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest, run_notify_intercept
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT, RequestId

from dragoman.connections.exchanged_messages import MessageListener, hearing
from dragoman.connections.inbound_rate import InboundRate, WireLimits
from dragoman.connections.wire_faults import WireFault
from dragoman.remote_data import NestedTooDeep, parse_lenient_json
from dragoman.telemetry.redaction import Redactor

Message = dict[str, Any]
_NO_OPTIONS: CallOptions = {}
_UNLIMITED = nullcontext()
_MOST_REQUESTS = 64  # requests of a server that are answered at once


def is_object(value: object) -> TypeGuard[Message]:
    return isinstance(value, dict)


def encode(message: Mapping[str, Any]) -> bytes:
    return orjson.dumps(message)


def decode(data: bytes) -> Any:
    """The message in `data`; `ValueError` when it is no JSON, a fault when nobody could walk through it."""
    try:
        return parse_lenient_json(data)
    except NestedTooDeep as error:
        raise WireFault("garbled", f"the server sent a message that cannot be read: {error}") from None


def is_same_id(found: Any, request_id: RequestId | None) -> bool:
    """Whether an answer is the one to this request. Some servers answer "7" to 7; none means `true` by 1."""
    if request_id is None or isinstance(found, bool):
        return False
    return found == request_id or (isinstance(found, str) and found == str(request_id))


def raise_error(error: Any) -> NoReturn:
    """Raises the error that a peer sent in place of a result."""
    facts = error if is_object(error) else {"message": str(error)}
    code = facts.get("code")
    raise MCPError(
        code=code if isinstance(code, int) else INTERNAL_ERROR,
        message=str(facts.get("message", "")),
        data=facts.get("data"),
    )


def request_message(request_id: RequestId, method: str, params: Mapping[str, Any] | None) -> Message:
    message: Message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return message


def result_of(reply: Message, method: str) -> dict[str, Any]:
    """The result in an answer; raises the error that stands in its place."""
    if reply.get("error") is not None:
        raise_error(reply["error"])
    result = reply.get("result")
    if not is_object(result):
        raise WireFault("garbled", f"the answer to {method} holds no result")
    return result


class InboundContext:
    """What the SDK's session sees of a message that the server sent by itself."""

    can_send_request = False
    message_metadata = None

    def __init__(self, kind: str, request_id: RequestId | None) -> None:
        self.transport = TransportContext(kind=kind, can_send_request=False)
        self.request_id = request_id
        self.cancel_requested = anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise MCPError(code=CONNECTION_CLOSED, message="no way back to the server")

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        return None

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        return None


class Wire:
    """One channel to one server. Subclasses say how a message goes out and how messages come in."""

    kind = "wire"

    def __init__(self, limits: WireLimits) -> None:
        self._limit = limits.message_bytes
        self._rate = InboundRate(limits)
        self._answering = 0
        self._ids = itertools.count(1)
        self._progress: dict[RequestId, tuple[Any, set[asyncio.Task[None]]]] = {}
        self._heard: dict[RequestId, MessageListener] = {}
        self._about: dict[RequestId, RequestId] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._on_request: OnRequest | None = None
        self._on_notify: OnNotify | None = None
        self._intercept: OnNotifyIntercept | None = None
        self._fault: WireFault | None = None
        self.on_lost: Callable[[], None] = lambda: None
        self.redactor: Redactor = Redactor()  # of what was brought to this server, by who opened the wire
        self.garbage: int = 0

    @property
    def pid(self) -> int | None:
        """The process at the other end, where there is one of ours."""
        return None

    @property
    def stderr(self) -> tuple[str, ...]:
        return ()

    @property
    def fault(self) -> WireFault | None:
        """Why this wire is of no use any more; None while it is."""
        return self._fault

    def next_id(self) -> RequestId:
        """For a request that is sent with an id of the caller's choice."""
        return next(self._ids)

    def about(self, request_id: RequestId) -> RequestId | None:
        """The request of ours that a request of the server belongs to; None where the wire does not tell."""
        return self._about.get(request_id)

    def lose(self, fault: WireFault) -> None:
        """Declares the whole wire broken. The first reason stays."""
        if self._fault is None:
            self._fault = fault
            self.on_lost()

    def cut(self) -> None:
        """Nothing more goes out or comes in, from this moment."""
        self.lose(WireFault("lost", "this node does not hold the connection any more"))

    # The Dispatcher seam of the SDK

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """One request of the SDK's session. Its own timeouts are answers to it; ours are faults."""
        options = opts or _NO_OPTIONS
        request_id = options.get("request_id")
        if request_id is None:
            request_id = next(self._ids)
        telling: set[asyncio.Task[None]] = set()
        if on_progress := options.get("on_progress"):
            self._progress[request_id] = (on_progress, telling)
            params = {
                **(params or {}),
                "_meta": {**((params or {}).get("_meta") or {}), "progressToken": request_id},
            }
        if (listener := hearing()) is not None:
            self._heard[request_id] = listener
            listener.sent(self.redactor.cleaned(request_message(request_id, method, params)))
        try:
            # A call has a deadline of its own, and no timeout here.
            timeout = options.get("timeout")
            async with _UNLIMITED if timeout is None else asyncio.timeout(timeout):
                result = await self._requested(method, params, options.get("headers"), request_id)
                if telling:  # what came before the answer, or together with it, is told before it
                    await asyncio.wait(telling)
                return result
        except TimeoutError:
            raise MCPError(code=REQUEST_TIMEOUT, message=f"no answer to {method} in time") from None
        except WireFault as fault:
            if method != "subscriptions/listen":
                raise
            # The SDK drives a subscription in a task of its own, which knows no other failure than this.
            raise MCPError(code=CONNECTION_CLOSED, message=str(fault)) from None
        finally:
            self._progress.pop(request_id, None)
            self._heard.pop(request_id, None)

    async def _requested(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        request_id: RequestId,
    ) -> dict[str, Any]:
        if (listener := self._heard.get(request_id)) is None:
            return await self.request(method, params, headers, request_id)
        answer: Message = {"jsonrpc": "2.0", "id": request_id}
        try:
            answer["result"] = await self.request(method, params, headers, request_id)
        except MCPError as error:
            listener.received({**answer, "error": _error_of(error)})
            raise
        listener.received(answer)
        return answer["result"]

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        await self._send(message, (opts or _NO_OPTIONS).get("headers"))

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        # Not anyio's: what comes in is taken in callbacks of the loop, outside of any task, where anyio
        # does not know which loop this is.
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._on_request, self._on_notify, self._intercept = on_request, on_notify, on_notify_intercept
            task_status.started()
            try:
                # A task of its own: anyio's scopes cancel none whose next bytes are always there already.
                await tasks.create_task(self._listen())
            finally:
                self._tasks = None  # what still comes in has nobody left to take it

    # What subclasses fill in

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None = None,
        request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """The result of one request. Raises `MCPError` for the server's no and `WireFault` for none.

        Cancelling it tells the server that nobody waits any more.
        """
        raise NotImplementedError

    async def _send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        raise NotImplementedError

    async def _listen(self) -> None:
        """Receives until the wire is closed or lost; ends quietly."""
        raise NotImplementedError

    # What comes in unasked

    def _count(self, size: int, messages: int = 1) -> None:
        """Counts what answers nothing. A server that sends too much of it loses the wire, whoever waits."""
        if excess := self._rate.excess(size, messages):
            self._flooded(f"the server sent {excess}")

    def _flooded(self, why: str) -> NoReturn:
        fault = WireFault("flooded", why)
        self.lose(fault)
        raise fault.again()

    def _receive(self, message: Message, about: RequestId | None = None) -> None:
        """Takes a request or notification of the server; answers go elsewhere.

        `about` is the request of ours on whose own stream it came.
        """
        message = self.redactor.clean_message(message)
        method = message.get("method")
        if not isinstance(method, str):
            self.garbage += 1
            return
        if self._tasks is None:
            return
        params = message.get("params")
        if "id" in message:
            if not isinstance(message["id"], int | str):  # no answer could name it
                self.garbage += 1
                return
            if self._answering >= _MOST_REQUESTS:
                self._flooded(f"the server sent more than {_MOST_REQUESTS} requests at once")
            self._answering += 1
            task = self._tasks.create_task(self._answer(message["id"], method, params, about))
            task.add_done_callback(self._answered)
        elif method == "notifications/progress":
            self._progressed(self._tasks, params)
        elif not run_notify_intercept(self._intercept, method, params):
            self._tasks.create_task(self._notified(method, params))

    def _answered(self, _: asyncio.Task[None]) -> None:
        self._answering -= 1

    async def _notified(self, method: str, params: Mapping[str, Any] | None) -> None:
        if self._on_notify is not None:
            await self._on_notify(InboundContext(self.kind, None), method, params)

    def _progressed(self, tasks: asyncio.TaskGroup, params: Any) -> None:
        token = params.get("progressToken") if is_object(params) else None
        if not is_object(params) or not isinstance(token, int | str) or token not in self._progress:
            return
        on_progress, telling = self._progress[token]
        if (listener := self._heard.get(token)) is not None:
            listener.received({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        told = on_progress(params.get("progress", 0), params.get("total"), params.get("message"))
        task = tasks.create_task(told)
        telling.add(task)
        task.add_done_callback(telling.discard)

    def _asked_about(self, about: RequestId | None) -> RequestId | None:
        """Which request of ours it can only belong to, where that is certain."""
        return about

    async def _answer(
        self, request_id: RequestId, method: str, params: Mapping[str, Any] | None, about: RequestId | None
    ) -> None:
        answer: Message = {"jsonrpc": "2.0", "id": request_id}
        asked = self._asked_about(about) if self._heard else None
        listener = None if asked is None else self._heard.get(asked)
        if listener is not None:
            listener.received(request_message(request_id, method, params))
        try:
            if about is not None:
                self._about[request_id] = about
            assert self._on_request is not None
            answer["result"] = await self._on_request(InboundContext(self.kind, request_id), method, params)
        except MCPError as error:
            answer["error"] = _error_of(error)
        except Exception:  # noqa: BLE001 - boundary: a server's odd request must not end the wire
            answer["error"] = {"code": INTERNAL_ERROR, "message": "the request could not be answered"}
        finally:
            if about is not None:
                self._about.pop(request_id, None)
        if listener is not None:
            listener.sent(self.redactor.cleaned(answer))
        with suppress(WireFault):
            await self._send(answer)


def _error_of(error: MCPError) -> dict[str, Any]:
    return error.error.model_dump(by_alias=True, mode="json", exclude_none=True)


_NO_COURTESY = frozenset({"initialize", "server/discover"})


class DuplexWire(Wire):
    """Matches answers to requests by id. A lost wire fails what was waiting on it, once each."""

    def __init__(self, limits: WireLimits) -> None:
        super().__init__(limits)
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
        return result_of(self.redactor.clean_message(reply), method)

    def _asked_about(self, about: RequestId | None) -> RequestId | None:
        if about is not None or len(self._waiting) != 1:
            return about
        return next(iter(self._waiting))

    def lose(self, fault: WireFault) -> None:
        super().lose(fault)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(fault.again())

    def _take(self, data: bytes) -> None:
        """Takes one line or event, whatever it is. A wire that is lost takes nothing any more."""
        if self._fault is not None:
            return
        try:
            self._dispatch(decode(data), len(data))
        except ValueError:
            self.garbage += 1
            self._count(len(data))
        except WireFault as fault:
            self.lose(fault)
            raise

    def _dispatch(self, message: Any, size: int) -> None:
        """An answer, a request, a notification, or a batch of them."""
        if isinstance(message, list):
            for part in cast("list[Any]", message):
                self._dispatch(part, 0)
            return
        request_id = message.get("id") if is_object(message) and "method" not in message else None
        answer = self._find_waiting(request_id)
        if answer is not None:
            if not answer.done():
                answer.set_result(message)
            return
        self._count(size)
        if not is_object(message):
            self.garbage += 1
        elif "method" in message:  # else an answer that nobody waits for any more
            self._receive(message)

    def _find_waiting(self, request_id: Any) -> asyncio.Future[Message] | None:
        if isinstance(request_id, bool) or not isinstance(request_id, int | str):
            return None
        found = self._waiting.get(request_id)
        if found is None and isinstance(request_id, str) and request_id.isdecimal():
            found = self._waiting.get(int(request_id))  # some servers answer "7" to 7
        return found

    def _forget_request(self, request_id: RequestId) -> None:
        """Tells the server, without waiting, that nobody waits for this answer any more."""
        raise NotImplementedError
