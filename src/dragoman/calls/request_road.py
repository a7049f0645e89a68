"""The road of requests that are no calls of tools: resources, prompts and completion of MCP servers.

find and allow → hooks → approve → limit → send → hooks → cut → record, by the same parts as a call. What is
not in the table is not sent. The trail has the method, and of a prompt its name; the address of a resource
only as a hash.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, time
from typing import Any, ClassVar, Protocol, cast

from dragoman.access import ApprovalGate, Budgets, ConcurrencyLimits
from dragoman.bundle import Bundle
from dragoman.calls.audit import Auditor
from dragoman.calls.call_channel import CallChannel
from dragoman.calls.kept_results import ResultKeeper
from dragoman.calls.outputs import BINARY_ROOM, shape
from dragoman.calls.records import FinishedCall
from dragoman.connections.deadline import Deadline
from dragoman.connections.source import ServerRequest
from dragoman.connector import Connector
from dragoman.errors import DragomanError, HookRefused, LimitReached, NotFound
from dragoman.hooks import CallHooks, Hooks
from dragoman.scope import Caller
from dragoman.store.protocols import Store
from dragoman.telemetry.redaction import Redactor
from dragoman.telemetry.spans import Spans
from dragoman.tokens import count_tokens
from dragoman.tool import (
    AdmittedCall,
    Annotations,
    ClientChannel,
    RawResult,
    Tool,
    ToolCall,
    ToolDefinition,
    json_bytes,
)

Json = Mapping[str, Any]
HANDLE = "dragoman/handle"
"""Where the `_meta` of what was cut names the whole of it."""
SIZE = "dragoman/size"
_ARGUMENTS = ("uri", "name", "arguments", "ref", "argument", "context")
PAGE = "ui://"  # a page for the client's screen: no model reads it, and half of it is worth nothing


@dataclass(frozen=True, slots=True)
class _Rule:
    """Lists are like those of tools: nobody's call. `recorded` is in the trail, and may need a yes."""

    counted: bool = False
    recorded: bool = False


RULES: Mapping[str, _Rule] = {
    "resources/list": _Rule(),
    "resources/templates/list": _Rule(),
    "resources/read": _Rule(counted=True, recorded=True),
    "prompts/list": _Rule(),
    "prompts/get": _Rule(counted=True, recorded=True),
    "completion/complete": _Rule(counted=True),
}


class ResultTooLarge(LimitReached):
    """Asking again does not make it smaller."""

    retryable: ClassVar[bool] = False


class Servers(Protocol):
    """The connections to MCP servers, of this process or of several."""

    async def ask(self, question: ServerRequest) -> Json: ...


class RequestRoad:
    def __init__(
        self,
        *,
        approvals: ApprovalGate,
        limits: ConcurrencyLimits,
        budgets: Budgets,
        servers: Servers,
        store: Store,
        auditor: Auditor,
        redactor: Redactor,
        spans: Spans,
        request_timeout: float,
        hooks: Hooks,
        bundles_of: Callable[[Connector, Caller], Sequence[Bundle]],
    ) -> None:
        self._approvals = approvals
        self._limits = limits
        self._budgets = budgets
        self._servers = servers
        self._keeping = ResultKeeper(store.calls)
        self._auditor = auditor
        self._redactor = redactor
        self._spans = spans
        self._request_timeout = request_timeout
        self._hooks = hooks
        self._bundles_of = bundles_of

    async def send(
        self,
        find: Callable[[], Awaitable[Connector]],
        method: str,
        params: Json,
        caller: Caller,
        channel: ClientChannel | None,
    ) -> Json:
        """The server's result. `find` gives the connector as the caller may use it now, or raises."""
        rule = RULES.get(method)
        if rule is None:
            raise NotFound(f"there is no request {method[:80]!r} about resources or prompts")
        request = _Request(method, params, caller, channel, rule)
        span = self._spans.open(method, request.call.id)
        code: str | None = "internal"
        try:
            result = await self._crossed(find, request)
            code = None
            return result
        except DragomanError as error:
            code = error.code
            error.message = self._redactor.clean(error.message)
            request.message = error.message
            raise
        except asyncio.CancelledError:
            code = "cancelled"
            raise
        finally:
            if rule.recorded:
                self._auditor.called(request.finished(code), request.arguments)
            if span:
                span.end(code, request.connector.slug if request.connector else None)

    async def _crossed(self, find: Callable[[], Awaitable[Connector]], request: "_Request") -> Json:
        connector = request.found(await find())
        hooks = await self._looked_at(request, connector)
        reason = hooks.reason_to_ask if hooks is not None else ""
        is_asked = request.rule.recorded or reason
        if is_asked and await self._approvals.admit(
            request.tool, connector, request.caller, request.arguments, request.call, reason=reason
        ):
            # A person took their time: what they allowed may be no longer the caller's.
            connector = request.found(await find())
        seconds = connector.configuration.request_timeout or self._request_timeout
        deadline = request.deadline = Deadline(seconds, connector.configuration.max_request_time)
        if not request.rule.counted:
            return await self._sent(request, connector, deadline)
        ticket = await self._budgets.enter(request.call, request.tool, connector, request.caller, deadline.at)
        tokens = 0
        try:
            result = await self._limited(request, connector, await self._sent(request, connector, deadline))
            tokens = count_tokens(json_bytes(result)) if ticket is not None else 0
            return result
        finally:
            if ticket is not None:
                await self._budgets.leave(ticket, tokens)

    async def _looked_at(self, request: "_Request", connector: Connector) -> CallHooks | None:
        """The hooks of this request, which have let pass what is sent."""
        rules = [bundle.rules for bundle in self._bundles_of(connector, request.caller)]
        chain = await self._hooks.chain(connector, request.caller, rules)
        if chain is None:
            return None
        hooks = request.hooks = CallHooks(
            chain, request.call.id, request.tool, connector, request.caller, request.arguments
        )
        request.arguments = dict(await hooks.before())
        request.params = {**request.params, **request.arguments}
        return hooks

    async def _sent(self, request: "_Request", connector: Connector, deadline: Deadline) -> Json:
        channel = CallChannel(request.call.channel, connector, deadline, hooks=request.hooks)
        question = ServerRequest(
            connector=connector,
            method=request.method,
            params=request.params,
            caller=request.caller,
            deadline=deadline,
            channel=channel,
        )
        gate = self._limits.gate(connector)
        await gate.enter(connector, deadline.at)
        try:
            request.was_sent = True
            result = await self._servers.ask(question)
            return result if request.hooks is None else await request.hooks.after_request(result)
        except DragomanError as error:
            if not isinstance(error, HookRefused):
                await channel.pass_failure(error)
            # It may be asked back: the request that comes again is a part of this one.
            channel.note_admitted(AdmittedCall.of(request.tool, request.arguments))
            raise
        finally:
            gate.leave(connector)

    async def _limited(self, request: "_Request", connector: Connector, result: Json) -> Json:
        """What a model is shown at most, as of a call. A resource is cut, and its whole is kept."""
        limit = connector.configuration.max_result_bytes
        if request.method == "resources/read":
            contents = _objects(result.get("contents"))
            if str(request.params.get("uri")).startswith(PAGE):
                limit *= BINARY_ROOM
            return {**result, **await self._cut(contents, limit, request)}
        blocks = [one for message in _objects(result.get("messages")) for one in _blocks(message)]
        if shape(RawResult(content=tuple(blocks)), limit).whole is not None:
            raise ResultTooLarge(
                f"{request.tool.name} answered more than {limit:,} bytes",
                hint=f"raise max_result_bytes: dragoman connectors update {connector.slug}",
            )
        return result

    async def _cut(self, contents: Sequence[Json], limit: int, request: "_Request") -> Json:
        blocks = tuple({"type": "resource", "resource": one} for one in contents)
        shaped = shape(RawResult(content=blocks), limit)
        if shaped.whole is None:
            return {"contents": contents}
        handle = await self._keeping.keep(shaped, request.tool, request.caller)
        first: Json = {"uri": request.params.get("uri"), "mimeType": "text/plain", **shaped.content[0]}
        others = [cast("Json", block["resource"]) for block in shaped.content[1:]]
        return {
            "contents": [{name: value for name, value in first.items() if name != "type"}, *others],
            "_meta": {SIZE: shaped.size, **({HANDLE: handle} if handle else {})},
        }


class _Request:
    """One request on its way, as budgets, approvals and the trail know calls."""

    def __init__(
        self, method: str, params: Json, caller: Caller, channel: ClientChannel | None, rule: _Rule
    ) -> None:
        self.method = method
        self.params = params
        self.caller = caller
        self.rule = rule
        self.arguments = {name: params[name] for name in _ARGUMENTS if name in params}
        self.call = ToolCall(tool=method, arguments=self.arguments, channel=channel)
        self.connector: Connector | None = None
        self.deadline: Deadline | None = None
        self.hooks: CallHooks | None = None
        self.was_sent = False
        self.message: str | None = None
        self._began, self._started_at = perf_counter(), time()
        self.tool = Tool(
            name=self._name(""),
            workspace="",
            connector_id="",
            slug="",
            definition=ToolDefinition(original_name=method),
        )

    def found(self, connector: Connector) -> Connector:
        self.connector = connector
        marks = Annotations(read_only=True)
        self.tool = Tool(
            name=self._name(f"{connector.slug}: "),
            workspace=connector.workspace,
            connector_id=connector.id,
            slug=connector.slug,
            definition=ToolDefinition(original_name=self.method, annotations=marks),
        )
        return connector

    def finished(self, code: str | None) -> FinishedCall:
        waited = self.deadline.waited if self.deadline else 0.0
        return FinishedCall(
            id=self.call.id,
            caller=self.caller,
            tool=self.tool.name,
            connector=self.connector,
            was_sent=self.was_sent,
            ok=code is None,
            code=code,
            message=self.message[:500] if self.message else None,
            duration_ms=(perf_counter() - self._began - waited) * 1000,
            waited_ms=waited * 1000,
            attempts=1,
            started_at=self._started_at,
            hooks=tuple(self.hooks.report.trail) if self.hooks else (),
        )

    def _name(self, whose: str) -> str:
        """A prompt has a name, a resource only its address."""
        name = self.params.get("name")
        what = f" {name[:100]}" if self.method == "prompts/get" and isinstance(name, str) else ""
        return f"{whose}{self.method}{what}"


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _objects(value: Any) -> list[Json]:
    return [cast("Json", one) for one in _items(value) if isinstance(one, Mapping)]


def _blocks(message: Json) -> list[Json]:
    """The content of one message: a block, or several."""
    content: Any = message.get("content")
    return _objects(content if isinstance(content, list) else [content])
