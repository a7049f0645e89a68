"""JWTs of an outside issuer: verified, for us and nobody else, and the users that they stand for.

An unknown user becomes a member the first time they come. One who was removed while the issuer still
knows them comes back as a new member: deactivating keeps them out.
"""

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from secrets import token_hex
from time import time
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError, UnsupportedAlgorithmError

from dragoman.errors import Conflict, Denied, Outdated
from dragoman.identity.authenticated import AuthenticatedCaller, admitted
from dragoman.identity.directory import Directory, Person
from dragoman.identity.groups import Rights
from dragoman.identity.issuer import ALGORITHMS, Issuer, SigningKeys
from dragoman.identity.keys import hash_of
from dragoman.people import User, Workspace
from dragoman.store.protocols import PeopleStore

OnUserChanged = Callable[[User | None, User], Awaitable[None]]
LEEWAY = 60
_MOST_VERIFIED = 10_000
_LONGEST = 16_384
_LONGEST_NAME = 100
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
_EMAIL = re.compile(r"[^\s@<>\x00-\x1f]{1,100}@[^\s@<>\x00-\x1f]{1,155}")


class _Registry(jws.JWSRegistry):
    """Only what needs no shared secret. Headers that are not known are no reason to refuse."""

    def __init__(self) -> None:
        super().__init__(algorithms=[*ALGORITHMS], strict_check_header=False)

    def get_alg(self, name: str) -> Any:
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError(f"{name[:20]!r} is not accepted")
        return self.algorithms[name]


@dataclass(slots=True)
class _Verified:
    """A token whose signature and claims were good, until `expires`, by keys of `edition`."""

    claims: dict[str, Any]
    expires: float
    edition: int
    rights: Rights | None = None
    holder: tuple[str, str] | None = None

    @property
    def made_at(self) -> datetime:
        return datetime.fromtimestamp(self.claims["iat"], UTC)


class TokenVerifier:
    """`on_changed` hears of a user whom a token made, or gave other rights: before and after."""

    def __init__(
        self,
        rows: PeopleStore,
        directory: Directory,
        issuer: Issuer,
        keys: SigningKeys,
        on_changed: OnUserChanged,
    ) -> None:
        self._rows = rows
        self._on_changed = on_changed
        self._directory = directory
        self._issuer = issuer
        self._keys = keys
        self._registry = _Registry()
        self._claims = jwt.JWTClaimsRegistry(
            leeway=LEEWAY,
            iss={"essential": True, "value": issuer.url},
            aud={"essential": True, "value": issuer.audience},
            exp={"essential": True},
            iat={"essential": issuer.groups is not None},
            sub={"essential": True},
        )
        self._verified: dict[str, _Verified] = {}

    async def find_signed_in(self, token: str, nonce: str) -> AuthenticatedCaller | None:
        """Who has just signed in: an ID token for us alone, made for the request that carried `nonce`."""
        verified = await self._verify(token) if len(token) <= _LONGEST else None
        if verified is None or verified.claims.get("nonce") != nonce:
            return None
        if verified.claims.get("azp", self._issuer.audience) != self._issuer.audience:
            return None
        person = await self._person(verified)
        return admitted(person) if person is not None and person.user.is_active else None

    async def find(self, token: str) -> AuthenticatedCaller | None:
        """Who the token stands for, or None. `Denied` when it is good but its workspace is not."""
        if len(token) > _LONGEST:
            return None
        digest = hash_of(token)
        verified = self._verified.get(digest)
        if verified is not None:
            await self._keys.refresh_when_old()
        if verified is None or verified.expires <= time() or verified.edition != self._keys.edition:
            self._verified.pop(digest, None)
            verified = await self._verify(token)
            if verified is None:
                return None
            self._remember(digest, verified)
        person = await self._person(verified)
        return admitted(person) if person is not None and person.user.is_active else None

    # The token

    async def _verify(self, token: str) -> _Verified | None:
        try:
            header = jws.extract_compact(token.encode(), registry=self._registry).headers()
            algorithm, key_id = header.get("alg"), header.get("kid")
            if algorithm not in ALGORITHMS or not isinstance(key_id, str | None):
                return None
            key = await self._keys.find(key_id, algorithm)
            if key is None:
                return None
            claims = jwt.decode(token, key, registry=self._registry).claims
            self._claims.validate(claims)
        except (JoseError, ValueError, TypeError, RecursionError):
            return None
        if len(claims["sub"]) > 255:
            return None
        rights = self._issuer.groups.rights_of(claims) if self._issuer.groups else None
        return _Verified(claims, min(claims["exp"], time() + 10**9) + LEEWAY, self._keys.edition, rights)

    def _remember(self, digest: str, verified: _Verified) -> None:
        if len(self._verified) >= _MOST_VERIFIED:
            now = time()
            self._verified = {one: known for one, known in self._verified.items() if known.expires > now}
            while len(self._verified) >= _MOST_VERIFIED:
                del self._verified[next(iter(self._verified))]
        self._verified[digest] = verified

    # Its user

    async def _person(self, verified: _Verified) -> Person | None:
        person = await self._directory.find(*verified.holder) if verified.holder else None
        if person is not None and (self._issuer.groups is None or _has(person.user, verified.rights)):
            return person
        user = await self._user(verified)
        if user is None:
            return None
        verified.holder = (user.workspace, user.id)
        self._directory.forget(*verified.holder)  # it may be remembered as nobody's, or with other rights
        return await self._directory.find(*verified.holder)

    async def _user(self, verified: _Verified) -> User | None:
        """Made at the first time, and with the rights that the token's groups give."""
        external = f"{self._issuer.url}|{verified.claims['sub']}"
        user = await self._rows.find_external(external)
        if self._issuer.groups is not None and verified.rights is None:
            if user is not None:
                await self._decided(user, Rights(), verified)  # their keys and sessions get nothing, too
            raise self._issuer.groups.refused(verified.claims)
        workspace = await self._workspace(verified)
        if user is None:
            user = await self._welcome(workspace, external, verified)
        elif (email := _email(verified.claims)) and email != user.email:
            user = replace(user, email=email)
            with suppress(Outdated):  # the next token tells it again
                await self._rows.put_user(user)
        if user.workspace != workspace.id:
            raise Denied(
                "this user belongs to another workspace than the token names",
                hint="ask who runs Dragoman to remove the user there first",
            )
        return user if verified.rights is None else await self._decided(user, verified.rights, verified)

    async def _decided(self, user: User, rights: Rights, verified: _Verified) -> User | None:
        """The user as the token's groups want them; None where a later token has decided otherwise."""
        while not _has(user, rights):
            if user.groups_read_at is not None and verified.made_at < user.groups_read_at:
                return None
            decided = _with(user, rights, verified)
            try:
                await self._rows.put_user(decided)
            except Outdated:
                newest = await self._rows.find_user(user.workspace, user.id)
                if newest is None:
                    return None
                user = newest
            else:
                self._directory.forget(user.workspace, user.id)
                await self._on_changed(user, decided)
                return decided
        return user

    async def _workspace(self, verified: _Verified) -> Workspace:
        name: Any = self._issuer.workspace
        if verified.rights is not None and verified.rights.workspace is not None:
            name = verified.rights.workspace
        elif self._issuer.workspace_claim is not None:
            name = verified.claims.get(self._issuer.workspace_claim)
        if isinstance(name, str) and name:
            if found := await self._rows.find_workspace(name):
                return found
            called = [one for one in await self._rows.workspaces() if one.name == name]
            if len(called) == 1:
                return called[0]
        raise Denied(
            "the token is good, but the workspace that it is for does not exist here",
            hint="ask who runs Dragoman: dragoman workspaces add NAME",
        )

    async def _welcome(self, workspace: Workspace, external: str, verified: _Verified) -> User:
        for name in _names(verified.claims, external):
            email = _email(verified.claims)
            user = User(
                id=f"usr_{token_hex(8)}", workspace=workspace.id, name=name, external=external, email=email
            )
            if verified.rights is not None:
                user = _with(user, verified.rights, verified)
            try:
                await self._rows.put_user(user)
            except Conflict:
                # The name is another's; or the same person came twice at once, and the other was first.
                if known := await self._rows.find_external(external):
                    return known
                continue
            await self._on_changed(None, user)
            return user
        raise Conflict("no free name was found for this user", hint="ask an admin to rename the other one")


def _with(user: User, rights: Rights, verified: _Verified) -> User:
    return replace(user, role=rights.role, capabilities=rights.capabilities, groups_read_at=verified.made_at)


def _has(user: User, rights: Rights | None) -> bool:
    return rights is not None and (user.role, user.capabilities) == (rights.role, rights.capabilities)


def _email(claims: dict[str, Any]) -> str | None:
    """What the issuer vouches for."""
    given = claims.get("email")
    if not isinstance(given, str) or claims.get("email_verified") is False:
        return None
    return given if _EMAIL.fullmatch(given) else None


def _names(claims: dict[str, Any], external: str) -> list[str]:
    """What people may know the user by, the last of them free for sure."""
    given = [claims.get(claim) for claim in ("preferred_username", "email", "sub")]
    cleaned = [_UNPRINTABLE.sub("", one).strip()[:_LONGEST_NAME] for one in given if isinstance(one, str)]
    mark = sha256(external.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    base = next((one for one in cleaned if one), "user")
    return [*([base] if base != "user" else []), f"{base}-{mark}"]
