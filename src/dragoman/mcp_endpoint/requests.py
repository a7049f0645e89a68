"""What a request over HTTP says before it is one of MCP: its headers, its address, its body."""

from typing import Any, get_args
from urllib.parse import parse_qs, unquote

from mcp_types import INVALID_REQUEST
from starlette.types import Receive, Scope

from dragoman.errors import CallerFault
from dragoman.mcp_endpoint.messages import RpcError
from dragoman.mcp_endpoint.views import EndpointTarget, View
from dragoman.web.bodies import read_body
from dragoman.web.problems import status_of

Headers = dict[str, str]


class WrongRequest(Exception):
    """A request that is refused before it is one: an HTTP status, with the reason as JSON-RPC."""

    def __init__(self, status: int, message: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = RpcError(INVALID_REQUEST, message)
        self.headers = headers or []


def headers_of(scope: Scope) -> Headers:
    return {name.decode("latin-1"): value.decode("latin-1").strip() for name, value in scope["headers"]}


def query_of(scope: Scope, name: str) -> str | None:
    query: bytes = scope.get("query_string", b"")
    if not query:
        return None
    values = parse_qs(query.decode("latin-1")).get(name)
    return values[-1][:200] if values else None


def target_of(scope: Scope) -> EndpointTarget:
    path: str = scope["path"].rstrip("/")
    view: Any = query_of(scope, "view")
    if view is not None and view not in get_args(View):
        raise WrongRequest(404, f"There is no view {view[:50]!r}: use tools or search")
    if path == "/mcp":
        return EndpointTarget(None, view)
    slug = unquote(path.removeprefix("/mcp/"))
    if "/" in slug or not slug:
        raise WrongRequest(404, "Not found: use /mcp or /mcp/<connector>")
    return EndpointTarget(slug, "tools" if view is None else view)


async def body_of(receive: Receive, headers: Headers, limit: int) -> bytes:
    try:
        return await read_body(receive, limit, headers.get("content-length", ""))
    except CallerFault as error:
        raise WrongRequest(status_of(error), f"{error.message[:1].upper()}{error.message[1:]}") from None
