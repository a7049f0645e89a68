"""Who was let in: the caller that a credential stands for, and what that credential may be used for. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from dragoman.identity.directory import Person
from dragoman.people import KEY_SCOPES, ApiKey, KeyScope
from dragoman.scope import Caller

ALL_SCOPES: frozenset[KeyScope] = frozenset(KEY_SCOPES)


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    caller: Caller
    scopes: frozenset[KeyScope]


def admitted(person: Person, key: ApiKey | None = None) -> AuthenticatedCaller:
    """A key gives no more than its user has: without the scope `admin` even an admin's acts as a member."""
    user = person.user
    scopes = ALL_SCOPES if key is None else key.scopes
    grants: Iterable[frozenset[str]] = () if user.role == "admin" else (user.capabilities,)
    if key is not None and key.capabilities is not None:
        grants = (*grants, key.capabilities)
    caller = Caller(
        workspace=user.workspace,
        user=user.id,
        way="direct" if key is None else key.way,
        role=user.role if "admin" in scopes else "member",
        grants=tuple(grants),
        until=None if key is None else key.expires_at,
        manages="manage" in scopes,
    )
    return AuthenticatedCaller(caller, scopes)
