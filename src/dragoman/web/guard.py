"""Who may come in: the names of this host, the origin of a page, the bearer token or key. Pure ASGI.

Answers before anything of a request is read, and leaves in its scope who asks. A page of another site that
makes a browser resolve its own name to this machine (DNS rebinding) is stopped by the host check.
"""

from collections.abc import Awaitable, Callable, Iterable
from hmac import compare_digest
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.errors import DragomanError, Unauthenticated
from dragoman.hub import BoundHub
from dragoman.identity.authenticator import AuthenticatedCaller, unauthenticated
from dragoman.scope import NOBODY, Caller
from dragoman.web.hints import choose_words
from dragoman.web.problems import WrongHost, WrongOrigin, problem
from dragoman.web.scopes import OPEN_PATHS, SCOPES, check_scope

CALLER = "dragoman.caller"  # where the guard leaves it in a request's scope
LOOPBACK = ("localhost", "127.0.0.1", "::1")
Admit = Callable[[str], Awaitable[AuthenticatedCaller]]


def bound_hub(hub: BoundHub, scope: Scope) -> BoundHub:
    """The hub for who was let in. Every request is bound here, once: what comes after has no other hub."""
    caller: Caller | None = scope.get(CALLER)
    if caller is None:
        raise Unauthenticated("nobody has said who asks")
    return hub.acting_for(caller)


class Guard:
    """The service's own token stands for `operator`; any other goes to `admit`, where there is one.

    Paths that are `open` look after themselves: the console knows its people by their session.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        operator: Caller,
        admit: Admit | None = None,
        hosts: Iterable[str] = (),
        is_open: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._app = app
        self._expected = b"bearer " + token.encode()
        self._operator = operator
        self._admit = admit
        self._is_open = is_open
        self._hosts = frozenset(host.lower().strip("[]") for host in (*LOOPBACK, *hosts))
        # A client sends the same Host with every request: parse each spelling once.
        self._known_hosts: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            choose_words(scope)
            try:
                await self._check(scope)
            except DragomanError as error:
                await problem(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _check(self, scope: Scope) -> None:
        host = origin = authorization = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"authorization":
                authorization = value
            elif name == b"origin":
                origin = value
        if host not in self._known_hosts:
            self._check_host(host)
        if origin and not self._is_ours(origin.decode("latin-1")):
            raise WrongOrigin(
                "a page of another origin may not ask here",
                hint="a host name that is yours belongs into DRAGOMAN_ALLOWED_HOSTS",
            )
        scheme, _, word = authorization.partition(b" ")
        word = word.strip()
        if compare_digest(scheme.lower() + b" " + word, self._expected):
            scope[CALLER] = self._operator
        elif scope["path"] in OPEN_PATHS or (not word and self._is_open(scope["path"])):
            scope[CALLER] = NOBODY
        else:
            await self._let_in(scope, scheme.lower(), word)

    async def _let_in(self, scope: Scope, scheme: bytes, word: bytes) -> None:
        if not word:
            raise Unauthenticated("the bearer token is missing", hint=unauthenticated().command_hint)
        if scheme != b"bearer" or self._admit is None:
            raise unauthenticated()
        admission = await self._admit(word.decode("latin-1"))
        check_scope(scope["method"], scope["path"], admission.scopes)
        scope[CALLER], scope[SCOPES] = admission.caller, admission.scopes

    def _check_host(self, host: bytes) -> None:
        if not self._is_ours("//" + host.decode("latin-1")):
            raise WrongHost(
                "this service does not answer to the host name of this request",
                hint="use 127.0.0.1, or name the host in DRAGOMAN_ALLOWED_HOSTS",
            )
        if len(self._known_hosts) < 100:
            self._known_hosts.add(host)

    def _is_ours(self, address: str) -> bool:
        try:
            return (urlsplit(address).hostname or "") in self._hosts
        except ValueError:
            return False
