"""Requests to authorisation servers: limited in size and time, no redirects, answers as JSON objects."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from dragoman.connections.http_clients import Reach
from dragoman.connections.openapi.service_document import proxy_for
from dragoman.connections.wire_faults import plain
from dragoman.errors import ProtocolFault, Unreachable
from dragoman.loading import LateModule, ready
from dragoman.remote_data import BodyTooLarge, parse_json, read_body

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LateModule("aiohttp")


_LARGEST = 1024 * 1024
_PATIENCE = 15.0

Json = Mapping[str, Any]


async def fetch_object(
    reach: Reach, url: str, *, largest: int = _LARGEST, patience: float = _PATIENCE
) -> Json | None:
    """The JSON object at an address; None where there is none. `Unreachable` when nobody answers."""
    headers = {"Accept": "application/json"}
    status, body = await _exchange(reach, "GET", url, largest=largest, patience=patience, headers=headers)
    if status >= 500:
        raise Unreachable(f"{url} answered {status}", hint="the fault is that server's; try again later")
    return _object(body) if status == 200 else None


async def send_form(
    reach: Reach, url: str, form: Mapping[str, str], headers: Mapping[str, str]
) -> tuple[int, Json]:
    """A token request (RFC 6749) and its answer, whatever the status."""
    sent = {"Accept": "application/json", **headers}
    status, body = await _exchange(reach, "POST", url, headers=sent, data=dict(form))
    return status, _answer(url, status, body)


async def send_object(reach: Reach, url: str, value: Json) -> tuple[int, Json]:
    status, body = await _exchange(reach, "POST", url, headers={"Accept": "application/json"}, json=value)
    return status, _answer(url, status, body)


def _answer(url: str, status: int, body: bytes) -> Json:
    if status >= 500 or status == 429:
        raise Unreachable(f"{url} answered {status}", hint="the fault is that server's; try again later")
    found = _object(body)
    if found is None and status < 300:
        raise ProtocolFault(f"{url} answered {status} without a JSON object")
    return found or {}


async def _exchange(
    reach: Reach,
    method: str,
    url: str,
    *,
    largest: int = _LARGEST,
    patience: float = _PATIENCE,
    **facts: Any,
) -> tuple[int, bytes]:
    await ready("aiohttp")
    try:
        async with (
            asyncio.timeout(patience),
            reach.client.request(
                method,
                url,
                allow_redirects=False,
                proxy=proxy_for(url) if reach.is_trusted else None,
                **facts,
            ) as response,
        ):
            return response.status, await read_body(response, largest)
    except BodyTooLarge as error:
        raise ProtocolFault(f"{url} answered with {error}") from None
    except aiohttp.InvalidURL:
        raise ProtocolFault(f"{url[:200]!r} is no address") from None
    except TimeoutError:
        raise Unreachable(f"{url} did not answer within {patience:g} s", hint="try again later") from None
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(f"{url} cannot be reached: {plain(error)}", hint="try again later") from None


def _object(body: bytes) -> Json | None:
    try:
        value = parse_json(body)
    except ValueError:
        return None
    return cast("Json", value) if isinstance(value, dict) else None
