"""Who was let in: the caller that a credential stands for, and what that credential may be used for. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from dragoman.identity.directory import Person
from dragoman.people import KEY_SCOPES, ApiKey, KeyScope
from dragoman.scope import Caller

ALL_SCOPES: frozenset[KeyScope] = frozenset(KEY_SCOPES)


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    """`audience` is the one address that it opens; None: all that its scopes do."""

    caller: Caller
    scopes: frozenset[KeyScope]
    audience: str | None = None


def admitted(person: Person, key: ApiKey | None = None) -> AuthenticatedCaller:
    """A key gives no more than its user has: without the scope `admin` even an admin's acts as a member."""
    user = person.user
    scopes = ALL_SCOPES if key is None else key.scopes
    grants: Iterable[frozenset[str]] = () if user.role == "admin" else (user.capabilities,)
    if key is not None and key.capabilities is not None:
        grants = (*grants, key.capabilities)
    client = None if key is None else key.client
    caller = Caller(
        workspace=user.workspace,
        user=user.id,
        # So that approvals, records and the trail say which client it was.
        agent=None if key is None or client is None else f"{key.name} (client)",
        way="direct" if key is None else key.way,
        role=user.role if "admin" in scopes else "member",
        grants=tuple(grants),
        until=None if key is None else key.expires_at,
        manages="manage" in scopes,
        key=None if key is None else key.id,
    )
    return AuthenticatedCaller(caller, scopes, None if client is None else client.audience)
