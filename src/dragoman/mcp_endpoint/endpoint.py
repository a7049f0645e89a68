"""Dragoman as one MCP server over streamable HTTP: `/mcp` for all tools, `/mcp/<slug>` for one connector.

Speaks both eras. Knows no credentials: the guard before it says who asks. Owns the sessions of the 2025
era and the standing streams; `stop` ends them, so that their connections can close.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
)
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import HEADER_MISMATCH, INTERNAL_ERROR, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Receive, Scope, Send

from dragoman.errors import NotFound
from dragoman.hub import Hub
from dragoman.mcp_endpoint.answers import SERVER_INFO_STAMP, Answers, rejected
from dragoman.mcp_endpoint.asking import Asker
from dragoman.mcp_endpoint.changes import LISTS, News, Wanted
from dragoman.mcp_endpoint.lines import ModernLine, NoLine, SessionLine
from dragoman.mcp_endpoint.messages import (
    Answer,
    Message,
    Notification,
    Request,
    RpcError,
    error_message,
    notification_message,
    parsed,
    result_message,
    shaped,
)
from dragoman.mcp_endpoint.requests import Headers, WrongRequest, body_of, headers_of, query_of, target_of
from dragoman.mcp_endpoint.sessions import Session, Sessions
from dragoman.mcp_endpoint.streams import Reply, Stream, Vigil, framed
from dragoman.mcp_endpoint.talks import Talks
from dragoman.mcp_endpoint.views import Target, Views
from dragoman.scope import Caller
from dragoman.telemetry.logs import get_logger
from dragoman.web.bodies import MAX_BODY
from dragoman.web.encoding import encode
from dragoman.web.guard import caller_in
from dragoman.web.server_sent_events import until_first_ends, until_gone

MOST_STREAMS = 1_000
_SESSION = b"mcp-session-id"
_VERSION = "mcp-protocol-version"


class McpEndpoint:
    def __init__(self, hub: Hub, *, max_body: int = MAX_BODY, sessions: Sessions | None = None) -> None:
        self._hub = hub
        self._answers = Answers(hub, Views(hub))
        self._talks = Talks(self._answers)
        self._sessions = Sessions() if sessions is None else sessions
        self._max_body = max_body
        self._streams: set[Stream] = set()
        self._is_stopping = False

    def stop(self) -> None:
        """Ends every standing stream, and what waits for clients to come back."""
        self._is_stopping = True
        self._talks.stop()
        for stream in [*self._streams]:
            stream.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        reply = Reply(send)
        try:
            await self._serve(scope, receive, send, reply)
        except WrongRequest as wrong:
            reply.headers += wrong.headers
            await reply.finish(error_message(None, wrong.error), wrong.status)
        except Exception:  # noqa: BLE001
            # boundary: a fault of ours is the failure of one request and no more
            get_logger().exception("mcp.failed", path=scope["path"][:200])
            await reply.finish(error_message(None, RpcError(INTERNAL_ERROR, "Internal error")), 500)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, reply: Reply) -> None:
        headers = headers_of(scope)
        target, caller = target_of(scope), self._caller(scope)
        method = scope["method"]
        if method == "POST":
            body = await body_of(receive, headers, self._max_body)
            await self._post(_Post(scope, receive, headers, target, caller, reply), body)
        elif method == "GET":
            await self._get(headers, target, caller, receive, send)
        elif method == "DELETE":
            self._sessions.close(self._session(headers, target, caller))
            await reply.finish_empty(200)
        else:
            raise WrongRequest(405, "Method not allowed", [(b"allow", b"GET, POST, DELETE")])

    def _caller(self, scope: Scope) -> Caller:
        caller = caller_in(scope, self._hub)
        thread = query_of(scope, "thread")
        return replace(caller, way="mcp", thread=thread if thread else caller.thread)

    # Requests

    async def _post(self, post: "_Post", body: bytes) -> None:
        accepts = post.headers.get("accept", "*/*")
        if not any(
            kind in accepts for kind in ("application/json", "text/event-stream", "*/*", "application/*")
        ):
            raise WrongRequest(406, "Not acceptable: accept application/json and text/event-stream")
        if not post.headers.get("content-type", "").lower().startswith("application/json"):
            raise WrongRequest(415, "Unsupported media type: send application/json")
        post.reply.can_stream = "text/event-stream" in accepts or "*/*" in accepts
        try:
            value = parsed(body)
            message = shaped(value)
        except RpcError as error:
            await post.reply.finish(error_message(None, error), 400)
            return
        version = post.headers.get(_VERSION)
        is_modern = (version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS) or _has_envelope(
            message
        )
        if is_modern:
            await self._post_modern(post, message, value)
        else:
            await self._post_legacy(post, message)

    async def _post_modern(self, post: "_Post", message: Message, value: Any) -> None:
        if isinstance(message, Answer):
            raise WrongRequest(400, "Invalid request: this era has no answers of clients")
        if isinstance(message, Notification):
            requested = post.headers.get(_VERSION, "")
            if (unsupported := unsupported_protocol_version_rejection(requested)) is not None:
                await post.refuse(None, rejected(unsupported), is_modern=True)
                return
            await post.reply.finish_empty(202)
            return
        if (wrong := _misfit(post, value)) is not None:
            await post.refuse(message.id, wrong, is_modern=True)
            return
        asker = Asker(post.caller, post.target, True, NoLine(), post.headers)
        if message.method == "subscriptions/listen":
            await self._listen(post, message, asker)
            return
        line = ModernLine(post.reply, message.params)
        with Vigil(post.reply, post.receive, cancels=True):
            await self._answer(post, message, replace(asker, line=line))

    async def _post_legacy(self, post: "_Post", message: Message) -> None:
        if isinstance(message, Request) and message.method == "initialize":
            await self._open_session(post, message)
            return
        session = self._session(post.headers, post.target, post.caller)
        if isinstance(message, Answer):
            session.take(message)
            await post.reply.finish_empty(202)
        elif isinstance(message, Notification):
            if message.method == "notifications/cancelled":
                session.cancel(message.params.get("requestId"))
            await post.reply.finish_empty(202)
        else:
            line = SessionLine(post.reply, message.params, session)
            asker = Asker(post.caller, post.target, False, line, watched=session.watched)
            with Vigil(post.reply, post.receive, cancels=False):
                await self._answer(post, message, asker, session)

    async def _answer(
        self, post: "_Post", request: Request, asker: Asker, session: Session | None = None
    ) -> None:
        try:
            if isinstance(asker.line, ModernLine):
                result = await self._talks.answer(request, asker, asker.line)
            elif session is None:
                result = await self._answers.answer(request, asker)
            else:
                with session.running(request.id):
                    result = await self._answers.answer(request, asker)
                if (name := request.method.removesuffix("/list")) in LISTS and name != request.method:
                    session.told |= await News(self._hub, self._answers, asker, [name], ()).digests()
        except RpcError as error:
            await post.refuse(request.id, error, is_modern=asker.is_modern)
            return
        except Exception:  # noqa: BLE001
            # boundary: a fault of ours is the failure of one request and no more
            get_logger().exception("mcp.failed", method=request.method[:100])
            await post.refuse(
                request.id, RpcError(INTERNAL_ERROR, "Internal error"), is_modern=asker.is_modern
            )
            return
        await post.reply.finish(result_message(request.id, result))

    # Sessions of the 2025 era

    async def _open_session(self, post: "_Post", request: Request) -> None:
        asker = Asker(post.caller, post.target, False, NoLine())
        try:
            await self._answers.shown(asker)
            result = await self._answers.answer(request, asker)
        except NotFound as error:
            raise WrongRequest(404, error.message) from None
        except RpcError as error:
            await post.refuse(request.id, error, is_modern=False)
            return
        session = self._sessions.open(post.caller, post.target, request.params)
        if session is None:
            raise WrongRequest(503, "Too many open sessions")
        post.reply.headers.append((_SESSION, session.id.encode()))
        await post.reply.finish(result_message(request.id, result))

    def _session(self, headers: Headers, target: Target, caller: Caller) -> Session:
        session_id = headers.get(_SESSION.decode())
        if session_id is None:
            raise WrongRequest(
                400, "Bad request: the header Mcp-Session-Id is missing; begin with initialize"
            )
        session = self._sessions.find(session_id, caller, target)
        if session is None:
            raise WrongRequest(404, "Session not found; begin again with initialize")
        return session

    async def _get(
        self, headers: Headers, target: Target, caller: Caller, receive: Receive, send: Send
    ) -> None:
        """The standing stream of a session: news of the list, until either side has enough."""
        if headers.get(_VERSION, HANDSHAKE_PROTOCOL_VERSIONS[-1]) not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise WrongRequest(
                405, "Method not allowed: listen with subscriptions/listen", [(b"allow", b"POST")]
            )
        if "text/event-stream" not in headers.get("accept", "") and "*/*" not in headers.get("accept", ""):
            raise WrongRequest(406, "Not acceptable: accept text/event-stream")
        session = self._session(headers, target, caller)
        stream = Stream(send, [(_SESSION, session.id.encode())])
        if session.stream is not None:
            session.stream.end()  # the client came back before its old stream was seen to be gone
        session.stream = stream
        asker = Asker(caller, target, False, NoLine())
        news = News(self._hub, self._answers, asker, LISTS, session.watched)

        async def tell(method: str, params: dict[str, Any]) -> None:
            await stream.tell(notification_message(method, params or None))

        try:
            await self._stream(stream, receive, b": listening\n\n", partial(news.follow, tell, session.told))
        finally:
            if session.stream is stream:
                session.stream = None

    # Standing streams

    async def _listen(self, post: "_Post", request: Request, asker: Asker) -> None:
        """subscriptions/listen: its answer is the stream."""
        if "text/event-stream" not in post.headers.get("accept", ""):
            raise WrongRequest(406, "Not acceptable: accept text/event-stream")
        try:
            wanted = Wanted.read(request.params.get("notifications"))
        except RpcError as error:
            await post.refuse(request.id, error, is_modern=True)
            return
        meta = {SUBSCRIPTION_ID_META_KEY: request.id}
        stream = Stream(post.send)

        async def tell(method: str, params: dict[str, Any]) -> None:
            await stream.tell(notification_message(method, {**params, "_meta": meta}))

        result = {"resultType": "complete", "_meta": {**meta, **SERVER_INFO_STAMP}}
        last = framed(result_message(request.id, encode(result)))
        async with self._answers.offerings.watching(wanted.uris, asker) as watched:
            news = News(self._hub, self._answers, asker, wanted.lists, watched)
            # Before the client is told that it listens: what changes from then on is news.
            known = await news.digests()
            facts = {"notifications": wanted.honoured(watched), "_meta": meta}
            first = framed(notification_message("notifications/subscriptions/acknowledged", facts))
            await self._stream(stream, post.receive, first, partial(news.follow, tell, known), last)

    async def _stream(
        self,
        stream: Stream,
        receive: Receive,
        first: bytes,
        follow: Callable[[asyncio.Event], Coroutine[Any, Any, None]],
        last: bytes = b"",
    ) -> None:
        """Ends with whichever comes first: the client, the news, or `stop`."""
        if len(self._streams) >= MOST_STREAMS or self._is_stopping:
            raise WrongRequest(503, "Too many open streams")
        self._streams.add(stream)
        try:
            # Who reads the first words may rely on hearing all that happens from then on.
            listening = asyncio.Event()
            await until_first_ends(
                follow(listening), stream.open(first, listening), until_gone(receive), stream.ended()
            )
        finally:
            self._streams.discard(stream)
        await stream.close(last)


class _Post:
    """One POST: what every step of its way needs."""

    __slots__ = ("caller", "headers", "receive", "reply", "scope", "send", "target")

    def __init__(
        self, scope: Scope, receive: Receive, headers: Headers, target: Target, caller: Caller, reply: Reply
    ) -> None:
        self.scope = scope
        self.receive = receive
        self.headers = headers
        self.target = target
        self.caller = caller
        self.reply = reply
        self.send = reply.send

    async def refuse(self, request_id: Any, error: RpcError, *, is_modern: bool) -> None:
        status = ERROR_CODE_HTTP_STATUS.get(error.code, 200) if is_modern else 200
        await self.reply.finish(error_message(request_id, error), status)


def _has_envelope(message: Message) -> bool:
    if not isinstance(message, Request):
        return False
    meta = message.params.get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


def _misfit(post: _Post, value: Any) -> RpcError | None:
    """Headers and body of the 2026 era must say the same."""
    pairs = [(name.decode("latin-1"), "") for name, _ in post.scope["headers"]]
    if (duplicated := find_duplicated_routing_header(pairs)) is not None:
        return RpcError(HEADER_MISMATCH, f"{duplicated} header appears more than once")
    verdict = classify_inbound_request(value, headers=post.headers)
    return rejected(verdict) if isinstance(verdict, InboundLadderRejection) else None
