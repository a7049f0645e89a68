"""Dragoman as one MCP server over streamable HTTP: `/mcp` for all tools, `/mcp/<slug>` for one connector,
`/mcp/bundles/<name>` for a bundle.

Speaks both eras. Knows no credentials: the guard before it says who asks. Owns the sessions of the 2025
era and the standing streams; `stop` ends them, so that their connections can close.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_hex
from typing import Any, cast, get_args
from urllib.parse import parse_qs, unquote

from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    decode_header_value,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
)
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import HEADER_MISMATCH, INVALID_REQUEST, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Receive, Scope, Send

from dragoman.errors import CallerFault, Denied, DragomanError, NotFound
from dragoman.hints import speaking
from dragoman.hub import BoundHub, Hub, clients_of, logins_of
from dragoman.mcp_endpoint.channels import (
    PostChannel,
    SessionChannel,
    StatelessChannel,
    declared_in,
)
from dragoman.mcp_endpoint.client_tasks import METHODS as TASK_METHODS
from dragoman.mcp_endpoint.client_tasks import ClientTasks, check_declared, takes_tasks
from dragoman.mcp_endpoint.messages import (
    TASK_FIELDS,
    Message,
    Params,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    error_message,
    notification_message,
    parsed,
    result_message,
    shaped,
)
from dragoman.mcp_endpoint.methods import SERVER_INFO_STAMP, McpMethods, as_rpc, rejected, told
from dragoman.mcp_endpoint.notifications import LISTS, UPDATED, ChangeNotifier, ChangeSubscription
from dragoman.mcp_endpoint.parked_requests import ParkedRequests
from dragoman.mcp_endpoint.request_context import RequestContext
from dragoman.mcp_endpoint.search_tools import LED_CALL
from dragoman.mcp_endpoint.sessions import EndpointSession, EndpointSessions
from dragoman.mcp_endpoint.streams import DisconnectWatcher, PostReply, SlowRequests, StandaloneStream, framed
from dragoman.mcp_endpoint.views import EndpointTarget, View
from dragoman.names import alias_name
from dragoman.scope import Caller
from dragoman.store.records import ClientSession
from dragoman.telemetry.spans import TRACE_FIELDS, continued_trace
from dragoman.tool import ClientChannel, NoChannel
from dragoman.web.bodies import MAX_BODY, read_body
from dragoman.web.encoding import encode
from dragoman.web.guard import CREDENTIAL, Credential, bound_hub
from dragoman.web.problems import status_of
from dragoman.web.protected_resources import ProtectedResources
from dragoman.web.server_sent_events import until_first_ends, until_gone
from dragoman.web.standing_streams import StandingStreams

_SESSION = b"mcp-session-id"
_VERSION = "mcp-protocol-version"
Headers = dict[str, str]
_MOST_TOLD = 1_000
_NO_TRACE: dict[str, str] = {}


class _WrongRequest(Exception):
    """A request that is refused before it is one: an HTTP status, with the reason as JSON-RPC."""

    def __init__(self, status: int, message: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = RpcError(INVALID_REQUEST, message)
        self.headers = headers or []


class McpEndpoint:
    def __init__(
        self,
        hub: Hub,
        *,
        max_body: int = MAX_BODY,
        sessions: EndpointSessions | None = None,
        has_console: bool = False,
        streams: StandingStreams | None = None,
    ) -> None:
        """`has_console`: the console is at the same address, and people are led to it."""
        self._hub = hub
        self._has_console = has_console
        hub.expect_people()  # some clients can be asked, and connections are shared
        self._answers = McpMethods()
        self._parked = ParkedRequests(self._answers)
        self._tasks = ClientTasks(self._answers)
        self._sessions = EndpointSessions() if sessions is None else sessions
        self._max_body = max_body
        self._slow = SlowRequests()
        self._share = streams or StandingStreams(hub.settings.max_streams_per_user)
        self._streams: set[StandaloneStream] = set()
        self._is_stopping = False

    def stop(self) -> None:
        """Ends every standing stream, and what waits for clients to come back."""
        self._is_stopping = True
        self._parked.stop()
        self._tasks.stop()
        for stream in [*self._streams]:
            stream.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        reply, method = PostReply(send), scope["method"]
        try:
            with speaking("plain"):
                headers, target = _headers_of(scope), _target_of(scope)
                hub = self._hub_of(scope, target)
                if method == "POST":
                    body = await _body_of(receive, headers, self._max_body)
                    console = self._console_of(scope, headers)
                    await self._post(_Post(scope, receive, headers, target, hub, reply, console), body)
                elif method == "GET":
                    await self._get(headers, target, hub, receive, send)
                elif method == "DELETE":
                    await self._sessions.close(await self._session(headers, target, hub), clients_of(hub))
                    await reply.finish_empty(200)
                else:
                    raise _WrongRequest(405, "Method not allowed", [(b"allow", b"GET, POST, DELETE")])
        except _WrongRequest as wrong:
            reply.headers += wrong.headers
            await reply.finish(error_message(None, wrong.error), wrong.status)
        except Exception as error:  # noqa: BLE001
            # boundary: a fault of ours is the failure of one request and no more
            status = status_of(error) if isinstance(error, DragomanError) else 500
            await reply.finish(error_message(None, told(error, path=scope["path"][:200])), status)

    def _hub_of(self, scope: Scope, target: EndpointTarget) -> BoundHub:
        """At the address of a bundle nothing else is there, for all that is done with this hub."""
        hub = bound_hub(self._hub, scope)
        thread = _query_of(scope, "thread")
        caller = replace(hub.caller, way="mcp", thread=thread if thread else hub.caller.thread)
        hub = hub.acting_for(caller)
        return hub if target.bundle is None else hub.in_bundle(target.bundle)

    def _console_of(self, scope: Scope, headers: Headers) -> str | None:
        """Where the person of a client finds the console; the guard has looked at the name of the host."""
        if not self._has_console:
            return None
        return self._hub.settings.public_url or f"{scope.get('scheme', 'http')}://{headers.get('host', '')}"

    # Requests

    async def _post(self, post: "_Post", body: bytes) -> None:
        accepts = post.headers.get("accept", "*/*")
        if not any(
            kind in accepts for kind in ("application/json", "text/event-stream", "*/*", "application/*")
        ):
            raise _WrongRequest(406, "Not acceptable: accept application/json and text/event-stream")
        if not post.headers.get("content-type", "").lower().startswith("application/json"):
            raise _WrongRequest(415, "Unsupported media type: send application/json")
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
        answer = self._post_modern(post, message, value) if is_modern else self._post_legacy(post, message)
        with continued_trace(_trace_in(message)):
            await answer

    async def _post_modern(self, post: "_Post", message: Message, value: Any) -> None:
        if isinstance(message, RpcResponse):
            raise _WrongRequest(400, "Invalid request: this era has no answers of clients")
        if isinstance(message, RpcNotification):
            requested = post.headers.get(_VERSION, "")
            if (unsupported := unsupported_protocol_version_rejection(requested)) is not None:
                await post.refuse(None, rejected(unsupported), is_modern=True)
                return
            await post.reply.finish_empty(202)
            return
        if (wrong := _misfit(post, value)) is not None:
            await post.refuse(message.id, wrong, is_modern=True)
            return
        if message.method == "subscriptions/listen":
            await self._listen(post, message, post.context(NoChannel()))
            return
        settings = post.hub.settings
        channel = StatelessChannel(
            post.reply, message.params, settings.approval_wait, may_approve=settings.client_approvals
        )
        with self._watched(post, channel, cancels=True):
            await self._answer(post, message, post.context(channel))

    async def _post_legacy(self, post: "_Post", message: Message) -> None:
        if isinstance(message, RpcRequest) and message.method == "initialize":
            await self._open_session(post, message)
            return
        session = await self._session(post.headers, post.target, post.hub)
        if isinstance(message, RpcResponse):
            await session.take(message)
            await post.reply.finish_empty(202)
        elif isinstance(message, RpcNotification):
            if message.method == "notifications/cancelled":
                await session.cancel(message.params.get("requestId"))
            await post.reply.finish_empty(202)
        else:
            settings = post.hub.settings
            channel = SessionChannel(
                post.reply,
                message.params,
                settings.approval_wait,
                session,
                may_approve=settings.client_approvals,
            )
            context = RequestContext(
                post.hub, post.target, False, channel, subscriptions=session, console=post.console
            )
            with self._watched(post, channel, cancels=False):
                await self._answer(post, message, context, session)

    def _watched(self, post: "_Post", channel: PostChannel, *, cancels: bool) -> DisconnectWatcher:
        say = channel.still_running if channel.wants_progress else post.reply.keep_alive
        return DisconnectWatcher(self._slow, say, post.receive, cancels=cancels)

    async def _answer(
        self,
        post: "_Post",
        request: RpcRequest,
        context: RequestContext,
        session: EndpointSession | None = None,
    ) -> None:
        try:
            channel = context.channel
            if request.method == "tools/call" and await post.lacks_scope(request.params):
                await post.challenge(request.id)
                return
            if request.method in TASK_METHODS:
                result = await self._tasks.answer(request, context)
            elif _becomes_task(request, context):
                result = await self._tasks.call(request, context)
            elif isinstance(channel, StatelessChannel):
                result = await self._parked.answer(request, context, channel)
            elif session is None:
                result = await self._answers.answer(request, context)
            else:
                with session.running(request.id):
                    result = await self._answers.answer(request, context)
                if (name := request.method.removesuffix("/list")) in LISTS and name != request.method:
                    await session.knows(await ChangeNotifier(self._answers, context, [name], ()).digests())
        except Exception as error:  # noqa: BLE001
            # boundary: a fault of ours is the failure of one request and no more
            refusal = told(error, method=request.method[:100])
            await post.refuse(request.id, refusal, is_modern=context.is_modern)
            return
        await post.reply.finish(result_message(request.id, result))

    # Sessions of the 2025 era

    async def _open_session(self, post: "_Post", request: RpcRequest) -> None:
        context = RequestContext(post.hub, post.target, False, NoChannel())
        try:
            await self._answers.shown(context)
            result = await self._answers.answer(request, context)
            session = await self._sessions.open(
                post.hub.caller, post.target, request.params, clients_of(post.hub)
            )
        except NotFound as error:
            raise _WrongRequest(404, error.message) from None
        except RpcError as error:
            await post.refuse(request.id, error, is_modern=False)
            return
        if session is None:
            raise _WrongRequest(503, "Too many open sessions")
        post.reply.headers.append((_SESSION, session.id.encode()))
        await post.reply.finish(result_message(request.id, result))

    async def _session(self, headers: Headers, target: EndpointTarget, hub: BoundHub) -> EndpointSession:
        session_id = headers.get(_SESSION.decode())
        if session_id is None:
            raise _WrongRequest(
                400, "Bad request: the header Mcp-Session-Id is missing; begin with initialize"
            )
        session = await self._sessions.find(session_id, hub.caller, target, clients_of(hub))
        if session is None:
            raise _no_session()
        return session

    async def _get(
        self, headers: Headers, target: EndpointTarget, hub: BoundHub, receive: Receive, send: Send
    ) -> None:
        """The standing stream of a session: news of the list, until either side has enough."""
        if headers.get(_VERSION, HANDSHAKE_PROTOCOL_VERSIONS[-1]) not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise _WrongRequest(
                405, "Method not allowed: listen with subscriptions/listen", [(b"allow", b"POST")]
            )
        if "text/event-stream" not in headers.get("accept", "") and "*/*" not in headers.get("accept", ""):
            raise _WrongRequest(406, "Not acceptable: accept text/event-stream")
        session = await self._session(headers, target, hub)
        stream = StandaloneStream(send, [(_SESSION, session.id.encode())])
        before = await session.opens(stream, token_hex(8))
        if before is None:
            raise _no_session()
        context = RequestContext(hub, target, False, NoChannel())
        try:
            follow = partial(self._follow, session, stream, context, before)
            await self._stream(stream, hub.caller, receive, b": listening\n\n", follow)
        finally:
            if session.stream is stream:
                session.stream = session.rewatch = None

    async def _follow(
        self,
        session: EndpointSession,
        stream: StandaloneStream,
        context: RequestContext,
        before: ClientSession,
        listening: asyncio.Event,
    ) -> None:
        """Tells what changed since the client was last told, in whichever process that was, and all news."""

        async def tell(method: str, params: dict[str, Any]) -> None:
            await stream.tell(notification_message(method, params or None))

        wanted, changed = set(before.watched), asyncio.Event()
        changed.set()
        unheard = {*session.watched} if before.stream else set[str]()

        def rewatch(uris: Iterable[str]) -> None:
            nonlocal wanted
            wanted = set(uris)
            changed.set()

        async def watch() -> None:
            for uri in unheard:
                await tell(UPDATED, {"uri": uri})
            while await changed.wait():
                changed.clear()
                for uri in session.watched.keys() - wanted:
                    session.watched.pop(uri)()
                for uri in wanted - session.watched.keys():
                    with suppress(DragomanError):
                        end = await self._answers.offerings.watch(uri, context)
                        if session.watched.setdefault(uri, end) is not end:
                            end()
                        # Until now nobody listened here, and it may have changed meanwhile.
                        await tell(UPDATED, {"uri": uri})

        session.rewatch = rewatch
        told: asyncio.Queue[bytes] = asyncio.Queue(_MOST_TOLD)

        def hear(message: bytes) -> None:
            with suppress(asyncio.QueueFull):
                told.put_nowait(message)

        async def pass_on() -> None:
            while True:
                await stream.tell(await told.get())

        news = ChangeNotifier(self._answers, context, LISTS, session.watched)
        async with session.told_elsewhere(hear):
            await until_first_ends(watch(), pass_on(), news.follow(tell, session.told, listening))

    # Standing streams

    async def _listen(self, post: "_Post", request: RpcRequest, context: RequestContext) -> None:
        """subscriptions/listen: its answer is the stream."""
        if "text/event-stream" not in post.headers.get("accept", ""):
            raise _WrongRequest(406, "Not acceptable: accept text/event-stream")
        try:
            wanted = ChangeSubscription.read(request.params.get("notifications"))
            if wanted.tasks:
                check_declared(declared_in(request.params))
            tasks = await self._tasks.known(wanted.tasks, context)
        except RpcError as error:
            await post.refuse(request.id, error, is_modern=True)
            return
        meta = {SUBSCRIPTION_ID_META_KEY: request.id}
        stream = StandaloneStream(post.reply.send)

        async def tell(method: str, params: dict[str, Any]) -> None:
            await stream.tell(notification_message(method, {**params, "_meta": meta}))

        result = {"resultType": "complete", "_meta": {**meta, **SERVER_INFO_STAMP}}
        last = framed(result_message(request.id, encode(result)))
        async with self._answers.offerings.watching(wanted.uris, context) as watched:
            news = ChangeNotifier(self._answers, context, wanted.lists, watched)
            # Before the client is told that it listens: what changes from then on is news.
            known = await news.digests()
            facts = {"notifications": wanted.honoured(watched, tasks), "_meta": meta}
            first = framed(notification_message("notifications/subscriptions/acknowledged", facts))

            async def follow(listening: asyncio.Event) -> None:
                await until_first_ends(
                    news.follow(tell, known, listening), self._tasks.follow(tasks, context, tell)
                )

            await self._stream(stream, post.hub.caller, post.receive, first, follow, last)

    async def _stream(
        self,
        stream: StandaloneStream,
        caller: Caller,
        receive: Receive,
        first: bytes,
        follow: Callable[[asyncio.Event], Coroutine[Any, Any, None]],
        last: bytes = b"",
    ) -> None:
        """Ends with whichever comes first: the client, the news, or `stop`."""
        if self._is_stopping:
            raise _WrongRequest(503, "Dragoman is stopping")
        with self._share.one_of(caller):
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


@dataclass(slots=True)
class _Post:
    """One POST: what every step of its way needs."""

    scope: Scope
    receive: Receive
    headers: Headers
    target: EndpointTarget
    hub: BoundHub
    reply: PostReply
    console: str | None

    def context(self, channel: ClientChannel) -> RequestContext:
        """Of a request of the 2026 era."""
        return RequestContext(self.hub, self.target, True, channel, self.headers, console=self.console)

    async def lacks_scope(self, params: Params) -> bool:
        """Whether a client that logged in calls a tool for which it must be allowed to change things."""
        login: Credential | None = self.scope.get(CREDENTIAL)
        if not self.hub.caller.is_read_only or login is None or login.admission.audience is None:
            return False
        name = params.get("name")
        if name == LED_CALL and isinstance(params.get("arguments"), dict):
            name = params["arguments"].get("name")
        if not isinstance(name, str):
            return False
        slug = self.target.slug
        return await logins_of(self.hub).lacks_write(name if slug is None else alias_name(slug, name))

    async def challenge(self, request_id: Any) -> None:
        """Names the scope that the client has to ask its person for (step-up, RFC 6750)."""
        lacks = Denied("this tool changes things, and the client was allowed to read only")
        challenge = ProtectedResources(self.hub.settings).challenge(self.scope, lacks)
        if challenge is not None:
            self.reply.headers.append((b"www-authenticate", challenge.encode()))
        await self.reply.finish(error_message(request_id, as_rpc(lacks)), status_of(lacks))

    async def refuse(self, request_id: Any, error: RpcError, *, is_modern: bool) -> None:
        status = ERROR_CODE_HTTP_STATUS.get(error.code, 200) if is_modern else 200
        await self.reply.finish(error_message(request_id, error), status)


def _becomes_task(request: RpcRequest, context: RequestContext) -> bool:
    """2025 era: the client says so with its call; 2026: it says that it can, and no question is open."""
    if request.method != "tools/call":
        return False
    if not context.is_modern:
        return isinstance(request.params.get("task"), dict)
    return takes_tasks(context.channel.capabilities) and not context.channel.inputs


def _no_session() -> _WrongRequest:
    return _WrongRequest(404, "Session not found; begin again with initialize")


def _has_envelope(message: Message) -> bool:
    if not isinstance(message, RpcRequest):
        return False
    meta = message.params.get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


def _trace_in(message: Message) -> dict[str, str]:
    """The trace that the client names in the request itself; that of a header is continued already."""
    meta: Any = message.params.get("_meta") if isinstance(message, RpcRequest) else None
    if not isinstance(meta, dict) or TRACE_FIELDS[0] not in meta:
        return _NO_TRACE
    said = cast("dict[str, Any]", meta)
    return {name: said[name] for name in TRACE_FIELDS if isinstance(said.get(name), str)}


def _misfit(post: _Post, value: Any) -> RpcError | None:
    """Headers and body of the 2026 era must say the same."""
    if len(post.headers) < len(post.scope["headers"]):
        pairs = [(name.decode("latin-1"), "") for name, _ in post.scope["headers"]]
        if (duplicated := find_duplicated_routing_header(pairs)) is not None:
            return RpcError(HEADER_MISMATCH, f"{duplicated} header appears more than once")
    verdict = classify_inbound_request(value, headers=post.headers)
    if isinstance(verdict, InboundLadderRejection):
        return rejected(verdict)
    if (field := TASK_FIELDS.get(value["method"])) is not None:  # the SDK knows no extension
        task_id, said = value["params"].get(field), decode_header_value(post.headers.get("mcp-name"))
        if task_id is not None and said != task_id:
            return RpcError(HEADER_MISMATCH, f"mcp-name header does not match the request body's {field!r}")
    return None


# What a request over HTTP says before it is one of MCP: its headers, its address, its body


def _headers_of(scope: Scope) -> Headers:
    return {name.decode("latin-1"): value.decode("latin-1").strip() for name, value in scope["headers"]}


def _query_of(scope: Scope, name: str) -> str | None:
    query: bytes = scope.get("query_string", b"")
    if not query:
        return None
    values = parse_qs(query.decode("latin-1")).get(name)
    return values[-1][:200] if values else None


def _target_of(scope: Scope) -> EndpointTarget:
    path: str = scope["path"].rstrip("/")
    view: Any = _query_of(scope, "view")
    if view is not None and view not in get_args(View):
        raise _WrongRequest(404, f"There is no view {view[:50]!r}: use tools or search")
    if path == "/mcp":
        return EndpointTarget(None, view)
    slug = unquote(path.removeprefix("/mcp/"))
    place, mark, name = slug.partition("/")
    if mark and place == "bundles" and name and "/" not in name:
        return EndpointTarget(None, view, name)
    if mark or not slug:
        raise _WrongRequest(404, "Not found: use /mcp, /mcp/<connector> or /mcp/bundles/<name>")
    return EndpointTarget(slug, "tools" if view is None else view)


async def _body_of(receive: Receive, headers: Headers, limit: int) -> bytes:
    try:
        return await read_body(receive, limit, headers.get("content-length", ""))
    except CallerFault as error:
        raise _WrongRequest(status_of(error), f"{error.message[:1].upper()}{error.message[1:]}") from None
