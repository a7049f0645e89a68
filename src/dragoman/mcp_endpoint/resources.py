"""Resources, prompts and completion: those of the connectors, and the results that Dragoman keeps.

At the address of one connector everything has its server's own name; at the address of all, one that no two
servers share (`hub/server_requests.py`).
"""

from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from hashlib import blake2b
from typing import Any, cast

from mcp_types import INVALID_PARAMS

from dragoman.calls.call_channel import PASSED_ON
from dragoman.calls.request_road import HANDLE
from dragoman.errors import DragomanError, NotFound
from dragoman.hub.server_requests import LISTS, NAMED, capability_of, own_name
from dragoman.mcp_endpoint.messages import Params, RpcError
from dragoman.mcp_endpoint.request_context import RequestContext
from dragoman.mcp_endpoint.results import RESULTS
from dragoman.mcp_endpoint.sessions import MOST_WATCHED

_CACHEABLE = frozenset({*LISTS, "resources/read"})
_LEGACY_NOT_FOUND = -32002
Entry = dict[str, Any]


class ServerResources:
    async def capabilities(self, context: RequestContext) -> dict[str, Any]:
        found: dict[str, Any] = {"resources": {"listChanged": True}}
        for capability in ("prompts", "completions", "resources.subscribe"):
            slugs = await context.hub.server_requests.offering(capability)
            if not (slugs if context.target.slug is None else context.target.slug in slugs):
                continue
            if capability == "resources.subscribe":
                found["resources"]["subscribe"] = True
            else:
                found[capability] = {"listChanged": True} if capability == "prompts" else {}
        return found

    async def extensions(self, context: RequestContext) -> dict[str, Any]:
        """Those that pass through, where a server at this address declares them."""
        found: dict[str, Any] = {}
        for extension in PASSED_ON:
            slugs = await context.hub.server_requests.having(extension)
            if slugs if context.target.slug is None else context.target.slug in slugs:
                found[extension] = {}
        return found

    async def digest(self, capability: str, context: RequestContext) -> str:
        """What tells one list of prompts or resources from another, as far as connectors make them up."""
        slugs = await context.hub.server_requests.offering(capability)
        own = context.target.slug
        return blake2b(" ".join(slug for slug in slugs if own in (None, slug)).encode()).hexdigest()[:32]

    async def answer(self, method: str, params: Params, context: RequestContext) -> Entry | None:
        """None for a method that is not spoken here."""
        if method == "resources/read" and str(params.get("uri", "")).startswith(RESULTS):
            result = await self._kept(str(params["uri"]), context)
        elif method in LISTS:
            result = await self._list(method, params, context)
        elif method in NAMED or method == "completion/complete":
            result = await self._one(method, params, context)
        elif method == "resources/subscribe":
            return await self._subscribe(params, context)
        elif method == "resources/unsubscribe":
            if context.subscriptions is not None:
                await context.subscriptions.unsubscribe(str(params.get("uri")))
            return {}
        else:
            return None
        if context.is_modern and method in _CACHEABLE and result is not context.channel.pending:
            result = {"ttlMs": 0, "cacheScope": "private", **result}
        return result

    async def _kept(self, uri: str, context: RequestContext) -> Entry:
        try:
            kept = await context.hub.result(uri.removeprefix(RESULTS))
        except DragomanError as error:
            raise _no_resource(uri, context, error.message) from None
        contents: Entry = {"uri": uri, "mimeType": kept.content_type}
        try:
            contents["text"] = kept.body.decode()
        except UnicodeDecodeError:
            contents["blob"] = b64encode(kept.body).decode()
        return {"contents": [contents]}

    async def _list(self, method: str, params: Params, context: RequestContext) -> Entry:
        field, slug, requests = LISTS[method], context.target.slug, context.hub.server_requests
        if slug is None:
            entries, _ = await requests.list_all(method, channel=context.channel)
            return {field: entries}
        if slug not in await requests.offering(capability_of(method)):
            return {field: []}
        return dict(await _asked(requests.ask(slug, method, params, channel=context.channel), context))

    async def _one(self, method: str, params: Params, context: RequestContext) -> Entry:
        slug, requests, channel = context.target.slug, context.hub.server_requests, context.channel
        named = NAMED.get(method)
        if named is not None and not isinstance(params.get(named), str):
            raise RpcError(INVALID_PARAMS, f"Invalid params: {named} must be a string")
        if slug is not None and slug in await requests.offering(capability_of(method)):
            answer = await _asked(requests.ask(slug, method, params, channel=channel), context)
        elif slug is not None:
            raise _unknown(method, params, context)
        else:
            try:
                answer = await _asked(requests.ask_by_name(method, params, channel=channel), context)
            except NotFound:
                raise _unknown(method, params, context) from None
        return cast("Entry", answer) if answer is channel.pending else _with_address(answer)

    # Resources that tell when they change

    async def watch(self, uri: str, context: RequestContext) -> Callable[[], None]:
        """Ends with what is returned. Raises `DragomanError` where the server does not tell."""
        if uri.startswith(RESULTS):
            return lambda: None  # a result that is kept never changes
        slug, own = (context.target.slug, uri) if context.target.slug else own_name(uri, "+")
        return await context.hub.server_requests.watch(slug, own)

    @asynccontextmanager
    async def watching(self, uris: Sequence[str], context: RequestContext) -> AsyncGenerator[list[str]]:
        """Those of which the client will hear, until the end of the block."""
        watched: list[str] = []
        with ExitStack() as ends:
            for uri in uris[:MOST_WATCHED]:
                try:
                    ends.callback(await self.watch(uri, context))
                except DragomanError:
                    continue  # the acknowledgment says so by leaving it out
                watched.append(uri)
            yield watched

    async def _subscribe(self, params: Params, context: RequestContext) -> Entry:
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "Invalid params: uri must be a string")
        if context.subscriptions is not None:
            await context.subscriptions.subscribe(uri, lambda one: self.watch(one, context))
        return {}


async def _asked(answer: Awaitable[Mapping[str, Any]], context: RequestContext) -> Mapping[str, Any]:
    """The server's answer, or its question; its own no in its own words."""
    channel = context.channel
    try:
        return await answer
    except DragomanError:
        if channel.pending is not None:
            return channel.pending
        if channel.refused is not None:
            raise _translated(*channel.refused, context) from None
        raise


def _with_address(answer: Mapping[str, Any]) -> Entry:
    """Of what was cut the whole is a resource here."""
    result = dict(answer)
    meta: Any = answer.get("_meta")
    if isinstance(meta, Mapping) and (handle := cast("Mapping[str, Any]", meta).get(HANDLE)):
        first, *others = result["contents"]
        note = f"\n[the whole, as a resource: {RESULTS}{handle}]"
        result["contents"] = [{**first, "text": f"{first['text']}{note}"}, *others]
    return result


def _unknown(method: str, params: Params, context: RequestContext) -> RpcError:
    if method == "resources/read":
        return _no_resource(str(params["uri"]), context)
    return RpcError(INVALID_PARAMS, f"Unknown name: {str(params.get('name', ''))[:200]}")


def _no_resource(uri: str, context: RequestContext, message: str = "Resource not found") -> RpcError:
    return RpcError(INVALID_PARAMS if context.is_modern else _LEGACY_NOT_FOUND, message, {"uri": uri[:1000]})


def _translated(code: int, message: str, data: Any, context: RequestContext) -> RpcError:
    """The one code that both eras have for the same thing under different numbers."""
    if context.is_modern and code == _LEGACY_NOT_FOUND:
        code = INVALID_PARAMS
    return RpcError(code, message, data)
