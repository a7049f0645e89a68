"""Who sits at the browser: a sealed cookie that holds their key, looked at again with every request.

A key that is revoked ends its sessions, and who signs out ends theirs wherever the cookie went. A person of
several workspaces has a user in each: the same cookie holds the sessions beside the one that is shown, and is
given anew when they switch. In one-person mode a link that works once opens the first session, at whichever
process of the installation it leads to.
"""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
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
_MOST_SEALED = 2700  # bytes; in base64, with its name and attributes, a browser takes 4096
_PLACE = ("console", "session")
Admit = Callable[[str], Awaitable[AuthenticatedCaller]]
AdmitAgain = Callable[[str, str], Awaitable[AuthenticatedCaller]]
NamesOf = Callable[[Caller], Awaitable[tuple[str, str]]]
"""How people call a user and their workspace."""


@dataclass(frozen=True, slots=True)
class OtherSession:
    """One that the browser holds beside the one that is shown: `mark` names it, and opens nothing."""

    mark: str
    user: str
    workspace: str


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """`csrf` must come with every request that changes something."""

    admission: AuthenticatedCaller
    csrf: str
    others: tuple[OtherSession, ...] = ()
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
        names: NamesOf,
        is_secure: bool,
    ) -> None:
        self._seals = seals
        self._clients = clients
        self._admit = admit
        self._admit_again = admit_again
        self._names = names
        self.is_secure = is_secure
        self._open: dict[str, float] = {}  # by mark, when nobody had ended it yet

    @classmethod
    def of(cls, hub: Hub, admit: Admit, *, is_secure: bool) -> Self:
        """The hub may not be open yet: its parts are looked up late."""

        async def admit_again(workspace: str, user: str) -> AuthenticatedCaller:
            return await hub.authenticator.admit_again(workspace, user)

        async def names(caller: Caller) -> tuple[str, str]:
            person = (await hub.acting_for(caller).people.me()).person
            return person.user.name, person.workspace.name

        seals = SealsCookies(hub.seal, hub.unseal)
        return cls(lambda: seals, lambda: clients_of(hub), admit, admit_again, names, is_secure)

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

    async def begin(self, response: Response, token: str, beside: Request | None = None) -> None:
        """`Unauthenticated` when the key opens nothing. Sessions that came with `beside` are kept."""
        admission = await self._admit(token)
        others = () if beside is None else await self._held(beside, admission.caller)
        await self._begin(response, {"token": token}, admission.caller, others)

    async def begin_for(
        self, response: Response, admission: AuthenticatedCaller, beside: Request | None = None
    ) -> None:
        """For somebody whom another has just signed in; there is no key to keep."""
        caller = admission.caller
        others = () if beside is None else await self._held(beside, caller)
        await self._begin(response, {"user": [caller.workspace, caller.user]}, caller, others)

    async def switch(self, response: Response, request: Request, mark: str) -> bool:
        """Shows another of the sessions that the browser holds; False when that one is over."""
        held = self._facts(request)
        chosen = next((one for one in held if _mark(one) == mark), None)
        if chosen is None or await self._find(chosen) is None:
            return False
        self._give(response, [chosen, *(one for one in held if one is not chosen)])
        return True

    async def _begin(
        self, response: Response, who: Mapping[str, Any], caller: Caller, others: Sequence[Mapping[str, Any]]
    ) -> None:
        facts = {
            **who,
            "of": [caller.workspace, caller.user],
            "called": await self._names(caller),
            "until": int(time.time()) + LASTS,
            "csrf": token_urlsafe(24),
        }
        self._give(response, [facts, *others])

    async def _held(self, request: Request, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """What the browser holds and is still open, but for those of the same user."""
        unwanted = (None, [caller.workspace, caller.user])
        return [
            one for one in self._facts(request) if one.get("of") not in unwanted and await self._find(one)
        ]

    def _give(self, response: Response, sessions: Sequence[Mapping[str, Any]]) -> None:
        first, *others = sessions
        while True:
            facts = {**first, "others": others}
            sealed = self._seals().seal(json.dumps(facts).encode(), *_PLACE)
            if not others or len(sealed) < _MOST_SEALED:
                break
            others.pop()  # the one that was not shown for longest
        response.set_cookie(
            COOKIE,
            urlsafe_b64encode(sealed).decode(),
            max_age=LASTS,
            httponly=True,
            samesite="lax",
            secure=self.is_secure,
            path="/",
        )

    async def end(self, response: Response, request: Request, session: BrowserSession) -> None:
        """In every browser that has its cookie, here at once and at other processes within two seconds.

        With those beside it: who signs out leaves nothing behind.
        """
        for mark in (session.csrf, *(str(one["csrf"]) for one in self._facts(request)[1:])):
            self._open.pop(mark, None)
            await self._clients().put(_ENDED, (mark,), b"", session.admission.caller, lasts=LASTS, most=None)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax", secure=self.is_secure)

    async def find(self, request: Request) -> BrowserSession | None:
        """None for a stranger, an old session, or one whose key opens nothing any more."""
        return await self._opened(request.cookies.get(COOKIE, ""))

    def _facts(self, request: Request) -> Sequence[Mapping[str, Any]]:
        """All sessions of its cookie, the one that is shown first."""
        return self._unsealed(request.cookies.get(COOKIE, ""))

    def _unsealed(self, cookie: str) -> Sequence[Mapping[str, Any]]:
        if not cookie:
            return []
        try:
            facts: dict[str, Any] = json.loads(self._seals().open(urlsafe_b64decode(cookie), *_PLACE))
        except (DragomanError, ValueError, TypeError):
            return []
        others: list[dict[str, Any]] = facts.pop("others", [])
        return [facts, *others]

    async def admission_of(self, cookie: str) -> AuthenticatedCaller | None:
        """What a session is good for now."""
        session = await self._opened(cookie)
        return None if session is None else session.admission

    async def _opened(self, cookie: str) -> BrowserSession | None:
        held = self._unsealed(cookie)
        found = await self._find(held[0]) if held else None
        if found is None:
            return None
        others = [OtherSession(_mark(one), *one["called"]) for one in held[1:]]
        return replace(found, others=tuple(others))

    async def _find(self, facts: Mapping[str, Any]) -> BrowserSession | None:
        """One session of a cookie, while it is open and its key opens something."""
        try:
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


def _mark(facts: Mapping[str, Any]) -> str:
    """A name for a session that says nothing of what its changes need."""
    return blake2b(str(facts["csrf"]).encode(), digest_size=8).hexdigest()
