"""One request to a service and its answer: redirects on the same host, sizes, faults. No retries here."""

from typing import TYPE_CHECKING

from yarl import URL

from dragoman.connections.openapi.requests import ServiceRequest
from dragoman.connections.openapi.responses import ServiceResponse, said
from dragoman.connections.wire_faults import WireFault, plain, retry_after
from dragoman.errors import ProtocolFault
from dragoman.loading import LateModule
from dragoman.remote_data import BodyTooLarge, read_body

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LateModule("aiohttp")


_MOST_REDIRECTS = 5
_REPEATED_AS_THEY_ARE = (307, 308)
_SAFE = ("GET", "HEAD")


class Exchange:
    """Sends requests over a client that belongs to the source."""

    def __init__(self, client: "aiohttp.ClientSession", limit: int, proxy: str | None) -> None:
        self._client = client
        self._limit = limit
        self._proxy = proxy

    async def send(self, base: str, request: ServiceRequest) -> ServiceResponse:
        """Any answer below 500 but 401 and 429; the rest is a `WireFault`."""
        method, data, headers = request.method, request.body, request.headers
        if data is not None:
            headers = {**headers, "Content-Type": data.type}
        if request.cookies:
            cookies = "; ".join(f"{name}={value}" for name, value in request.cookies)
            headers = {
                **headers,
                "Cookie": f"{headers['Cookie']}; {cookies}" if "Cookie" in headers else cookies,
            }
        here = URL(f"{base}{request.target}", encoded=True)
        content = None if data is None else data.data
        try:
            for _ in range(_MOST_REDIRECTS):
                async with self._client.request(
                    method,
                    here,
                    data=content,
                    headers=headers,
                    skip_auto_headers=("Content-Type",),
                    allow_redirects=False,
                    proxy=self._proxy,
                ) as response:
                    target = _redirect(here, response)
                    if target is None:
                        return await self._judged(response, str(here))
                    if response.status not in _REPEATED_AS_THEY_ARE and method not in _SAFE:
                        method, content = "GET", None
                        headers = {name: value for name, value in headers.items() if name != "Content-Type"}
                here = target
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise WireFault("refused", f"no service answers: {plain(error)}", sent=False) from None
        except aiohttp.InvalidURL:
            raise WireFault("refused", f"{base} is no address of a service", sent=False) from None
        except aiohttp.ClientResponseError as error:
            raise WireFault("garbled", plain(error)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise WireFault("lost", plain(error)) from None
        raise WireFault("server_error", "the service redirects in a circle")

    async def _judged(self, response: "aiohttp.ClientResponse", place: str) -> ServiceResponse:
        answer = ServiceResponse(
            status=response.status,
            reason=response.reason or "",
            type=response.headers.get("Content-Type", "").partition(";")[0].strip().lower(),
            headers=response.headers,
            body=await self._body(response),
            url=place.partition("?")[0],  # the query may hold a key
        )
        if response.status == 401:
            raise WireFault("unauthorized", f"the service answered {said(answer)}", sent=False)
        if response.status == 429:
            wait = retry_after(response.headers)
            raise WireFault(
                "rate_limited", f"the service answered {said(answer)}", sent=False, retry_after=wait
            )
        if response.status >= 500:
            wait = retry_after(response.headers)
            raise WireFault("server_error", f"the service answered {said(answer)}", retry_after=wait)
        return answer

    async def _body(self, response: "aiohttp.ClientResponse") -> bytes:
        try:
            return await read_body(response, self._limit)
        except BodyTooLarge as error:
            raise ProtocolFault(
                f"the service answered {response.status} with {error}",
                hint="ask for less, or raise max_message_bytes",
            ) from None


def _redirect(here: URL, response: "aiohttp.ClientResponse") -> URL | None:
    """Where to go on; None for an answer, and one that leads to another host is an answer."""
    if response.status not in (301, 302, 303, *_REPEATED_AS_THEY_ARE):
        return None
    if not (location := response.headers.get("Location")):
        return None
    try:
        target = here.join(URL(location, encoded=True))
        return target if target.origin() == here.origin() else None
    except ValueError:
        return None
