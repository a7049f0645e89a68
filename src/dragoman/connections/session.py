"""One negotiated session on one wire: the SDK knows the protocol, the hot road goes to the wire directly.

`open_session` enters and leaves everything in the task that calls it, which is the connection's owner.
"""

import asyncio
import os
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, cast
from urllib.request import getproxies, proxy_bypass

from mcp import ClientSession
from mcp.client._probe import negotiate_auto
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_META_KEY,
    Implementation,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ServerNotification,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import SecretStr
from yarl import URL

from dragoman.connections.bearer import Bearer
from dragoman.connections.brought_secrets import redactor_for, watched
from dragoman.connections.elicitation import ElicitationRouter, converse
from dragoman.connections.environment import child_environment, expanded
from dragoman.connections.http import HttpWire, open_http
from dragoman.connections.http_clients import Reach
from dragoman.connections.inbound_rate import WireLimits
from dragoman.connections.missing_credentials import check_secrets
from dragoman.connections.server_tasks import (
    DECLARED,
    FollowedTask,
    created_task,
    is_task_needed,
    makes_tasks,
    wants_task,
)
from dragoman.connections.source import Listing, ServerNotice, ServerRequest, SourceCall, SourceChannel
from dragoman.connections.sse import open_sse
from dragoman.connections.stdio import open_stdio
from dragoman.connections.wire import Message, Wire, is_object
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import Auth, Connector, Era
from dragoman.errors import InputRequired
from dragoman.telemetry.spans import trace_context
from dragoman.tool import AdmittedCall, Annotations, RawResult, Tool, ToolDefinition, passed_on

_MOST_PAGES = 1000
_TOOLS_PER_TURN = 200
_TASK_TTL = 24 * 3600 * 1000  # milliseconds that a server of the 2025 era is asked to keep a task
CLIENT_INFO = Implementation(name="dragoman", version=version("dragoman"))


class McpSession:
    """What a connection holds while it is connected."""

    def __init__(self, wire: Wire, client: ClientSession, asking: ElicitationRouter) -> None:
        self.wire = wire
        self.client = client
        self._asking = asking
        protocol = client.protocol_version or "2025-11-25"
        self.is_modern = protocol in MODERN_PROTOCOL_VERSIONS
        self.era: Era = "2026" if self.is_modern else "2025"
        self._version_header = {MCP_PROTOCOL_VERSION_HEADER: protocol}
        self._meta = {
            PROTOCOL_VERSION_META_KEY: protocol,
            CLIENT_INFO_META_KEY: CLIENT_INFO.model_dump(by_alias=True, mode="json", exclude_none=True),
            CLIENT_CAPABILITIES_META_KEY: {},
        }
        self._header_maps: dict[str, dict[tuple[str, ...], str]] = {}
        self._makes_tasks = makes_tasks(client.server_capabilities, self.era)
        self._as_tasks: set[str] = set()  # tools of the 2025 era that are called as tasks
        self._call_meta = self._meta
        if self._makes_tasks and self.is_modern:
            self._call_meta = {**self._meta, CLIENT_CAPABILITIES_META_KEY: DECLARED}

    @property
    def announces(self) -> frozenset[str]:
        """The lists of whose changes the server says that it tells."""
        capabilities = self.client.server_capabilities
        if capabilities is None:
            return frozenset()
        lists = {
            "tools": capabilities.tools,
            "prompts": capabilities.prompts,
            "resources": capabilities.resources,
        }
        return frozenset(name for name, offered in lists.items() if offered and offered.list_changed)

    @property
    def tells_of_resources(self) -> bool:
        """Whether one can ask to be told when a single resource changes."""
        capabilities = self.client.server_capabilities
        return bool(capabilities and capabilities.resources and capabilities.resources.subscribe)

    async def subscribe(self, uri: str, *, wanted: bool) -> None:
        """2025 era: asks to be told of one resource, or not any more. A server may say no."""
        try:
            await self._ask("resources/subscribe" if wanted else "resources/unsubscribe", {"uri": uri})
        except MCPError:
            return

    async def call_tool(self, call: SourceCall) -> RawResult:
        """The hot road: one request on the wire, and a look at the shape of what came back."""
        tool, arguments = call.tool, call.arguments
        name = tool.original_name
        if call.channel.task is not None:  # begun before a restart, or before the connection was lost
            return _read_result(await self._followed({"taskId": call.channel.task}, call), tool)
        params: Message = {"name": name, "arguments": arguments}
        headers = self._version_header
        if self.is_modern:
            params["_meta"] = self._call_meta
            headers = {
                **headers,
                MCP_METHOD_HEADER: "tools/call",
                MCP_NAME_HEADER: encode_header_value(name),
                **self._param_headers(tool, arguments),
            }
        elif name in self._as_tasks:
            params["task"] = {"ttl": _TASK_TTL}
        try:
            raw = await self._called(params, headers, call)
            if self._makes_tasks and (task := created_task(raw, self.era)) is not None:
                raw = await self._followed(task, call)
            return _read_result(raw, tool)
        except InputRequired:
            call.channel.note_admitted(AdmittedCall.of(tool, arguments))
            raise

    async def _called(self, params: Message, headers: Mapping[str, str], call: SourceCall) -> Message:
        try:
            return await self._converse("tools/call", params, headers, call.channel)
        except MCPError as error:
            may_be_task = self._makes_tasks and not self.is_modern and "task" not in params
            if not may_be_task or not is_task_needed(error):
                raise
        self._as_tasks.add(call.tool.original_name)
        return await self._converse(
            "tools/call", {**params, "task": {"ttl": _TASK_TTL}}, headers, call.channel
        )

    async def _followed(self, task: Message, call: SourceCall) -> Message:
        """The result of the server's task, kept while it is under way."""

        async def wait(method: str, params: Message) -> Message:
            return await self._converse(method, params, self._version_header, call.channel)

        followed = FollowedTask.of(task, call.channel, call.deadline, self._ask_about_task, wait)
        if call.channel.task is None:
            await call.channel.keep_task(followed.id)
        return await followed.result(self.era)

    async def _ask_about_task(self, method: str, params: Message) -> Message:
        headers = self._version_header
        if self.is_modern:
            params = {**params, "_meta": self._call_meta}
            named = encode_header_value(params["taskId"])
            headers = {**headers, MCP_METHOD_HEADER: method, MCP_NAME_HEADER: named}
        return await self.wire.request(method, params, headers)

    async def ask(self, question: ServerRequest) -> Message:
        """Resources, prompts, completion: the result as it came."""
        method, params = question.method, {**question.params}
        params.pop("_meta", None)  # it was meant for Dragoman; the server gets one of its own
        headers = self._version_header
        if self.is_modern:
            params["_meta"] = self._meta
            named = params.get(NAME_BEARING_METHODS.get(method, ""))
            headers = {**headers, MCP_METHOD_HEADER: method}
            headers |= {MCP_NAME_HEADER: encode_header_value(named)} if isinstance(named, str) else {}
        result = _complete(await self._converse(method, params, headers, question.channel), method)
        meta = result.get("_meta")
        return {**result, "_meta": passed_on(meta)} if is_object(meta) else result

    async def _converse(
        self, method: str, params: Message, headers: Mapping[str, str], channel: SourceChannel
    ) -> Message:
        if channel.meta:
            params["_meta"] = {**channel.meta, **(params.get("_meta") or {})}
        if carried := trace_context():
            params["_meta"] = {**(params.get("_meta") or {}), **carried}
            headers = {**headers, **carried}
        # Progress is always asked for: whoever watches, it moves the deadline on.
        options: CallOptions = {"headers": dict(headers), "on_progress": channel.progress}

        party = self._asking.begin(channel)

        async def send(params: Message) -> Message:
            options["request_id"] = party.request_id
            try:
                return await self.wire.send_raw_request(method, params, options)
            finally:
                party.request_id = self.wire.next_id()

        try:
            return await converse(send, params, channel)
        finally:
            self._asking.end(party)

    async def list_tools(self, most: int) -> Listing:
        """Every page, until there are more than `most`. A tool that cannot be read is named as skipped."""
        found: list[ToolDefinition] = []
        skipped: list[str] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            page = await self._list_page(cursor)
            tools = cast("list[Any]", page.get("tools") or [])
            await asyncio.sleep(0)  # a long page took long enough to parse, and takes long to let go of
            del tools[most + 1 :]
            for number, raw in enumerate(tools, 1):
                if number % _TOOLS_PER_TURN == 0:
                    await asyncio.sleep(0)
                definition = self._definition(raw)
                if self._makes_tasks and not self.is_modern and is_object(raw) and wants_task(raw):
                    self._as_tasks.add(str(raw.get("name")))
                if isinstance(definition, ToolDefinition):
                    found.append(definition)
                else:
                    skipped.append(definition)
            if not isinstance(following := page.get("nextCursor"), str | None):
                raise WireFault("garbled", "the server's list of tools goes on at no place that can be named")
            cursor = following
            if not cursor or cursor in seen or len(found) > most:
                break
            seen.add(cursor)
        return Listing(
            tools=tuple(found),
            era=self.era,
            instructions=self.client.instructions,
            server=self._server(),
            skipped=tuple(skipped),
        )

    def _server(self) -> Message | None:
        """Who it says it is, and what else than tools it offers."""
        info, capabilities = self.client.server_info, self.client.server_capabilities
        facts = info.model_dump(by_alias=True, mode="json", exclude_none=True) if info else {}
        if capabilities is not None:
            facts["capabilities"] = capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
        return facts or None

    async def probe(self) -> None:
        """Whether the server answers at all. Any answer will do, also a refusal to be asked."""
        method = "server/discover" if self.is_modern else "ping"
        try:
            await self._ask(method, {} if self.is_modern else None)
        except MCPError:
            return

    async def _list_page(self, cursor: str | None) -> Message:
        try:
            page = await self._ask("tools/list", {"cursor": cursor} if cursor else {})
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:  # a server of resources or prompts only
                return {}
            raise
        if not isinstance(page.get("tools"), list):
            raise WireFault("garbled", "the server's list of tools is no list")
        return page

    async def _ask(self, method: str, params: Message | None) -> Message:
        headers = self._version_header
        if self.is_modern:
            params = {**(params or {}), "_meta": self._meta}
            headers = {**headers, MCP_METHOD_HEADER: method}
        return await self.wire.request(method, params, headers)

    def _definition(self, raw: Any) -> ToolDefinition | str:
        if not is_object(raw) or not isinstance(name := raw.get("name"), str) or not name:
            return "a tool without a name"
        schema = raw.get("inputSchema")
        if not is_object(schema):
            return f"{name}: its input schema is no object"
        if self.is_modern and (reason := find_invalid_x_mcp_header(schema)) is not None:
            return f"{name}: {reason}"
        output, notes, meta = raw.get("outputSchema"), raw.get("annotations"), raw.get("_meta")
        title, description = raw.get("title"), raw.get("description")
        return ToolDefinition(
            original_name=name,
            title=title if isinstance(title, str) else None,
            description=description if isinstance(description, str) else "",
            input_schema=schema,
            output_schema=output if is_object(output) else None,
            annotations=_annotations(notes if is_object(notes) else {}),
            meta=passed_on(meta) or None if is_object(meta) else None,
        )

    def _param_headers(self, tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, str]:
        found = self._header_maps.get(tool.fingerprint)
        if found is None:
            found = self._header_maps[tool.fingerprint] = x_mcp_header_map(dict(tool.definition.input_schema))
        return mcp_param_headers(found, arguments) if found else {}


@asynccontextmanager
async def open_session(
    connector: Connector,
    secrets: Mapping[str, SecretStr],
    reach: Reach,
    on_notice: Callable[[ServerNotice], None],
    on_wire: Callable[[Wire], None],
    bearer: Bearer | None = None,
    *,
    can_ask: bool = False,
) -> AsyncGenerator[McpSession]:
    """A negotiated session on a wire of its own. `on_wire` sees the wire before anything is sent.

    `can_ask` is what a server of the 2025 era is told when it begins: whether anybody answers its questions.
    """
    check_secrets(connector, secrets)

    async def take_message(message: ServerNotification | Exception) -> None:
        if not isinstance(message, Exception) and (notice := noticed(message)) is not None:
            on_notice(notice)

    redactor = redactor_for(connector, secrets, reach.environment)
    async with _open_wire(connector, secrets, reach, watched(bearer, redactor)) as wire:
        wire.redactor = redactor
        on_wire(wire)
        asking = ElicitationRouter(wire)
        async with ClientSession(
            dispatcher=wire,
            message_handler=take_message,
            client_info=CLIENT_INFO,
            elicitation_callback=asking.elicit if can_ask else None,
            read_timeout_seconds=connector.connect_limit,
        ) as session:
            await _negotiate(session, connector.era)
            yield McpSession(wire, session, asking)


def noticed(message: ServerNotification) -> ServerNotice | None:
    match message:
        case ToolListChangedNotification():
            return ServerNotice("tools")
        case PromptListChangedNotification():
            return ServerNotice("prompts")
        case ResourceListChangedNotification():
            return ServerNotice("resources")
        case ResourceUpdatedNotification():
            return ServerNotice("resource", str(message.params.uri))
        case _:
            return None


def _open_wire(connector: Connector, secrets: Mapping[str, SecretStr], reach: Reach, bearer: Bearer | None):
    configuration = connector.configuration.unmasked(secrets)
    if configuration.wire == "stdio":
        env = {name: expanded(value, reach.environment) for name, value in configuration.env.items()}
        env |= _revealed(secrets, "env:")
        args = tuple(expanded(argument, reach.environment) for argument in configuration.args)
        return open_stdio(connector, child_environment(os.environ, env), args, reach.boxed)
    url = expanded(configuration.url or "", reach.environment)
    headers = {name: expanded(value, reach.environment) for name, value in configuration.headers.items()}
    headers |= _revealed(secrets, "header:")
    if token := secrets.get("auth"):
        is_ours = "auth" not in configuration.personal
        value = expanded(token.get_secret_value(), reach.environment if is_ours else None)
        auth = configuration.auth
        headers |= _credential(auth, value)
    proxy = _proxy_for(url) if reach.is_trusted else None
    limits = WireLimits.of(configuration)
    if configuration.wire == "sse":
        return open_sse(reach.client, url, headers, limits, proxy, bearer)
    return open_http(HttpWire(reach.client, url, headers, limits, proxy, bearer))


def _credential(auth: Auth, value: str) -> dict[str, str]:
    if auth.kind == "bearer":
        return {"Authorization": f"Bearer {value}"}
    if auth.kind == "basic":
        return {"Authorization": f"Basic {b64encode(value.encode()).decode()}"}
    return {auth.header: value}


async def _negotiate(session: ClientSession, era: Era | None) -> None:
    """Speaks the era that the server spoke last; finds out anew when that fails."""
    try:
        if era == "2025":
            await session.initialize()
            return
        if era == "2026":
            await session.discover()
            return
    except (MCPError, RuntimeError):
        pass  # the server was replaced by one of another era
    await negotiate_auto(session)


def _revealed(secrets: Mapping[str, SecretStr], prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value.get_secret_value()
        for name, value in secrets.items()
        if name.startswith(prefix)
    }


def _proxy_for(url: str) -> str | None:
    """The proxy of the environment for this address, looked up once per connection."""
    target = URL(url)
    if not target.host or proxy_bypass(target.host):
        return None
    return getproxies().get(target.scheme)


def _annotations(raw: Message) -> Annotations:
    def hint(name: str) -> bool | None:
        value = raw.get(name)
        return value if isinstance(value, bool) else None

    return Annotations(
        read_only=hint("readOnlyHint"),
        destructive=hint("destructiveHint"),
        idempotent=hint("idempotentHint"),
        open_world=hint("openWorldHint"),
    )


def _complete(raw: Message, what: str) -> Message:
    """The same, unless the server says that it is something else than the whole result."""
    kind = raw.get("resultType")
    if kind is not None and kind != "complete":
        raise WireFault("no_result", f"{what} was answered with {kind!r:.60} in place of a result")
    return raw


def _read_result(raw: Message, tool: Tool) -> RawResult:
    """A result of the right shape, or the fault of a server that does not speak MCP."""
    name = tool.original_name
    content, structured = _complete(raw, name).get("content"), raw.get("structuredContent")
    is_error = raw.get("isError") not in (None, False)  # what is neither yes nor no is no success
    if content is None and (structured is not None or is_error):
        content = []
    if content is None:
        raise WireFault("no_result", f"{name} was answered with neither content nor a structure")
    if not isinstance(content, list) or not all(
        is_object(block) and isinstance(block.get("type"), str) for block in cast("list[Any]", content)
    ):
        raise WireFault("garbled", f"the result of {name} has no valid content")
    meta = raw.get("_meta")
    return RawResult(
        content=tuple(cast("list[Message]", content)),
        structured=structured,
        has_structured=structured is not None,
        is_error=is_error,
        meta=passed_on(meta) if is_object(meta) else None,
    )
