"""Who may come in: the names of this host, the origin of a page, the bearer token. Pure ASGI.

Answers before anything of a request is read. A page of another site that makes a browser resolve its own
name to this machine (DNS rebinding) is stopped by the host check.
"""

from collections.abc import Iterable
from hmac import compare_digest
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.api.problems import WrongHost, WrongOrigin, problem
from dragoman.errors import DragomanError, Unauthenticated

LOOPBACK = ("localhost", "127.0.0.1", "::1")
OPEN_PATHS = frozenset({"/health", "/ready"})


class Guard:
    def __init__(self, app: ASGIApp, *, token: str, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._expected = b"bearer " + token.encode()
        self._hosts = frozenset(host.lower().strip("[]") for host in (*LOOPBACK, *hosts))
        # A client sends the same Host with every request: parse each spelling once.
        self._known_hosts: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(scope)):
            await problem(refusal)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> DragomanError | None:
        host = origin = authorization = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"authorization":
                authorization = value
            elif name == b"origin":
                origin = value
        if host not in self._known_hosts and (wrong := self._check_host(host)):
            return wrong
        if origin and not self._is_ours(origin.decode("latin-1")):
            return WrongOrigin(
                "a page of another origin may not ask here",
                hint="a host name that is yours belongs into DRAGOMAN_ALLOWED_HOSTS",
            )
        if scope["path"] in OPEN_PATHS or self._is_known(authorization):
            return None
        return Unauthenticated(
            "the bearer token is missing" if not authorization else "the bearer token is wrong",
            hint="send 'Authorization: Bearer …' with what `dragoman token` prints",
        )

    def _check_host(self, host: bytes) -> DragomanError | None:
        if self._is_ours("//" + host.decode("latin-1")):
            if len(self._known_hosts) < 100:
                self._known_hosts.add(host)
            return None
        return WrongHost(
            "this service does not answer to the host name of this request",
            hint="use 127.0.0.1, or name the host in DRAGOMAN_ALLOWED_HOSTS",
        )

    def _is_ours(self, address: str) -> bool:
        try:
            return (urlsplit(address).hostname or "") in self._hosts
        except ValueError:
            return False

    def _is_known(self, authorization: bytes) -> bool:
        scheme, _, token = authorization.partition(b" ")
        return compare_digest(scheme.lower() + b" " + token.strip(), self._expected)
