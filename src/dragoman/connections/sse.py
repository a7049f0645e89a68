"""MCP over the old SSE transport: one standing stream brings answers, POSTs carry requests."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from mcp_types import RequestId
from yarl import URL

from dragoman.connections.bearer import Bearer, credential_of
from dragoman.connections.inbound_rate import WireLimits
from dragoman.connections.sse_events import ServerEvent, read_events
from dragoman.connections.wire import DuplexWire, Message, encode
from dragoman.connections.wire_faults import FaultKind, WireFault, plain

_STATUS_FAULTS: dict[int, FaultKind] = {
    401: "unauthorized",
    403: "forbidden",
    404: "session_unknown",
    429: "rate_limited",
}


class SseWire(DuplexWire):
    """The stream belongs to `open_sse`; when it ends, so does everything that waits on it."""

    kind = "sse"

    def __init__(
        self,
        client: aiohttp.ClientSession,
        response: aiohttp.ClientResponse,
        headers: Mapping[str, str],
        limits: WireLimits,
        proxy: str | None,
        bearer: Bearer | None = None,
    ) -> None:
        super().__init__(limits)
        self._bearer = bearer
        self._client = client
        self._response = response
        self._headers = {**headers, "Content-Type": "application/json"}
        self._proxy = proxy
        self._endpoint: asyncio.Future[URL] = asyncio.get_running_loop().create_future()

    async def _send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        if self._fault is not None:
            raise self._fault.again(sent=False)
        endpoint = await asyncio.shield(self._endpoint)
        credential = await credential_of(self._bearer)
        status = await self._post(endpoint, message, {**self._headers, **(headers or {}), **credential})
        if status == 401 and self._bearer is not None and await self._bearer.rejected(credential):
            credential = await self._bearer.headers()
            status = await self._post(endpoint, message, {**self._headers, **(headers or {}), **credential})
        if status >= 300:
            kind = _STATUS_FAULTS.get(status, "server_error" if status >= 500 else "refused")
            raise WireFault(kind, f"the server answered {status}", sent=status >= 500)

    async def _post(self, endpoint: URL, message: Message, headers: Mapping[str, str]) -> int:
        try:
            async with self._client.post(
                endpoint, data=encode(message), headers=headers, allow_redirects=False, proxy=self._proxy
            ) as response:
                return response.status
        except aiohttp.ClientConnectorError as error:
            raise WireFault("refused", plain(error), sent=False) from None
        except (aiohttp.ClientError, OSError) as error:
            raise WireFault("lost", plain(error)) from None

    async def _listen(self) -> None:
        fault = WireFault("lost", "the server closed the stream")
        try:
            async for event in read_events(self._response, self._limit, self._count):
                self._take_event(event)
        except WireFault as met:
            fault = met
        except (aiohttp.ClientError, OSError) as error:
            fault = WireFault("lost", plain(error))
        self._response.close()
        self.lose(fault)
        if not self._endpoint.done():
            self._endpoint.set_exception(WireFault(fault.kind, fault.message, sent=False))
            self._endpoint.exception()

    def _take_event(self, event: ServerEvent) -> None:
        if event.event == "endpoint" and not self._endpoint.done():
            base = self._response.url
            target = base.join(URL(event.data.decode("utf-8", "replace")))
            if target.origin() == base.origin():
                self._endpoint.set_result(target)
            else:
                fault = WireFault("refused", f"the server sends us to another host: {target}", sent=False)
                self._endpoint.set_exception(fault)
                self._endpoint.exception()
        elif event.event == "message" and event.data:
            self._take(event.data)
        else:
            self._count(len(event.data))

    def _forget_request(self, request_id: RequestId) -> None:
        if self._tasks is not None and self._fault is None:
            self._tasks.create_task(self._say_cancelled(request_id))

    async def _say_cancelled(self, request_id: RequestId) -> None:
        try:
            async with asyncio.timeout(5.0):
                await self.notify("notifications/cancelled", {"requestId": request_id})
        except (WireFault, TimeoutError):
            return


@asynccontextmanager
async def open_sse(
    client: aiohttp.ClientSession,
    url: str,
    headers: Mapping[str, str],
    limits: WireLimits,
    proxy: str | None,
    bearer: Bearer | None = None,
) -> AsyncGenerator[SseWire]:
    """Opens the standing stream; on leaving it is closed."""
    credential = await credential_of(bearer)
    response = await _stream(client, url, {**headers, **credential}, proxy)
    if response.status == 401 and bearer is not None and await bearer.rejected(credential):
        response.close()
        response = await _stream(client, url, {**headers, **await bearer.headers()}, proxy)
    try:
        if response.status != 200 or response.content_type != "text/event-stream":
            kind = _STATUS_FAULTS.get(
                response.status, "server_error" if response.status >= 500 else "refused"
            )
            raise WireFault(
                "refused" if kind == "session_unknown" else kind,
                f"the server answered {response.status} ({response.content_type}), not with an event stream",
                sent=False,
            )
        wire = SseWire(client, response, headers, limits, proxy, bearer)
        try:
            yield wire
        finally:
            wire.lose(WireFault("lost", "the connection was closed"))  # whoever still waits is told
    finally:
        response.close()


async def _stream(
    client: aiohttp.ClientSession, url: str, headers: Mapping[str, str], proxy: str | None
) -> aiohttp.ClientResponse:
    try:
        return await client.get(
            url, headers={**headers, "Accept": "text/event-stream"}, allow_redirects=False, proxy=proxy
        )
    except aiohttp.ClientConnectorError as error:
        raise WireFault("refused", plain(error), sent=False) from None
    except (aiohttp.ClientError, OSError) as error:
        raise WireFault("lost", plain(error), sent=False) from None
