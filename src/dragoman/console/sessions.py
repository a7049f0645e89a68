"""Who sits at the browser: a sealed cookie that holds their key, looked at again with every request.

A key that is revoked ends its sessions, and who signs out ends theirs wherever the cookie went. In one-person
mode a link that works once opens the first, at whichever process of the installation it leads to.
"""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, Self

from starlette.requests import Request
from starlette.responses import Response

from dragoman.errors import DragomanError, LimitReached, StoreUnavailable
from dragoman.hub import Hub, clients_of
from dragoman.hub.door_clients import DoorClients
from dragoman.identity.authenticated import AuthenticatedCaller
from dragoman.identity.directory import FRESH
from dragoman.scope import Caller

COOKIE = "dragoman_session"
LASTS = 12 * 3600
_LINK = "sign-in link"
_ENDED = "ended session"
_LINK_LASTS = 3600
_MOST_LINKS = 200
_MOST_OPEN = 10_000
_PLACE = ("console", "session")
Admit = Callable[[str], Awaitable[AuthenticatedCaller]]
AdmitAgain = Callable[[str, str], Awaitable[AuthenticatedCaller]]


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """`csrf` must come with every request that changes something."""

    admission: AuthenticatedCaller
    csrf: str
    name: str = ""

    def allows(self, token: str) -> bool:
        return compare_digest(self.csrf.encode(), token.encode())


@dataclass(frozen=True, slots=True)
class SealsCookies:
    """Seals what the browser keeps; the vault fills it."""

    seal: Callable[..., bytes]
    open: Callable[..., bytes]


class BrowserSessions:
    """`admit_again` finds those who came without a key: they signed in elsewhere."""

    def __init__(
        self,
        seals: Callable[[], SealsCookies],
        clients: Callable[[], DoorClients],
        admit: Admit,
        admit_again: AdmitAgain,
        is_secure: bool,
    ) -> None:
        self._seals = seals
        self._clients = clients
        self._admit = admit
        self._admit_again = admit_again
        self.is_secure = is_secure
        self._open: dict[str, float] = {}  # by mark, when nobody had ended it yet

    @classmethod
    def of(cls, hub: Hub, admit: Admit, *, is_secure: bool) -> Self:
        """The hub may not be open yet: its parts are looked up late."""

        async def admit_again(workspace: str, user: str) -> AuthenticatedCaller:
            return await hub.authenticator.admit_again(workspace, user)

        return cls(
            lambda: SealsCookies(hub.seal, hub.unseal), lambda: clients_of(hub), admit, admit_again, is_secure
        )

    async def make_link(self, token: str, caller: Caller, *, most: int | None = _MOST_LINKS) -> str:
        """A code that opens one session for whoever holds it, once and soon."""
        code = token_urlsafe(24)
        if not await self._clients().put(
            _LINK, (code,), token.encode(), caller, lasts=_LINK_LASTS, most=most
        ):
            raise LimitReached(
                f"{most} links that sign in wait to be used", hint="open one of them, or wait an hour"
            )
        return code

    async def take_link(self, code: str) -> str | None:
        """The key behind a code; the code is used up."""
        token = await self._clients().take(_LINK, (code,))
        return None if token is None else token.decode()

    async def begin(self, response: Response, token: str) -> None:
        """`Unauthenticated` when the key opens nothing."""
        await self._admit(token)
        self._give(response, {"token": token})

    def begin_for(self, response: Response, admission: AuthenticatedCaller) -> None:
        """For somebody whom another has just signed in; there is no key to keep."""
        self._give(response, {"user": [admission.caller.workspace, admission.caller.user]})

    def _give(self, response: Response, who: Mapping[str, Any]) -> None:
        facts = {**who, "until": int(time.time()) + LASTS, "csrf": token_urlsafe(24)}
        sealed = self._seals().seal(json.dumps(facts).encode(), *_PLACE)
        response.set_cookie(
            COOKIE,
            urlsafe_b64encode(sealed).decode(),
            max_age=LASTS,
            httponly=True,
            samesite="lax",
            secure=self.is_secure,
            path="/",
        )

    async def end(self, response: Response, session: BrowserSession) -> None:
        """In every browser that has its cookie, here at once and at other processes within two seconds."""
        self._open.pop(session.csrf, None)
        await self._clients().put(
            _ENDED, (session.csrf,), b"", session.admission.caller, lasts=LASTS, most=None
        )
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax", secure=self.is_secure)

    async def find(self, request: Request) -> BrowserSession | None:
        """None for a stranger, an old session, or one whose key opens nothing any more."""
        return await self._opened(request.cookies.get(COOKIE, ""))

    async def admission_of(self, cookie: str) -> AuthenticatedCaller | None:
        """What a session is good for now."""
        session = await self._opened(cookie)
        return None if session is None else session.admission

    async def _opened(self, cookie: str) -> BrowserSession | None:
        if not cookie:
            return None
        try:
            facts = json.loads(self._seals().open(urlsafe_b64decode(cookie), *_PLACE))
            if facts["until"] < time.time() or await self._is_ended(facts["csrf"]):
                return None
            if "user" in facts:
                return BrowserSession(await self._admit_again(*facts["user"]), facts["csrf"])
            return BrowserSession(await self._admit(facts["token"]), facts["csrf"])
        except (DragomanError, ValueError, KeyError, TypeError):
            return None

    async def _is_ended(self, mark: str) -> bool:
        now = time.monotonic()
        if now - self._open.get(mark, float("-inf")) < FRESH:
            return False
        try:
            if await self._clients().has(_ENDED, (mark,)):
                return True
        except StoreUnavailable:
            return mark not in self._open  # who was let in before goes on; nobody else can be asked about now
        if len(self._open) >= _MOST_OPEN:
            self._open.clear()
        self._open[mark] = now
        return False
