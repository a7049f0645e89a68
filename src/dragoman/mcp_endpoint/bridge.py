"""From a client on stdin and stdout to the MCP door: one line in, one POST; one event, one line out.

The same for a service somewhere and for a hub in this process, in both eras. Owns its tasks, but not the
HTTP client.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

import aiohttp
from mcp.shared.inbound import encode_header_value, mcp_param_headers, x_mcp_header_map
from mcp_types import PROTOCOL_VERSION_META_KEY, RequestId

from dragoman.mcp_endpoint.messages import (
    NAME_FIELDS,
    Message,
    RpcError,
    RpcNotification,
    RpcRequest,
    error_message,
    parsed,
    read,
)
from dragoman.remote_data import body_pieces, read_body
from dragoman.web.encoding import encode

_FAILED = -32000
_LAST_ANSWERS = 5.0
_AGAIN = 1.0
_LARGEST = 512 * 1024 * 1024  # the service is ours; what it passes on has limits of its own
_SESSION = "Mcp-Session-Id"
_POST = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_GOODBYE = ("notifications/cancelled",)
Write = Callable[[bytes], None]


class Bridge:
    """`write` takes one line. `where` is who answers, in the words that a person is told when nobody does."""

    def __init__(self, http: aiohttp.ClientSession, url: str, write: Write, where: str) -> None:
        self._http = http
        self._url = url
        self._write = write
        self._where = where
        self._hello: bytes | None = None
        self._session: dict[str, str] = {}
        self._running: dict[RequestId, asyncio.Task[None]] = {}
        self._schemas: dict[str, Mapping[str, Any]] | None = None

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        """Until there are no more lines; what is under way then gets a few seconds to be answered."""
        async with asyncio.TaskGroup() as tasks:
            listening: asyncio.Task[None] | None = None
            async for line in lines:
                if not line.strip():
                    continue
                try:
                    message = read(line)
                except RpcError as error:
                    self._write(error_message(None, error))
                    continue
                if isinstance(message, RpcRequest) and message.method == "initialize":
                    # Whatever the client sends next must find its session.
                    await self._open(message, line)
                elif isinstance(message, RpcRequest):
                    task = tasks.create_task(self._request(message, line))
                    self._running[message.id] = task
                    task.add_done_callback(
                        lambda _, request_id=message.id: self._running.pop(request_id, None)
                    )
                else:
                    await self._pass_on(message, line)
                if listening is None and self._session:
                    listening = tasks.create_task(self._listen())
            await self._finish(listening)

    async def _finish(self, listening: asyncio.Task[None] | None) -> None:
        if listening is not None:
            listening.cancel()
        if self._running:
            await asyncio.wait([*self._running.values()], timeout=_LAST_ANSWERS)
        for task in self._running.values():
            task.cancel()
        if self._session:
            try:
                async with asyncio.timeout(1.0), self._http.delete(self._url, headers=self._session):
                    return
            except (aiohttp.ClientError, OSError, TimeoutError):
                return

    # What the client says

    async def _open(self, request: RpcRequest, line: bytes) -> None:
        self._hello, self._session = line, {}
        await self._request(request, line)

    async def _pass_on(self, message: Message, line: bytes) -> None:
        """A notification or an answer: nobody waits for what becomes of it."""
        if isinstance(message, RpcNotification) and message.method in _GOODBYE and not self._session:
            # The 2026 era has no sessions: closing the request is what cancels it.
            if task := self._running.get(message.params.get("requestId", "")):
                task.cancel()
            return
        if not self._session:
            return
        try:
            async with self._http.post(self._url, data=line, headers={**_POST, **self._session}):
                return
        except (aiohttp.ClientError, OSError):
            return

    async def _request(self, request: RpcRequest, line: bytes) -> None:
        try:
            headers = await self._headers(request)
            status = await self._exchange(request, line, headers)
            if status == 404 and self._session and await self._open_again():
                status = await self._exchange(request, line, {**_POST, **self._session})
            if status is not None:
                raise RpcError(_FAILED, f"{self._where} answered with status {status}")
        except RpcError as error:
            self._write(error_message(request.id, error))
        except (aiohttp.ClientError, OSError) as error:
            told = f"{self._where} does not answer: {error or type(error).__name__}"
            self._write(error_message(request.id, RpcError(_FAILED, told)))

    async def _exchange(self, request: RpcRequest, line: bytes, headers: Mapping[str, str]) -> int | None:
        """None when the client has its answer; else the status that came in its place."""
        async with self._http.post(self._url, data=line, headers=headers) as response:
            if response.content_type == "text/event-stream":
                has_answer = False
                async for data in _events(response):
                    self._write(data)
                    has_answer = has_answer or b'"method"' not in data[:60]
                return None if has_answer else 502
            body = await read_body(response, _LARGEST)
            if session := response.headers.get(_SESSION):
                version = _version_in(body)
                self._session = {_SESSION: session, "MCP-Protocol-Version": version}
            if request.method == "tools/list":
                self._learn(body)
            is_answer = b'"id":' in body[:200] and b'"id":null' not in body[:200]
            if response.status == 200 or (is_answer and response.content_type == "application/json"):
                self._write(body)
                return None
            return response.status

    async def _open_again(self) -> bool:
        """The service has forgotten the session, or was started anew: the client need not know."""
        if self._hello is None:
            return False
        async with self._http.post(self._url, data=self._hello, headers=_POST) as response:
            body = await read_body(response, _LARGEST)
            if response.status != 200 or _SESSION not in response.headers:
                return False
            version = _version_in(body)
            self._session = {_SESSION: response.headers[_SESSION], "MCP-Protocol-Version": version}
        line = encode({"jsonrpc": "2.0", "method": "notifications/initialized"})
        async with self._http.post(self._url, data=line, headers={**_POST, **self._session}):
            return True

    # The headers of the 2026 era

    async def _headers(self, request: RpcRequest) -> dict[str, str]:
        meta = request.params.get("_meta")
        version = (
            cast("dict[str, Any]", meta).get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
        )
        if version is None:
            return {**_POST, **self._session}
        headers = {**_POST, "MCP-Protocol-Version": str(version), "Mcp-Method": request.method}
        field = NAME_FIELDS.get(request.method)
        if field is not None and isinstance(name := request.params.get(field), str):
            headers["Mcp-Name"] = encode_header_value(name)
            if request.method == "tools/call":
                headers |= await self._param_headers(name, request, headers)
        return headers

    async def _param_headers(
        self, name: str, request: RpcRequest, headers: Mapping[str, str]
    ) -> dict[str, str]:
        arguments = request.params.get("arguments")
        if not isinstance(arguments, dict) or not arguments:
            return {}
        if self._schemas is None:
            message = {
                "jsonrpc": "2.0",
                "id": 0,
                "method": "tools/list",
                "params": {"_meta": request.params["_meta"]},
            }
            asked = {**headers, "Mcp-Method": "tools/list"}
            asked.pop("Mcp-Name", None)
            async with self._http.post(self._url, data=encode(message), headers=asked) as response:
                self._learn(await read_body(response, _LARGEST))
        schema = (self._schemas or {}).get(name)
        found = x_mcp_header_map(dict(schema)) if schema else {}
        return mcp_param_headers(found, cast("dict[str, Any]", arguments)) if found else {}

    def _learn(self, body: bytes) -> None:
        """The input schemas of a list that passes by: some arguments are repeated in headers."""
        try:
            tools = parsed(body)["result"]["tools"]
            self._schemas = {tool["name"]: tool["inputSchema"] for tool in tools if b"x-mcp-header" in body}
        except (RpcError, KeyError, TypeError):
            return

    # What comes unasked

    async def _listen(self) -> None:
        """The standing stream of a session, for as long as there is one."""
        while True:
            try:
                headers = {**self._session, "Accept": "text/event-stream"}
                async with self._http.get(self._url, headers=headers) as response:
                    if response.status == 200:
                        async for data in _events(response):
                            self._write(data)
            except (aiohttp.ClientError, OSError):
                pass  # a request will tell the client that nobody answers
            await asyncio.sleep(_AGAIN)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The data of each event: this door writes it on one line."""
    waiting = b""
    async for piece in body_pieces(response):
        *lines, waiting = (waiting + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                yield line[6:]


def _version_in(body: bytes) -> str:
    message = _object(body)
    return str(message.get("result", {}).get("protocolVersion", ""))


def _object(body: bytes) -> dict[str, Any]:
    value = parsed(body)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
