"""Resources, prompts and completion: those of the connectors, and the results that Dragoman keeps.

At the address of one connector everything has its own name; at the address of all, a prompt is
`<slug>__<name>` and a resource `<slug>+<uri>`, so that two servers never share a name.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from hashlib import blake2b
from typing import Any, cast

from mcp_types import INVALID_PARAMS

from dragoman.errors import DragomanError
from dragoman.mcp_endpoint.messages import Params, RpcError
from dragoman.mcp_endpoint.request_context import RequestContext
from dragoman.mcp_endpoint.results import RESULTS
from dragoman.mcp_endpoint.sessions import MOST_WATCHED

_LISTS = {
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resources", "resourceTemplates"),
    "prompts/list": ("prompts", "prompts"),
}
_NAMED = {"resources/read": "uri", "prompts/get": "name"}
_CACHEABLE = frozenset({*_LISTS, "resources/read"})
_LEGACY_NOT_FOUND = -32002
_SLOWEST_LIST = 10.0
_MOST_PAGES = 100
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

    async def digest(self, capability: str, context: RequestContext) -> str:
        """What tells one list of prompts or resources from another, as far as connectors make them up."""
        slugs = await context.hub.server_requests.offering(capability)
        own = context.target.slug
        return blake2b(" ".join(slug for slug in slugs if own in (None, slug)).encode()).hexdigest()[:32]

    async def answer(self, method: str, params: Params, context: RequestContext) -> Entry | None:
        """None for a method that is not spoken here."""
        if method == "resources/read" and str(params.get("uri", "")).startswith(RESULTS):
            result = await self._kept(str(params["uri"]), context)
        elif method in _LISTS:
            result = await self._list(method, params, context)
        elif method in _NAMED or method == "completion/complete":
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

    # Lists

    async def _list(self, method: str, params: Params, context: RequestContext) -> Entry:
        capability, field = _LISTS[method]
        offering = await context.hub.server_requests.offering(capability)
        slug = context.target.slug
        if slug is not None:
            if slug not in offering:
                return {field: []}
            return dict(await self._ask(slug, method, params, context))
        lists = await asyncio.gather(*(self._whole_list(one, method, field, context) for one in offering))
        return {field: [entry for entries in lists for entry in entries]}

    async def _whole_list(self, slug: str, method: str, field: str, context: RequestContext) -> list[Entry]:
        """Every page; nothing from a server that is slow or broken, so that it keeps nobody waiting."""
        entries: list[Entry] = []
        params: Params = {}
        try:
            async with asyncio.timeout(_SLOWEST_LIST):
                for _ in range(_MOST_PAGES):
                    page = await self._ask(slug, method, params, context)
                    found = cast("list[Any]", page.get(field) or [])
                    entries += [_renamed(slug, cast("Entry", one)) for one in found if isinstance(one, dict)]
                    if not page.get("nextCursor"):
                        break
                    params = {"cursor": page["nextCursor"]}
        except (TimeoutError, DragomanError, RpcError):
            return []
        return entries

    # One of them

    async def _one(self, method: str, params: Params, context: RequestContext) -> Entry:
        slug = context.target.slug
        named = _NAMED.get(method)
        if named is not None and not isinstance(params.get(named), str):
            raise RpcError(INVALID_PARAMS, f"Invalid params: {named} must be a string")
        if slug is None:
            slug, params = _split(method, params)
        offering = await context.hub.server_requests.offering(_capability(method))
        if slug not in offering:
            if method == "resources/read":
                raise _no_resource(str(params["uri"]), context)
            raise RpcError(INVALID_PARAMS, f"Unknown name: {str(params.get('name', ''))[:200]}")
        answer = await self._ask(slug, method, params, context)
        if answer is context.channel.pending:
            return cast("Entry", answer)
        result = dict(answer)
        if context.target.slug is None and isinstance(contents := result.get("contents"), list):
            blocks = cast("list[Any]", contents)
            result["contents"] = [
                _renamed(slug, cast("Entry", one)) for one in blocks if isinstance(one, dict)
            ]
        return result

    # Resources that tell when they change

    async def watch(self, uri: str, context: RequestContext) -> Callable[[], None]:
        """Ends with what is returned. Raises `DragomanError` where the server does not tell."""
        if uri.startswith(RESULTS):
            return lambda: None  # a result that is kept never changes
        slug, own = (context.target.slug, uri) if context.target.slug else _parted(uri, "+")
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

    async def _ask(
        self, slug: str, method: str, params: Params, context: RequestContext
    ) -> Mapping[str, Any]:
        channel = context.channel
        try:
            return await context.hub.server_requests.ask(slug, method, params, channel=channel)
        except DragomanError:
            if channel.pending is not None:
                return channel.pending
            if channel.refused is not None:
                raise _translated(*channel.refused, context) from None
            raise


def _capability(method: str) -> str:
    return "completions" if method == "completion/complete" else method.partition("/")[0]


def _renamed(slug: str, entry: Entry) -> Entry:
    if isinstance(uri := entry.get("uri"), str):
        return {**entry, "uri": f"{slug}+{uri}"}
    if isinstance(template := entry.get("uriTemplate"), str):
        return {**entry, "uriTemplate": f"{slug}+{template}"}
    return {**entry, "name": f"{slug}__{entry.get('name', '')}"}


def _split(method: str, params: Params) -> tuple[str, Params]:
    """The connector that a name belongs to, and the request as its server knows it."""
    if method == "completion/complete":
        reference = params.get("ref")
        if not isinstance(reference, dict):
            raise RpcError(INVALID_PARAMS, "Invalid params: ref must name a prompt or a resource")
        facts = cast("Entry", reference)
        field = "name" if facts.get("type") == "ref/prompt" else "uri"
        slug, name = _parted(str(facts.get(field, "")), "__" if field == "name" else "+")
        return slug, {**params, "ref": {**facts, field: name}}
    field = _NAMED[method]
    slug, name = _parted(str(params[field]), "__" if field == "name" else "+")
    return slug, {**params, field: name}


def _parted(name: str, mark: str) -> tuple[str, str]:
    slug, _, rest = name.partition(mark)
    return (slug, rest) if rest else ("", name)


def _no_resource(uri: str, context: RequestContext, message: str = "Resource not found") -> RpcError:
    return RpcError(INVALID_PARAMS if context.is_modern else _LEGACY_NOT_FOUND, message, {"uri": uri[:1000]})


def _translated(code: int, message: str, data: Any, context: RequestContext) -> RpcError:
    """The one code that both eras have for the same thing under different numbers."""
    if context.is_modern and code == _LEGACY_NOT_FOUND:
        code = INVALID_PARAMS
    return RpcError(code, message, data)
