"""Logins of MCP clients: a client asks, a person allows it some of what they may use, and it gets tokens.

Dragoman as OAuth 2.1 authorization server. What a person allowed is a key of theirs (`ApiKey.client`), so
that rights, approvals, limits and the trail know it as they know any key. All of it is in the store:
whichever process is asked can answer.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from secrets import token_hex, token_urlsafe
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

import orjson

from dragoman.access.approvals import is_person
from dragoman.errors import Denied, DragomanError, InvalidArguments, LimitReached, NotFound, Outdated
from dragoman.hub.bound import BoundService
from dragoman.hub.bundles import visible_sources
from dragoman.hub.oauth_clients import (
    A_MINUTE,
    MOST_REGISTRATIONS,
    AskingClient,
    OAuthRefusal,
    place_of,
    too_many_registrations,
)
from dragoman.hub.people import People
from dragoman.hub.people_settings import LimitSettings
from dragoman.hub.user_rights import check_operator, check_unlimited, narrowed_end, narrowed_to
from dragoman.identity.access_tokens import LIFE, READ_SCOPE, SCOPES, WRITE_SCOPE, AccessTokens
from dragoman.identity.authenticated import admitted
from dragoman.identity.keys import HINT_LENGTH, hash_of, is_open
from dragoman.people import ApiKey, CallLimits, ConnectedClient, User
from dragoman.scope import ANY_EXTRA, ANY_TOOL, BUNDLE, NOBODY, READ_ONLY, Caller, source_word
from dragoman.store.records import RegisteredClient

Limits = CallLimits | LimitSettings | None
CODE_LASTS = 60.0
_REMEMBERED = 600.0
_MOST_CODES = 100
_CODE, _USED_CODE = "authorization code", "used authorization code"
_REFRESH = ("refresh token",)
_PREFIX = "drr_"
_REGISTERED = "registration"
_OFFLINE = "offline_access"  # some clients ask for it to be given a refresh token, which all are
_CHALLENGE = re.compile(r"[A-Za-z0-9._~-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_LONGEST_STATE = 2000
_RESOURCE = re.compile(r"/mcp(?:/[A-Za-z0-9._~-]{1,100}){0,3}")
Period = Literal["hour", "day", "month", "always"]
PERIODS: Mapping[Period, timedelta | None] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "month": timedelta(days=30),
    "always": None,
}


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a client asks for, as its request to `/oauth/authorize` says it, checked."""

    client: AskingClient
    redirect_uri: str
    state: str | None
    challenge: str
    audience: str
    scopes: tuple[str, ...]

    @property
    def path(self) -> str:
        """`/mcp`, or an address under it."""
        return urlsplit(self.audience).path

    @property
    def may_write(self) -> bool:
        return WRITE_SCOPE in self.scopes

    def answer(self, issuer: str, **facts: str) -> str:
        """Where the browser is sent back to, with who says so (RFC 9207)."""
        if self.state is not None:
            facts["state"] = self.state
        parts = urlsplit(self.redirect_uri)
        query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *facts.items(), ("iss", issuer)])
        return parts._replace(query=query).geturl()


_BUNDLES = "bundles/"


class WrongAuthorizationRequest(Exception):
    """Something is wrong with a request whose client and address are known: the client is told, there."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientChoice:
    """What a person lets a client have. `connectors` None: all, those too that come later; bundles are
    among them as `bundle:<name>`.
    """

    connectors: frozenset[str] | None
    only_reads: bool = True
    period: Period = "month"

    def capabilities(self) -> frozenset[str]:
        words = {ANY_TOOL} if self.connectors is None else {*map(source_word, self.connectors)}
        return frozenset({*words, ANY_EXTRA, *((READ_ONLY,) if self.only_reads else ())})


@dataclass(frozen=True, slots=True)
class OfferedConnector:
    """With how many tools, and how many of them say that they only read."""

    slug: str
    tools: int
    only_read: int


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    access: str
    refresh: str
    scopes: tuple[str, ...]
    expires_in: int = LIFE


class ConnectedClients(BoundService):
    """Users and workspaces go by id or name, as in `People`."""

    __slots__ = ()

    async def list(self, user: str | None = None, workspace: str | None = None) -> Sequence[ApiKey]:
        """Newest first: one's own; for an admin who names nobody all of the workspace."""
        people = People(self._runtime, self._caller)
        return await people.keys(user, workspace, of_clients=True)

    async def get(self, client: str, workspace: str | None = None) -> ApiKey:
        """One of those. Raises `NotFound`."""
        for key in await self.list(workspace=workspace):
            if key.id == client:
                return key
        raise NotFound(
            f"there is no connected client {client[:80]!r}",
            hint="dragoman clients list shows those there are",
        )

    async def update(self, client: str, *, limits: Limits, workspace: str | None = None) -> ApiKey:
        """Sets what may be used through it; None takes all limits away. Effective at once."""
        key = await self.get(client, workspace)
        given = {"limits": limits}
        return await self._runtime.keys.update(
            self._caller, key.workspace, key.id, given, key.scopes, of_client=True
        )

    async def rotate(self) -> str:
        """A new key signs access tokens from now on; its id. What was signed before is good until it ends."""
        check_operator(self._caller)
        tokens = self._runtime.authenticator.access_tokens
        if tokens is None:
            raise no_logins()
        made = await tokens.signing.rotate()
        await self._runtime.auditor.done(self._caller, "signing_key.rotated", made)
        return made

    async def revoke(self, client: str, workspace: str | None = None) -> ApiKey:
        """Its tokens open nothing from now on, here at once and elsewhere within two seconds."""
        key = await self.get(client, workspace)
        return await self._runtime.keys.revoke(self._caller, key.workspace, key.id, "client.revoked")


class ClientLogins(BoundService):
    """For doors: what a client asks, and what a person answers."""

    __slots__ = ()

    # A client asks, a person answers

    async def register(self, metadata: Any, address: str) -> RegisteredClient:
        """A client introduces itself (RFC 7591), from this address. `OAuthRefusal` says what will not do."""
        self._tokens()
        self._runtime.oauth_clients.count(address)
        # And for all processes together, under a name that does not tell the address.
        stranger = Caller(NOBODY.workspace, sha256(address.encode()).hexdigest()[:32])
        if not await self._runtime.door_clients.put(
            _REGISTERED, (token_hex(16),), b"", stranger, lasts=A_MINUTE, most=MOST_REGISTRATIONS
        ):
            raise too_many_registrations(A_MINUTE)
        return await self._runtime.oauth_clients.register(metadata, self._now())

    async def read_request(self, query: Sequence[tuple[str, str]], base: str) -> AuthorizationRequest:
        """What a browser brought to `/oauth/authorize`.

        `InvalidArguments` where nobody knows who asks or where to answer: a person is told, and the browser
        is sent nowhere. `WrongAuthorizationRequest` where the client can be told.
        """
        self._tokens()
        asked = dict(query)
        client = await self._runtime.oauth_clients.find(asked.get("client_id", ""), self._now())
        if client is None:
            raise InvalidArguments(
                "the program that sent you here is not known to Dragoman, or not any more",
                hint="go back to it and connect again: it introduces itself anew then",
            )
        redirect_uri = asked.get("redirect_uri", "")
        if not client.accepts(redirect_uri) or [name for name, _ in query].count("redirect_uri") != 1:
            raise InvalidArguments(
                f"{client.name!r} wants you sent back to an address that it has not named before",
                hint="do not go on if you did not start this yourself; else update the program",
            )
        state = asked.get("state")
        request = AuthorizationRequest(client, redirect_uri, state, "", "", ())
        try:
            return _checked(request, query, base)
        except OAuthRefusal as refusal:
            told = {"error": refusal.error, "error_description": refusal.description}
            raise WrongAuthorizationRequest(request.answer(base, **told)) from None

    async def offered(self, request: AuthorizationRequest) -> Sequence[OfferedConnector]:
        """The caller's connectors and bundles that it could be given, by name."""
        slug, counts = self._source_of(request.path), Counter[tuple[str, bool]]()
        catalog, caller = self._runtime.catalog, self._caller
        for tool in catalog.list(caller):
            counts[tool.slug, tool.only_reads] += 1
        words = [
            one.slug
            for one in self._runtime.registry.list(caller)
            if one.enabled and one.kind != "native" and slug in (None, one.slug)
        ]
        for bundle in catalog.list_bundles(caller):
            if slug in (None, bundle.word):
                words.append(bundle.word)
                for tool in catalog.list(caller.within([bundle.word])):
                    counts[bundle.word, tool.only_reads] += 1
        return [
            OfferedConnector(one, counts[one, True] + counts[one, False], counts[one, True]) for one in words
        ]

    async def allowed_before(self, request: AuthorizationRequest) -> ApiKey | None:
        """What the caller allowed this client the last time, whether or not it still holds."""
        keys = await self._runtime.store.people.keys(self._caller.workspace, self._caller.user)
        return next((one for one in keys if one.client and one.client.id == request.client.id), None)

    async def deny(self, request: AuthorizationRequest, base: str) -> str:
        """Where the browser goes with a no."""
        await self._told("client.denied", request.client.id, name=request.client.name)
        return request.answer(base, error="access_denied", error_description="the person said no")

    async def allow(self, request: AuthorizationRequest, choice: ClientChoice, base: str) -> str:
        """Where the browser goes with a code that the client exchanges for tokens, once and soon.

        The caller gives of their own: never more than they have, nor for longer.
        """
        caller, user = self._caller, await self._giving()
        choice = replace(choice, only_reads=choice.only_reads or not request.may_write)
        if (slug := self._source_of(request.path)) is not None:
            choice = replace(choice, connectors=frozenset({slug}))
        visible = visible_sources(self._runtime, caller)
        if choice.connectors is not None and not choice.connectors & visible:
            raise InvalidArguments("choose at least one connector", hint="or deny the request")
        if rivals := self._runtime.catalog.rivals(caller.limited_to(choice.capabilities())):
            raise InvalidArguments(f"not both can be given: {rivals[0]}", hint="choose one of the two")
        period = PERIODS[choice.period]
        end = narrowed_end(None if period is None else self._now() + period, caller)
        code = f"drc_{token_urlsafe(32)}"
        granted = {
            "workspace": caller.workspace,
            "user": caller.user,
            "name": request.client.name,
            "client": asdict(
                ConnectedClient(
                    id=request.client.id,
                    audience=request.audience,
                    redirect=place_of(request.redirect_uri),
                    host=request.client.host,
                )
            ),
            "capabilities": sorted(narrowed_to(choice.capabilities(), caller, user.capabilities)),
            "expires_at": None if end is None else end.isoformat(),
            # A client that logs in anew has the limits that it had.
            "limits": asdict(before.limits) if (before := await self.allowed_before(request)) else {},
            "redirect_uri": request.redirect_uri,
            "challenge": request.challenge,
        }
        if not await self._runtime.door_clients.put(
            _CODE, (code,), orjson.dumps(granted), caller, lasts=CODE_LASTS, most=_MOST_CODES
        ):
            raise LimitReached("too many clients were allowed just now", hint="wait a minute")
        details = {"name": request.client.name, "capabilities": granted["capabilities"], "until": str(end)}
        await self._told("client.allowed", request.client.id, **details)
        return request.answer(base, code=code)

    # A client comes with what it has

    async def redeem(self, form: Mapping[str, str], base: str) -> IssuedTokens:
        """Tokens for a code. One that is used twice was stolen: what it brought is revoked."""
        tokens, code = self._tokens(), form.get("code", "")
        sealed = await self._runtime.door_clients.take(_CODE, (code,))
        if sealed is None:
            used = await self._runtime.door_clients.take(_USED_CODE, (code,))
            if used is not None:
                await self._end(used.decode(), "client.code_reused")
            raise _no_grant("the code is wrong, was used, or is too old; codes are good for a minute")
        granted = orjson.loads(sealed)
        client = ConnectedClient(**granted["client"])
        if form.get("client_id", "") != client.id or form.get("redirect_uri", "") != granted["redirect_uri"]:
            raise _no_grant("the code is for another client or redirect URI")
        if not _proves(form.get("code_verifier", ""), granted["challenge"]):
            raise _no_grant("the code verifier is wrong")
        _check_target(form, client)
        key, refresh = await self._made(granted, client)
        holder = Caller(key.workspace, key.user)
        await self._runtime.door_clients.put(
            _USED_CODE, (code,), key.id.encode(), holder, lasts=_REMEMBERED, most=None
        )
        await self._runtime.oauth_clients.keep(client.id, self._now())
        scopes = scopes_of(key)
        return IssuedTokens(await tokens.mint(key, base, scopes), refresh, scopes)

    async def refresh(self, form: Mapping[str, str], base: str) -> IssuedTokens:
        """New tokens for a refresh token, which is used up. One that comes again was stolen, or its successor
        was: the client has to log in anew.
        """
        tokens, given = self._tokens(), form.get("refresh_token", "")
        key = await self._key_of_refresh(given)
        if key is None or key.client is None or form.get("client_id", "") != key.client.id:
            raise _no_grant("the refresh token is wrong or for another client")
        user = await self._runtime.directory.find(key.workspace, key.user)
        if not is_open(key) or user is None or not user.user.is_active:
            raise _no_grant("what was allowed is over or was revoked: log in again")
        _check_target(form, key.client)
        scopes = _asked_scopes(form.get("scope"), scopes_of(key))
        fresh = self._sealed_refresh(key.id)
        try:
            if not compare_digest(hash_of(given), key.hash):
                raise Outdated("it was used before")
            await self._runtime.store.people.put_key(replace(key, hash=hash_of(fresh)))
        except Outdated:
            await self._end(key.id, "client.refresh_reused")
            raise _no_grant(
                "this refresh token was used before: the login is revoked, log in again"
            ) from None
        self._runtime.authenticator.forget(key.workspace, key.user)
        await self._runtime.oauth_clients.keep(key.client.id, self._now())
        return IssuedTokens(await tokens.mint(key, base, scopes), fresh, scopes)

    async def revoke_token(self, token: str, client_id: str) -> None:
        """What a client gives back (RFC 7009) ends its whole login. What is no token of its is no fault."""
        key = await self._key_of_refresh(token)
        if key is None and (claims := await self._tokens().claims(token)):
            key = await self._runtime.store.people.find_key_by_id(claims["grant"])
        if key is not None and key.client is not None and key.client.id == client_id:
            await self._end(key.id, "client.revoked")

    async def introspect(self, token: str) -> Mapping[str, Any]:
        """What a token is good for now (RFC 7662). For who runs the installation."""
        check_operator(self._caller)
        tokens = self._tokens()
        if claims := await tokens.claims(token):
            found = await tokens.find(token)
            return {"active": False} if found is None else {"active": True, "token_type": "Bearer", **claims}
        key = await self._key_of_refresh(token)
        if key is None or key.client is None or not is_open(key) or key.hash != hash_of(token):
            return {"active": False}
        facts = {"active": True, "client_id": key.client.id, "sub": key.user, "aud": key.client.audience}
        return facts | {"scope": " ".join(scopes_of(key)), "grant": key.id}

    async def lacks_write(self, tool: str) -> bool:
        """Whether all that the caller, a client, lacks for a tool is leave to change things, and its person
        could give it.
        """
        caller = self._caller
        writing = replace(caller, grants=tuple(grant - {READ_ONLY} for grant in caller.grants))
        found = self._runtime.catalog.find(tool, writing)
        person = await self._runtime.directory.find(caller.workspace, caller.user)
        if found is None or person is None or found.may_be_used_by(caller):
            return False
        return found.may_be_used_by(writing) and found.may_be_used_by(admitted(person).caller)

    async def signing_keys(self) -> Sequence[Mapping[str, Any]]:
        """The public halves (RFC 7517)."""
        return await self._tokens().signing.public()

    # Parts

    def _source_of(self, path: str) -> str | None:
        """What an address is for; of a bundle the word by which it is given."""
        slug = slug_of(path)
        if slug is None or not slug.startswith(BUNDLE):
            return slug
        bundle = self._runtime.catalog.find_bundle(slug.removeprefix(BUNDLE), self._caller)
        return slug if bundle is None else bundle.word

    def _tokens(self) -> AccessTokens:
        tokens = self._runtime.authenticator.access_tokens
        if tokens is None:
            raise no_logins()
        return tokens

    def _now(self) -> datetime:
        return self._runtime.store.clock.now()

    async def _giving(self) -> User:
        """The person who allows: nobody who acts for them can."""
        caller = self._caller
        person = await self._runtime.directory.find(caller.workspace, caller.user)
        if not is_person(caller) or person is None or not person.user.is_active:
            raise Denied("only a person can allow a client", hint="sign in with a key of your own")
        check_unlimited(None if caller.key is None else await self._runtime.authenticator.get_key(caller.key))
        return person.user

    async def _made(self, granted: Mapping[str, Any], client: ConnectedClient) -> tuple[ApiKey, str]:
        person = await self._runtime.directory.find(granted["workspace"], granted["user"])
        if person is None or not person.user.is_active:
            raise _no_grant("who allowed it is gone")
        key_id, end = f"cli_{token_hex(8)}", granted["expires_at"]
        refresh = self._sealed_refresh(key_id)
        key = ApiKey(
            id=key_id,
            workspace=granted["workspace"],
            user=granted["user"],
            name=granted["name"],
            hash=hash_of(refresh),
            hint=refresh[:HINT_LENGTH],
            scopes=frozenset({"call"}),
            capabilities=frozenset(granted["capabilities"]),
            way="mcp",
            expires_at=None if end is None else datetime.fromisoformat(end),
            limits=CallLimits(**granted.get("limits", {})),
            client=client,
        )
        await self._runtime.keys.check_number(person.user)
        await self._runtime.store.people.put_key(key)
        holder = Caller(key.workspace, key.user)
        details = {"name": key.name, "client": client.id, "audience": client.audience}
        await self._runtime.auditor.done(holder, "client.connected", key.id, details=details)
        return key, refresh

    def _sealed_refresh(self, key_id: str) -> str:
        """Sealed, so that an old one is known for genuine; the store has the hash of the one that counts."""
        facts = orjson.dumps([key_id, token_urlsafe(16)])
        sealed = self._runtime.vault.seal_bytes(facts, *_REFRESH)
        return _PREFIX + urlsafe_b64encode(sealed).decode().rstrip("=")

    async def _key_of_refresh(self, token: str) -> ApiKey | None:
        text = token.removeprefix(_PREFIX)
        if text == token or len(token) > 1000:
            return None
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            key_id, _ = orjson.loads(self._runtime.vault.open_bytes(sealed, *_REFRESH))
        except (DragomanError, ValueError):
            return None
        return await self._runtime.store.people.find_key_by_id(key_id)

    async def _end(self, key_id: str, why: str) -> None:
        key = await self._runtime.store.people.find_key_by_id(key_id)
        if key is not None:
            holder = Caller(key.workspace, key.user)
            await self._runtime.keys.revoke(holder, key.workspace, key.id, why)

    async def _told(self, action: str, subject: str, **details: Any) -> None:
        await self._runtime.auditor.done(self._caller, action, subject, details=details)


def no_logins() -> NotFound:
    return NotFound("clients do not log in here", hint="DRAGOMAN_CLIENT_LOGIN says where they do")


def slug_of(path: str) -> str | None:
    """The one connector that an address is for, or `bundle:<name>`; None for `/mcp`, which is all of them."""
    name = path.removeprefix("/mcp").strip("/")
    return f"{BUNDLE}{name.removeprefix(_BUNDLES)}" if name.startswith(_BUNDLES) else name or None


def scopes_of(key: ApiKey) -> tuple[str, ...]:
    return (READ_SCOPE,) if READ_ONLY in (key.capabilities or ()) else SCOPES


def audience_of(resource: str | None, base: str) -> str | None:
    """The address that tokens are for (RFC 8707); None for one that is not served here.

    Whether there is a connector of that name is not said: it looks like one that is.
    """
    if resource is None:
        return f"{base}/mcp"
    path = resource.removeprefix(base).rstrip("/")
    if not resource.startswith(f"{base}/") or not _RESOURCE.fullmatch(path):
        return None
    return None if {".", ".."} & {*path.split("/")} else base + path


def _checked(
    request: AuthorizationRequest, query: Sequence[tuple[str, str]], base: str
) -> AuthorizationRequest:
    """`OAuthRefusal` for what the client must do otherwise."""
    names = [name for name, _ in query]
    if len(names) != len({*names}):
        raise OAuthRefusal("invalid_request", "a parameter came more than once")
    asked = dict(query)
    if asked.get("response_type") != "code":
        raise OAuthRefusal("unsupported_response_type", "response_type must be code")
    if "request" in asked or "request_uri" in asked:
        raise OAuthRefusal("request_not_supported", "request objects are not taken")
    if asked.get("response_mode", "query") != "query":
        raise OAuthRefusal("invalid_request", "response_mode must be query")
    challenge = asked.get("code_challenge", "")
    if asked.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
        raise OAuthRefusal("invalid_request", "PKCE is needed: a code_challenge of 43 letters by S256")
    if len(asked.get("state", "")) > _LONGEST_STATE:
        raise OAuthRefusal("invalid_request", f"state may have {_LONGEST_STATE} letters")
    if asked.get("prompt") == "none":
        raise OAuthRefusal("consent_required", "a person has to be asked")
    audience = audience_of(asked.get("resource"), base)
    if audience is None:
        raise OAuthRefusal("invalid_target", "resource must be the address of the MCP server")
    words = {*asked.get("scope", "").split()}
    if unknown := words - {*SCOPES, _OFFLINE}:
        raise OAuthRefusal("invalid_scope", f"{min(unknown)[:60]!r} is none of: {' '.join(SCOPES)}")
    scopes = tuple(one for one in SCOPES if one in words) or SCOPES
    return replace(request, challenge=challenge, audience=audience, scopes=scopes)


def _asked_scopes(asked: str | None, had: tuple[str, ...]) -> tuple[str, ...]:
    """A refresh may ask for less than was given, never for more."""
    if asked is None:
        return had
    words = asked.split()
    if not words or not {*words} <= {*had}:
        raise OAuthRefusal("invalid_scope", f"what was allowed is: {' '.join(had)}")
    return tuple(one for one in had if one in words or one == READ_SCOPE)


def _check_target(form: Mapping[str, str], client: ConnectedClient) -> None:
    resource = form.get("resource")
    if resource is not None and resource.rstrip("/") != client.audience:
        raise OAuthRefusal("invalid_target", "what was allowed is for another resource")


def _proves(verifier: str, challenge: str) -> bool:
    if not _VERIFIER.fullmatch(verifier):
        return False
    made = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=")
    return compare_digest(made, challenge.encode())


def _no_grant(description: str) -> OAuthRefusal:
    return OAuthRefusal("invalid_grant", description)
