"""MCP over streamable HTTP, both eras. A fault of one request is the fault of that request alone.

The shared client belongs to the pool. In the 2025 era this wire keeps the session id, a standing GET
stream for what the server sends by itself, and ends the session on closing.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NoReturn

import aiohttp
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INVALID_REQUEST, METHOD_NOT_FOUND, RequestId
from yarl import URL

from dragoman.connections.bearer import INSUFFICIENT_SCOPE, Bearer
from dragoman.connections.inbound_rate import WireLimits
from dragoman.connections.sse_events import ServerEvent, read_events
from dragoman.connections.wire import (
    Message,
    Wire,
    decode,
    encode,
    is_object,
    is_same_id,
    raise_error,
    request_message,
    result_of,
)
from dragoman.connections.wire_faults import FaultKind, WireFault, plain, retry_after, too_large
from dragoman.remote_data import BodyTooLarge, read_body

_SESSION = "Mcp-Session-Id"
_COURTESY = 5.0
_FIRST_RESUME = 0.05
_NOTHING: Mapping[str, str] = {}
_STATUS_FAULTS: dict[int, FaultKind] = {401: "unauthorized", 403: "forbidden", 429: "rate_limited"}


class HttpWire(Wire):
    """Each request is a POST of its own; its answer is that POST's body, as JSON or as events."""

    kind = "streamable-http"

    def __init__(
        self,
        client: aiohttp.ClientSession,
        url: str,
        headers: Mapping[str, str],
        limits: WireLimits,
        proxy: str | None,
        bearer: Bearer | None = None,
    ) -> None:
        super().__init__(limits)
        self._client = client
        self._bearer = bearer
        self._url = URL(url)
        self._headers = {
            **headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self._proxy = proxy
        self._session_id: str | None = None
        self._negotiated: dict[str, str] = {}  # headers of the 2025 era, once the server has said which
        self._has_session = asyncio.Event()

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
        try:
            reply = await self._exchange(message, headers, request_id)
        except asyncio.CancelledError:
            # In the 2026 era closing the POST is the signal; in the 2025 era a notification is.
            if self._negotiated and method != "initialize" and self._tasks is not None:
                self._tasks.create_task(self._say_cancelled(request_id))
            raise
        result = result_of(self.redactor.clean_message(reply), method)
        if method == "initialize" and isinstance(version := result.get("protocolVersion"), str):
            self._negotiated[MCP_PROTOCOL_VERSION_HEADER] = version
        return result

    async def close(self) -> None:
        """Ends the server's session, if there is one, within a time limit; its failure concerns nobody."""
        if self._session_id is None or self._fault is not None:
            return
        with suppress(aiohttp.ClientError, TimeoutError, OSError, WireFault):
            async with asyncio.timeout(1.0):
                headers = {**self._sent_headers(None), **await self._credential()}
                async with self._client.delete(self._url, headers=headers, proxy=self._proxy):
                    return

    async def _exchange(
        self, message: Message, headers: Mapping[str, str] | None, request_id: RequestId
    ) -> Message:
        try:
            response = await self._post(message, headers)
            try:
                if (session := response.headers.get(_SESSION)) and self._session_id is None:
                    self._session_id = self._negotiated[_SESSION] = session
                if response.status != 200:
                    await self._refuse(response, request_id)
                if response.content_type == "text/event-stream":
                    reply = await self._reply_from_events(response, request_id)
                    self._let_end(response)
                    return reply
                return _reply(await self._body(response), request_id)
            except BaseException:
                response.close()
                raise
        except WireFault:
            raise
        except aiohttp.ClientConnectorError as error:
            raise WireFault("refused", plain(error), sent=False) from None
        except aiohttp.ClientResponseError as error:
            raise WireFault("garbled", plain(error)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise WireFault("lost", plain(error)) from None

    def _let_end(self, response: aiohttp.ClientResponse) -> None:
        """Reads an answered stream to its end, off the call's path: so that its connection is reused."""
        if response.connection is None:
            return
        if self._tasks is None:
            response.close()
        else:
            self._tasks.create_task(self._read_to_end(response))

    async def _read_to_end(self, response: aiohttp.ClientResponse) -> None:
        try:
            async with asyncio.timeout(_COURTESY):
                async for event in read_events(response, self._limit, self._count):
                    self._take_event(event, None)
        except (WireFault, aiohttp.ClientError, OSError, TimeoutError):
            pass  # a server that keeps an answered stream open loses it
        finally:
            response.close()

    async def _post(self, message: Message, headers: Mapping[str, str] | None) -> aiohttp.ClientResponse:
        data = encode(message)
        sent = self._sent_headers(headers)
        credential = await self._credential()
        is_renewed = self._bearer is None
        for _ in range(4):
            response = await self._client.post(
                self._url,
                data=data,
                headers={**sent, **credential} if credential else sent,
                allow_redirects=False,
                proxy=self._proxy,
            )
            if not is_renewed and (response.status == 401 or _lacks_scope(response)):
                is_renewed = True
                if not await self._is_renewed(credential, response):
                    return response
                credential = await self._credential()
            elif response.status in (307, 308):
                self._follow(response)
            else:
                return response
            response.release()
        raise WireFault("refused", "the server redirects in a circle", sent=False)

    def _follow(self, response: aiohttp.ClientResponse) -> None:
        """Takes over a redirect on the same origin; credentials never follow to another host."""
        location = response.headers.get("Location", "")
        try:
            target = self._url.join(URL(location))
            is_elsewhere = target.origin() != self._url.origin()
        except ValueError:
            raise WireFault(
                "refused", f"the server redirects to {location[:200]!r}, which is no address", sent=False
            ) from None
        if is_elsewhere:
            raise WireFault(
                "refused", f"the server redirects to {target}; use that address if it is meant", sent=False
            )
        self._url = target

    async def _credential(self) -> Mapping[str, str]:
        return _NOTHING if self._bearer is None else await self._bearer.headers()

    async def _is_renewed(self, sent: Mapping[str, str], response: aiohttp.ClientResponse) -> bool:
        """Whether the request is worth sending once more: it never ran, and its token was the reason."""
        assert self._bearer is not None
        try:
            return await self._bearer.rejected(sent, response.headers.getall("WWW-Authenticate", []))
        except BaseException:
            response.close()
            raise

    def _sent_headers(self, headers: Mapping[str, str] | None) -> Mapping[str, str]:
        """Those of the connector, of the session, and of this request."""
        return {**self._headers, **self._negotiated, **(headers or _NOTHING)}

    async def _reply_from_events(self, response: aiohttp.ClientResponse, request_id: RequestId) -> Message:
        """The answer among the events of one POST; resumed by event id where the server gives ids."""
        last: ServerEvent | None = None
        async for event in read_events(response, self._limit, self._count):
            if event.id is not None:
                last = event
            if (reply := self._take_event(event, request_id)) is not None:
                return reply
        least = _FIRST_RESUME
        while last is not None and last.id is not None:
            # As soon as the server says, but slower and slower: a stream that only ever ends is no answer.
            await asyncio.sleep(max((last.retry or 1000) / 1000, least))
            least = min(least * 2, 1.0)
            seen, last = last, None
            async with await self._get(seen.id) as resumed:
                if resumed.status != 200:
                    break
                async for event in read_events(resumed, self._limit, self._count):
                    last = event if event.id is not None else last
                    if (reply := self._take_event(event, request_id)) is not None:
                        return reply
        raise WireFault("lost", "the stream ended before the answer came")

    def _take_event(self, event: ServerEvent, request_id: RequestId | None) -> Message | None:
        message: Any = None
        if event.data and event.event == "message":
            try:
                message = decode(event.data)
            except ValueError:
                self.garbage += 1
        if is_object(message) and "method" not in message and is_same_id(message.get("id"), request_id):
            return message
        self._count(len(event.data))
        if is_object(message):
            self._receive(message, request_id)
        return None

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            return await read_body(response, self._limit)
        except BodyTooLarge as error:
            raise too_large(f"an answer of {error}") from None

    async def _refuse(self, response: aiohttp.ClientResponse, request_id: RequestId | None = None) -> None:
        """Turns a status other than 200 into the fault or the error that it means."""
        status = response.status
        body = (await self._body(response))[:100_000]
        error = _rpc_error(body, request_id)
        if self._session_id is not None and _is_unknown_session(status, error, body):
            fault = WireFault("session_unknown", "the server does not know our session any more", sent=False)
            self.lose(fault)
            raise fault
        wait = retry_after(response.headers)
        if kind := _STATUS_FAULTS.get(status):
            raise WireFault(kind, _said(status, error, body), sent=False, retry_after=wait)
        if status >= 500 and error is None:
            raise WireFault("server_error", _said(status, None, body), retry_after=wait)
        if error is not None:
            raise_error(error)
        if status in (202, 204) and request_id is None:
            return
        _raise_status(status, body, response.headers.get("Location"))

    async def _send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        """A notification or an answer: a POST without a body to wait for."""
        try:
            async with asyncio.timeout(_COURTESY):
                async with await self._post(message, headers) as response:
                    if response.status >= 400:
                        await self._refuse(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise WireFault("lost", plain(error)) from None
        except MCPError as error:
            raise WireFault("server_error", error.error.message) from None
        if message.get("method") == "notifications/initialized":
            self._has_session.set()

    async def _say_cancelled(self, request_id: RequestId) -> None:
        with suppress(WireFault):
            await self.notify("notifications/cancelled", {"requestId": request_id})

    async def _get(self, last_event_id: str | None = None) -> aiohttp.ClientResponse:
        headers = {**self._sent_headers(None), **await self._credential(), "Accept": "text/event-stream"}
        headers.pop("Content-Type", None)
        if last_event_id:
            headers["Last-Event-ID"] = last_event_id
        return await self._client.get(self._url, headers=headers, allow_redirects=False, proxy=self._proxy)

    async def _listen(self) -> None:
        """The standing stream of the 2025 era. A server without one answers 405 and keeps its session."""
        await self._has_session.wait()
        if self._session_id is None:
            await _for_ever()
        delay, last_event_id = 1.0, None
        while self._fault is None:
            try:
                async with await self._get(last_event_id) as response:
                    if response.status == 404:
                        self.lose(
                            WireFault("session_unknown", "the server does not know our session any more")
                        )
                        return
                    if response.status == 429 or response.status >= 500:
                        raise WireFault("server_error", f"the server answered {response.status}")
                    if response.status != 200:
                        break
                    async for event in read_events(response, self._limit, self._count):
                        last_event_id = event.id or last_event_id
                        delay = 1.0
                        self._take_event(event, None)
            except (WireFault, aiohttp.ClientError, OSError):
                delay = min(delay * 2, 30.0)
            if self._fault is None:
                await asyncio.sleep(delay)
        if self._fault is None:
            await _for_ever()


@asynccontextmanager
async def open_http(wire: HttpWire) -> AsyncGenerator[HttpWire]:
    """Holds the wire; on leaving, the server may forget our session."""
    try:
        yield wire
    finally:
        await wire.close()


def _reply(body: bytes, request_id: RequestId) -> Message:
    try:
        message = decode(body)
    except ValueError:
        raise WireFault("garbled", f"the answer is no JSON: {_excerpt(body)}") from None
    if not is_object(message):
        raise WireFault("garbled", f"the answer is no JSON-RPC message: {_excerpt(body)}")
    if not _may_answer(message, request_id):
        raise WireFault("garbled", "the answer belongs to another request")
    return message


def _may_answer(message: Message, request_id: RequestId | None) -> bool:
    """By its id. An error without one is of a server that could not read which: then the POST tells."""
    found = message.get("id")
    return is_same_id(found, request_id) or (found is None and "error" in message)


def _rpc_error(body: bytes, request_id: RequestId | None) -> Any:
    with suppress(ValueError, WireFault):
        message = decode(body)
        if is_object(message) and is_object(message.get("error")) and _may_answer(message, request_id):
            return message["error"]
    return None


def _is_unknown_session(status: int, error: Any, body: bytes) -> bool:
    if status == 404:
        return error is None or error.get("code") != METHOD_NOT_FOUND
    # Servers built on older examples answer 400 and say it in words.
    return status == 400 and b"session" in body.lower()


def _raise_status(status: int, body: bytes, location: str | None) -> NoReturn:
    if location and 300 <= status < 400:
        raise WireFault(
            "refused", f"the server redirects to {location}; use that address if it is meant", sent=False
        )
    if status in (404, 405):
        raise MCPError(code=METHOD_NOT_FOUND, message=_said(status, None, body), data={"status": status})
    if status >= 400:
        raise MCPError(code=INVALID_REQUEST, message=_said(status, None, body), data={"status": status})
    raise WireFault("garbled", f"the server answered a request with status {status}")


def _lacks_scope(response: aiohttp.ClientResponse) -> bool:
    return response.status == 403 and any(
        INSUFFICIENT_SCOPE in one for one in response.headers.getall("WWW-Authenticate", ())
    )


def _said(status: int, error: Any, body: bytes) -> str:
    words = str(error.get("message", "")) if is_object(error) else _excerpt(body)
    return f"the server answered {status}{f': {words}' if words else ''}"


def _excerpt(body: bytes) -> str:
    return " ".join(body[:400].decode("utf-8", "replace").split())[:200]


async def _for_ever() -> NoReturn:
    """Until it is cancelled: nothing more comes by itself, and what comes with answers is still taken."""
    await asyncio.Event().wait()
    raise AssertionError
