"""Who may come in: the names of this host, the origin of a page, the bearer token or key. Pure ASGI.

Answers before anything of a request is read, and leaves in its scope who asks. A page of another site that
makes a browser resolve its own name to this machine (DNS rebinding) is stopped by the host check. An answer
that lasts, through whichever door, ends here when the credential that opened it does.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.errors import CallerFault, DragomanError, StoreUnavailable, Unauthenticated
from dragoman.hints import Words, speaking
from dragoman.hub import BoundHub
from dragoman.identity.authenticated import ALL_SCOPES
from dragoman.identity.authenticator import AuthenticatedCaller, unauthenticated
from dragoman.scope import NOBODY, Caller
from dragoman.telemetry.logs import get_logger
from dragoman.web.problems import WrongHost, WrongOrigin, problem
from dragoman.web.protected_resources import ProtectedResources
from dragoman.web.scopes import SCOPES, check_scope, is_open

HUB = "dragoman.hub"  # where a door leaves it in a request's scope
CALLER = "dragoman.caller"  # where the guard leaves it in a request's scope
CREDENTIAL = "dragoman.credential"  # where whoever let a request in leaves by what
CHECK_EVERY = 0.4  # seconds; with `identity.directory.FRESH`, a stream ends within two in every process
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(rb"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_ONCE = frozenset({b"host", b"authorization", b"origin"})


class Admit(Protocol):
    """Who a token stands for at an address; `is_under_way` when it has opened the request before."""

    def __call__(
        self, token: str, *, audience: str = "", is_under_way: bool = False
    ) -> Awaitable[AuthenticatedCaller]: ...


def words_of(scope: Scope) -> Words:
    """In which words hints are told by HTTP: the command line says that it wants commands."""
    if (b"dragoman-hints", b"command") in map(tuple, scope["headers"]):
        return "command"
    return "plain" if scope["path"].startswith("/mcp") else "rest"


def bound_hub(hub: BoundHub, scope: Scope) -> BoundHub:
    """The hub for who was let in. Every request is bound here, once: what comes after has no other hub."""
    caller: Caller | None = scope.get(CALLER)
    if caller is None:
        raise Unauthenticated("nobody has said who asks")
    return hub.acting_for(caller)


class Credential:
    """What let a request in, and what it was good for then. `ask` says what it is good for now."""

    __slots__ = ("admission", "ask", "word")

    def __init__(
        self,
        word: str,
        admission: AuthenticatedCaller,
        ask: Callable[[], Awaitable[AuthenticatedCaller | None]],
    ) -> None:
        self.word = word
        self.admission = admission
        self.ask = ask


class _LastingAnswers:
    """Answers that last, by the credential that opened them: one task looks at each credential.

    One that ended, or is good for something else than it was, ends its answers.
    """

    def __init__(self) -> None:
        self._answers: dict[str, set[_Answer]] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}

    def add(self, answer: "_Answer", credential: Credential) -> None:
        self._answers.setdefault(credential.word, set()).add(answer)
        if credential.word not in self._watches:
            watch = asyncio.create_task(self._watch(credential), name="watch a credential")
            self._watches[credential.word] = watch

    def discard(self, answer: "_Answer", credential: Credential) -> None:
        answers = self._answers[credential.word]
        answers.discard(answer)
        if not answers:
            del self._answers[credential.word]
            self._watches.pop(credential.word).cancel()

    async def _watch(self, credential: Credential) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY)
            try:
                admission = await credential.ask()
            except StoreUnavailable:
                continue  # nobody can be asked now, which is no reason to refuse
            except DragomanError:
                admission = None
            except Exception:  # noqa: BLE001
                # boundary: nothing goes out unwatched
                get_logger().exception("guard.failed")
                admission = None
            for answer in [*self._answers[credential.word]]:
                if answer.admission != admission:
                    answer.end()


class _Answer:
    """One answer on its way out. Once it lasts, it lasts as long as its credential.

    A server that was told the end of an answer tells its door that the client has gone.
    """

    __slots__ = ("_credential", "_ending", "_headers", "_is_over", "_lasting", "_scope", "_send")

    def __init__(self, scope: Scope, send: Send, lasting: _LastingAnswers) -> None:
        self._scope = scope
        self._send = send
        self._lasting = lasting
        self._headers: Iterable[tuple[bytes, bytes]] = ()
        self._credential: Credential | None = None
        self._is_over = False
        self._ending: asyncio.Future[None] | None = None

    @property
    def admission(self) -> AuthenticatedCaller | None:
        return self._credential.admission if self._credential else None

    async def send(self, message: Message) -> None:
        if self._is_over:
            return
        if message["type"] == "http.response.start":
            self._headers = message.get("headers", ())
        elif not message.get("more_body"):
            self._is_over = True
        elif self._credential is None and self._has_no_length:
            self._credential = self._scope.get(CREDENTIAL)
            if self._credential is not None:
                self._lasting.add(self, self._credential)
        await self._send(message)

    def end(self) -> None:
        """Nothing more goes out but the end, whenever its client takes it."""
        if not self._is_over:
            self._is_over = True
            end: Message = {"type": "http.response.body", "body": b"", "more_body": False}
            # Held here and ended with the request.
            self._ending = asyncio.ensure_future(self._send(end))

    def close(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
        if self._credential is not None:
            self._lasting.discard(self, self._credential)

    @property
    def _has_no_length(self) -> bool:
        """What has one was made before it was sent, and cannot be cut."""
        return not any(name.lower() == b"content-length" for name, _ in self._headers)


class Guard:
    """The service's own token stands for `operator`; any other goes to `admit`, where there is one.

    Paths that are `open` look after themselves: the console knows its people by their session.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        is_token: Callable[[bytes], bool],
        operator: Caller,
        resources: ProtectedResources | None = None,
        admit: Admit | None = None,
        hosts: Iterable[str] = (),
        is_open: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._app = app
        self._is_token = is_token
        self._operator = operator
        self._resources = resources
        self._admit = admit
        self._is_open = is_open
        self._hosts = frozenset(host.lower().strip("[]") for host in (*LOOPBACK, *hosts))
        # A client sends the same Host with every request: parse each spelling once.
        self._known_hosts: set[bytes] = set()
        self._lasting = _LastingAnswers()
        self._own: Credential | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await self._check(scope)
            except DragomanError as error:
                with speaking(words_of(scope)):
                    response = problem(error)
                if self._resources and (challenge := self._resources.challenge(scope, error)):
                    response.headers["WWW-Authenticate"] = challenge
                await response(scope, receive, send)
                return
        answer = _Answer(scope, send, self._lasting)
        try:
            await self._app(scope, receive, answer.send)
        finally:
            answer.close()

    async def _check(self, scope: Scope) -> None:
        given = _said_once(scope["headers"])
        host, origin = given.get(b"host", b""), given.get(b"origin", b"")
        if host not in self._known_hosts:
            self._check_host(host)
        if origin and not self._is_ours(origin.decode("latin-1")):
            raise WrongOrigin(
                "a page of another origin may not ask here",
                hint="a host name that is yours belongs into DRAGOMAN_ALLOWED_HOSTS",
            )
        scheme, _, word = given.get(b"authorization", b"").partition(b" ")
        word = word.strip()
        if scheme.lower() == b"bearer" and self._is_token(word):
            if self._own is None or self._own.word != word.decode("latin-1"):
                self._own = self._own_token(word)
            scope[CALLER], scope[CREDENTIAL] = self._operator, self._own
        elif is_open(scope["path"]) or (not word and self._is_open(scope["path"])):
            scope[CALLER] = NOBODY
        else:
            await self._let_in(scope, scheme.lower(), word)

    async def _let_in(self, scope: Scope, scheme: bytes, word: bytes) -> None:
        if not word:
            raise Unauthenticated("the bearer token is missing", hint=unauthenticated().command_hint)
        if scheme != b"bearer" or self._admit is None:
            raise unauthenticated()
        admit, token = self._admit, word.decode("latin-1")
        audience = self._resources.resource_of(scope) if self._resources else ""
        admission = await admit(token, audience=audience)
        check_scope(scope["method"], scope["path"], admission.scopes)
        scope[CALLER], scope[SCOPES] = admission.caller, admission.scopes
        scope[CREDENTIAL] = Credential(
            token, admission, partial(admit, token, audience=audience, is_under_way=True)
        )

    def _own_token(self, word: bytes) -> Credential:
        admission = AuthenticatedCaller(self._operator, ALL_SCOPES)

        async def ask() -> AuthenticatedCaller | None:
            return admission if self._is_token(word) else None

        return Credential(word.decode("latin-1"), admission, ask)

    def _check_host(self, host: bytes) -> None:
        # A name and a port: clients are told addresses that begin with it.
        if not _HOST.fullmatch(host) or not self._is_ours("//" + host.decode("latin-1")):
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


def _said_once(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """What a request says of itself. Said twice, a proxy may have checked one and we would take the other."""
    given: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _ONCE:
            if name in given:
                raise CallerFault(
                    f"the header {name.decode().title()} came more than once", hint="send it once"
                )
            given[name] = value
    return given
