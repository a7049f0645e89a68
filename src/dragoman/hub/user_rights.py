"""Who may manage whom, and with how much. Pure rules over callers, users and keys; no store, no door."""

import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from functools import reduce, wraps
from math import isfinite
from typing import ParamSpec, TypeVar, get_args

from dragoman.errors import Conflict, Denied, InvalidArguments, InvalidName, NotFound
from dragoman.people import KEY_SCOPES, KeyScope, User, UserLimits, UserRole
from dragoman.scope import ANY_EXTRA, ANY_TOOL, LOCAL_USER, LOCAL_WORKSPACE, Caller, Way

Given = ParamSpec("Given")
Result = TypeVar("Result")
# What programs that act for a model may be given: no model approves, or changes what needs approval.
MODEL_SCOPES: frozenset[KeyScope] = frozenset({"read", "call"})
KEY_WAYS: tuple[Way, ...] = ("direct", "agent", "mcp")
_LONGEST_NAME = 100
_LONGEST_WORD = 200
_MOST_WORDS = 1000
_LARGEST = 2**53
_THE_SCOPES = f"the scopes are {', '.join(KEY_SCOPES)}; 'admin' is for admins"


def check_operator(caller: Caller) -> None:
    if caller.role != "operator":
        raise Denied(
            "only who runs this installation may do that", hint="it needs the token of the service's home"
        )


def check_admin(caller: Caller) -> None:
    if not caller.is_admin:
        raise Denied(
            "only an admin of the workspace may do that",
            hint="ask an admin; an admin's API key needs the scope 'admin'",
        )


def no_workspace(name: str) -> NotFound:
    return NotFound(f"there is no workspace {name[:80]!r}", hint="dragoman whoami shows yours")


def no_user(name: str) -> NotFound:
    return NotFound(f"there is no user {name[:80]!r}", hint="dragoman users list shows those there are")


def checked_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise InvalidName(
            "a name has 1 to 100 printable characters", hint="letters, digits, spaces and signs will do"
        )
    return name


def checked_role(role: str) -> UserRole:
    for known in get_args(UserRole):
        if role == known:
            return known
    raise InvalidArguments(f"there is no role {role[:80]!r}", hint="member or admin")


def checked_words(capabilities: Collection[str]) -> frozenset[str]:
    words = frozenset(capabilities)
    if len(words) > _MOST_WORDS or not all(
        0 < len(word) <= _LONGEST_WORD and word.isprintable() and not word.isspace() for word in words
    ):
        raise InvalidArguments(
            f"capabilities are at most {_MOST_WORDS:,} words of 1 to {_LONGEST_WORD} characters",
            hint="mcp_integration, mcp_<connector> or the name of a tool",
        )
    return words


def takes_bounds(method: Callable[Given, Result]) -> Callable[Given, Result]:
    """For one version the keyword `limits` may also be given as `bounds`, its old name."""

    @wraps(method)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        if "bounds" in kwargs:
            warnings.warn("bounds= is now limits=", DeprecationWarning, stacklevel=2)
            kwargs.setdefault("limits", kwargs.pop("bounds"))
        return method(*args, **kwargs)

    return called


def checked_limits(limits: UserLimits) -> UserLimits:
    for item in fields(limits):
        value = getattr(limits, item.name)
        if value is not None and not (isfinite(value) and 0 <= value <= _LARGEST):
            raise InvalidArguments(
                f"{item.name} must be a number of 0 or more", hint="leave it out for no limit"
            )
    return limits


def checked_scopes(
    scopes: Iterable[str], user: User, way: Way, within: frozenset[KeyScope]
) -> frozenset[KeyScope]:
    """The scopes of a new key: none that the credential that makes it or its way has not.

    `admin` says nothing for a member and is left out, so that a later promotion makes no old key greater.
    """
    wanted = frozenset(scopes)
    known: frozenset[KeyScope] = frozenset(scope for scope in KEY_SCOPES if scope in wanted)
    if unknown := wanted - known:
        raise InvalidArguments(f"there is no scope {min(unknown)[:80]!r}", hint=_THE_SCOPES)
    if beyond := known - within:
        raise Denied(
            f"the key that asks has not the scope {min(beyond)!r} itself", hint="a key makes no greater key"
        )
    if way != "direct" and (beyond := known - MODEL_SCOPES):
        raise Denied(
            f"a key for way {way!r} cannot have the scope {min(beyond)!r}: it acts for a model",
            hint="read and call are what it needs",
        )
    if user.role != "admin":
        known -= {"admin"}
    if not known:
        raise InvalidArguments("a key needs a scope that its user can have", hint=_THE_SCOPES)
    return known


def checked_way(way: Way, caller: Caller) -> Way:
    if way not in KEY_WAYS:
        raise InvalidArguments(f"there is no way {way[:80]!r} in", hint=", ".join(KEY_WAYS))
    if caller.way != "direct" and way != caller.way:
        raise Denied(
            f"a key for way {caller.way!r} makes none for way {way!r}", hint="a person makes such a key"
        )
    return way


def key_capabilities(
    wanted: Collection[str] | None, caller: Caller, own: frozenset[str]
) -> frozenset[str] | None:
    """What a new key is restricted to. The user's own capabilities hold at each use, whatever it says;
    what restricts the caller beyond them (the key that asks, its agent) must hold for the new key as well.
    """
    beyond = [grant for grant in caller.grants if grant != own]
    if wanted is None:
        return reduce(_meet, beyond) if beyond else None
    words = checked_words(wanted)
    for grant in beyond:
        if missing := [word for word in words if not _admits(grant, word)]:
            raise Denied(
                f"the key that asks may not use {min(missing)[:80]!r} itself",
                hint="a key makes no greater key",
            )
    return words


def _meet(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in one if _admits(other, word)) | frozenset(
        word for word in other if _admits(one, word)
    )


def _admits(grant: frozenset[str], word: str) -> bool:
    """Whether the grant gives all that the word alone would give."""
    if word in grant:
        return True
    if not word.startswith("mcp_"):
        return ANY_EXTRA in grant and ANY_TOOL in grant
    if ANY_TOOL in grant:
        return True
    connector = "_".join(word.split("_", 2)[:2])  # a slug holds no underscore
    return word != ANY_TOOL and connector in grant


def check_stays_led(user: User, users: Iterable[User], caller: Caller) -> None:
    """A workspace keeps an admin, unless the operator takes the last one away."""
    others = [one for one in users if one.role == "admin" and one.is_active and one.id != user.id]
    if user.role == "admin" and user.is_active and not others and caller.role != "operator":
        raise Conflict(
            f"{user.name!r} is the last admin of the workspace",
            hint="make somebody else an admin first: dragoman users update NAME --role admin",
        )


def check_not_local(workspace: str, user: str | None = None) -> None:
    if workspace == LOCAL_WORKSPACE and user in (None, LOCAL_USER):
        what = "workspace" if user is None else "owner"
        raise Conflict(f"the local {what} is part of the installation", hint="it cannot be removed")
