"""What each method answers, in both eras, whatever carried the request. Decides no rights: the hub does."""

import json
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any, cast

from mcp.shared.inbound import (
    InboundLadderRejection,
    validate_mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    SERVER_INFO_META_KEY,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from dragoman.connections.server_tasks import EXTENSION
from dragoman.errors import DragomanError
from dragoman.mcp_endpoint.messages import Params, RpcError, RpcRequest
from dragoman.mcp_endpoint.request_context import RequestContext
from dragoman.mcp_endpoint.request_states import RequestState, RequestStates
from dragoman.mcp_endpoint.resources import ServerResources
from dragoman.mcp_endpoint.results import call_result, unknown, with_approval
from dragoman.mcp_endpoint.search_tools import use
from dragoman.mcp_endpoint.views import ClientTools, ClientViews
from dragoman.names import alias_name, did_you_mean
from dragoman.telemetry.logs import get_logger
from dragoman.tool import AdmittedCall, Tool
from dragoman.web.encoding import encode

SERVER_INFO = {"name": "dragoman", "title": "Dragoman", "version": version("dragoman")}
SERVER_INFO_STAMP = {SERVER_INFO_META_KEY: SERVER_INFO}
LEGACY_ONLY = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
# What a server refuses in these words is between it and the client; the rest is for the model to read.
_CALLERS_FAULTS = frozenset({INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY})
_LEVELS = frozenset({"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})
_HEADER_MAPS = 10_000
_LISTS_TTL = 5_000  # milliseconds: who wants to know sooner listens for changes
_TASKS: Mapping[str, Any] = {
    "list": {},
    "cancel": {},
    "requests": {"tools": {"call": {}}},
}  # as the 2025 era has them
_SEARCH_HINT = "Find a tool with search_tools, then call it by its name with call_tool."


class McpMethods:
    def __init__(self) -> None:
        self._views = ClientViews()
        self.offerings = ServerResources()
        self._admissions = RequestStates("allowed")
        self._param_headers: dict[str, bool] = {}
        self._methods: dict[str, Callable[[Params, RequestContext], Awaitable[bytes]]] = {
            "tools/call": self._call,
            "tools/list": self._list,
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._nothing,
            "logging/setLevel": self._set_level,
        }

    async def answer(self, request: RpcRequest, context: RequestContext) -> bytes:
        """The result as JSON. Raises `RpcError`, and `CancelledError` when the client lost interest."""
        method = self._methods.get(request.method)
        if context.is_modern and request.method in LEGACY_ONLY:
            raise _no_method(request.method)
        await self._take_mark(context)
        try:
            if method is not None:
                return await method(request.params, context)
            offered = await self.offerings.answer(request.method, request.params, context)
        except DragomanError as error:
            raise as_rpc(error) from None
        if offered is None:
            raise _no_method(request.method)
        if offered is context.channel.pending:
            return await self._pending(context)
        return encode(stamped(offered) if context.is_modern else offered)

    async def shown(self, context: RequestContext) -> ClientTools:
        """The tools of this client, as they are now. Raises `NotFound` for an unknown connector."""
        return self._views.show(
            context.target, await context.hub.in_thread(), has_execution=not context.is_modern
        )

    async def may_repeat(self, request: RpcRequest, context: RequestContext) -> bool:
        """Whether it does no harm when it was begun before, and nobody knows how far it came."""
        if request.method != "tools/call":
            return True
        tool = (await self.shown(context)).by_name.get(request.params.get("name", ""))
        return tool is not None and tool.definition.annotations.is_safe_to_repeat

    # Requests that are asked back and come again

    async def _take_mark(self, context: RequestContext) -> None:
        """The request's state as the server gave it; what it was allowed for before, it still is."""
        channel = context.channel
        mark = RequestState.find(channel.inputs.get("requestState"))
        if mark is not None and mark.kind == "allowed":
            admitted = await self._admissions.take(mark.token, context)
            channel.continues = AdmittedCall(*json.loads(admitted)) if admitted else None
            channel.inputs = {name: value for name, value in channel.inputs.items() if name != "requestState"}
            if mark.state is not None:
                channel.inputs = {**channel.inputs, "requestState": mark.state}

    async def _pending(self, context: RequestContext) -> bytes:
        """The server's question. Marked always, so that no state of a server is taken for a mark of ours."""
        pending, admitted = context.channel.pending or {}, context.channel.admitted
        token = None
        if admitted is not None:
            facts = encode([admitted.fingerprint, admitted.arguments_hash])
            token = await self._admissions.give(context, facts)
        mark = RequestState("allowed", token or "", pending.get("requestState"))
        return encode(stamped({**pending, "requestState": str(mark)}))

    # tools

    async def _call(self, params: Params, context: RequestContext) -> bytes:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "Invalid params: name must be the name of a tool")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "Invalid params: arguments must be an object")
        given = cast("dict[str, Any]", arguments)
        slug = context.target.slug
        shown = await self.shown(context)
        tool = shown.by_name.get(name)
        channel = context.channel
        if tool is None and slug is None:
            led = await use(await context.hub.in_thread(), name, given, channel, context.observer)
            if led is not None:
                if channel.pending is not None:
                    return await self._pending(context)
                led = with_approval(led, context.approval_link)
                return encode(stamped(led) if context.is_modern else led)
        if tool is not None and context.headers is not None:
            self._check_param_headers(tool, given, context.headers)
        public = tool.name if tool else name if slug is None else alias_name(slug, name)
        output = await context.hub.call(public, given, channel=channel, observer=context.observer)
        if output.error is not None:
            if channel.pending is not None:
                return await self._pending(context)
            if channel.refused is not None and channel.refused[0] in _CALLERS_FAULTS:
                raise RpcError(*channel.refused)
            if output.error.code == "not_found" and not output.metadata.connector:
                raise unknown(output.error) if slug is None else _unknown_here(name, shown)
        result = call_result(output, tool, is_alone=slug is not None)
        result = with_approval(result, context.approval_link)
        return encode(stamped(result) if context.is_modern else result)

    async def _list(self, params: Params, context: RequestContext) -> bytes:
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "Invalid params: this list has one page and no cursor")
        body = (await self.shown(context)).body
        if not context.is_modern:
            return b'{"tools":%b}' % body
        return b'{"tools":%b,%b' % (body, _LIST_TAIL)

    def _check_param_headers(
        self, tool: Tool, arguments: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        has_any = self._param_headers.get(tool.fingerprint)
        if has_any is None:
            if len(self._param_headers) >= _HEADER_MAPS:
                self._param_headers.clear()
            has_any = bool(x_mcp_header_map(dict(tool.definition.input_schema)))
            self._param_headers[tool.fingerprint] = has_any
        if has_any:
            rejection = validate_mcp_param_headers(tool.definition.input_schema, arguments, headers)
            if rejection is not None:
                raise rejected(rejection)

    # Getting to know each other

    async def _initialize(self, params: Params, context: RequestContext) -> bytes:
        requested = params.get("protocolVersion")
        if not isinstance(requested, str):
            raise RpcError(INVALID_PARAMS, "Invalid params: protocolVersion must be a string")
        return encode(
            {
                "protocolVersion": negotiated(requested),
                "capabilities": {"logging": {}, "tasks": _TASKS, **await self._capabilities(context)},
                "serverInfo": SERVER_INFO,
                **await self._instructions(context),
            }
        )

    async def _discover(self, params: Params, context: RequestContext) -> bytes:
        result: dict[str, Any] = {
            "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
            "capabilities": await self._capabilities(context, {EXTENSION: {}}),
            "ttlMs": _LISTS_TTL,
            "cacheScope": "private",
            **await self._instructions(context),
        }
        return encode(stamped(result))

    async def _capabilities(
        self, context: RequestContext, extensions: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """`extensions` are Dragoman's own; those that pass through are declared where a server has them."""
        found = {**(extensions or {}), **await self.offerings.extensions(context)}
        declared = {"extensions": found} if found else {}
        return {"tools": {"listChanged": True}, **declared, **await self.offerings.capabilities(context)}

    async def _instructions(self, context: RequestContext) -> dict[str, str]:
        slug, bundle = context.target.slug, context.target.bundle
        if bundle is not None and (own := context.hub.bundles.find(bundle).instructions):
            return {"instructions": own}
        if slug is None:
            return {"instructions": _SEARCH_HINT} if (await self.shown(context)).view == "search" else {}
        connector = (await context.hub.connectors.get(slug)).connector
        return {"instructions": connector.instructions} if connector.instructions else {}

    async def _nothing(self, params: Params, context: RequestContext) -> bytes:
        return b"{}"

    async def _set_level(self, params: Params, context: RequestContext) -> bytes:
        if params.get("level") not in _LEVELS:
            raise RpcError(
                INVALID_PARAMS, f"Invalid params: level must be one of {', '.join(sorted(_LEVELS))}"
            )
        return b"{}"


def negotiated(requested: str) -> str:
    """The version of a session: what was asked for where it is spoken here, else the newest one."""
    return requested if requested in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION


def rejected(rejection: InboundLadderRejection) -> RpcError:
    return RpcError(rejection.code, rejection.message, rejection.data)


def as_rpc(error: DragomanError) -> RpcError:
    """For what is no call of a tool: there the output says it."""
    hint = f" ({error.hint})" if error.hint else ""
    facts = {"code": error.code, "retryable": error.retryable}
    code = INVALID_PARAMS if error.code in ("not_found", "invalid_arguments", "invalid_name") else -32000
    return RpcError(code, f"{error.message}{hint}", facts)


def told(error: Exception, **where: str) -> RpcError:
    """What a client is told of it. One that nobody foresaw is logged, and its client told no more."""
    if isinstance(error, RpcError):
        return error
    if isinstance(error, DragomanError):
        return as_rpc(error)
    get_logger().error("mcp.failed", exc_info=error, **where)
    return RpcError(INTERNAL_ERROR, "Internal error")


def _unknown_here(name: str, shown: ClientTools) -> RpcError:
    """At the address of one connector a tool is known by its own name."""
    near = did_you_mean(name[:100], [*shown.by_name])
    return RpcError(INVALID_PARAMS, f"Unknown tool: {name[:100]!r}{f' ({near})' if near else ''}")


def _no_method(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, "Method not found", method[:200])


def stamped(result: Mapping[str, Any]) -> dict[str, Any]:
    """As the 2026 era wants every result: its type, and who answered."""
    own: Mapping[str, Any] = result.get("_meta") or {}
    meta = {**own, **SERVER_INFO_STAMP}
    return {"resultType": "complete", **result, "_meta": meta}


_LIST_TAIL = encode(
    {
        "resultType": "complete",
        "ttlMs": _LISTS_TTL,
        "cacheScope": "private",
        "_meta": SERVER_INFO_STAMP,
    }
)[1:]
