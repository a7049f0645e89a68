"""Who may manage whom, and with how much. Pure rules over callers, users and keys; no store, no door."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce, wraps
from typing import ParamSpec, TypeVar

from dragoman.errors import Conflict, Denied, InvalidArguments, InvalidName, NotFound
from dragoman.people import KEY_SCOPES, NO_LIMITS, ApiKey, KeyScope, User
from dragoman.scope import ANY_EXTRA, ANY_TOOL, BUNDLE, LOCAL_USER, LOCAL_WORKSPACE, READ_ONLY, Caller

Given = ParamSpec("Given")
Result = TypeVar("Result")
# What programs that act for a model may be given: no model approves, or changes what needs approval.
MODEL_SCOPES: frozenset[KeyScope] = frozenset({"read", "call"})
LONGEST_LIFE = timedelta(days=3660)
_LONGEST_NAME = 100
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


def takes_bounds(method: Callable[Given, Result]) -> Callable[Given, Result]:
    """For one version the keyword `limits` may also be given as `bounds`, its old name."""

    @wraps(method)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        if "bounds" in kwargs:
            warnings.warn("bounds= is now limits=", DeprecationWarning, stacklevel=2)
            kwargs.setdefault("limits", kwargs.pop("bounds"))
        return method(*args, **kwargs)

    return called


def granted(
    key: ApiKey,
    before: ApiKey | None,
    user: User,
    caller: Caller,
    own: frozenset[str],
    within: frozenset[KeyScope],
    asking: ApiKey | None,
) -> ApiKey:
    """A new key, or one as it is changed: it has nothing that neither it had `before` nor the caller has.

    `own` are the capabilities of the caller's user, `within` the scopes of the credential that asks, and
    `asking` is that one where it is a key.
    """
    if before is None or not key.limits.is_within(before.limits):
        check_unlimited(asking)
    if before is None or key.way != before.way:
        _check_way(key.way, caller)
    return replace(
        key,
        scopes=_granted_scopes(key, before, user, within),
        capabilities=_granted_capabilities(key.capabilities, before, caller, own),
        expires_at=_granted_end(key.expires_at, before, caller),
    )


def check_unlimited(asking: ApiKey | None) -> None:
    """Through a key of its own a key with limits would have what they take away."""
    if asking is not None and asking.limits != NO_LIMITS:
        raise Denied("the key that asks has limits itself", hint="a key makes no greater key")


def _check_way(way: str, caller: Caller) -> None:
    if caller.way != "direct" and way != caller.way:
        raise Denied(
            f"a key for way {caller.way!r} makes none for way {way!r}", hint="a person makes such a key"
        )


def _granted_scopes(
    key: ApiKey, before: ApiKey | None, user: User, within: frozenset[KeyScope]
) -> frozenset[KeyScope]:
    """`admin` says nothing for a member and is left out: a later promotion makes no old key greater."""
    scopes, had = key.scopes, frozenset[KeyScope]() if before is None else before.scopes
    if beyond := scopes - had - within:
        raise Denied(
            f"the key that asks has not the scope {min(beyond)!r} itself", hint="a key makes no greater key"
        )
    if key.way != "direct" and (beyond := scopes - MODEL_SCOPES):
        raise Denied(
            f"a key for way {key.way!r} cannot have the scope {min(beyond)!r}: it acts for a model",
            hint="read and call are what it needs",
        )
    if user.role != "admin":
        scopes -= {"admin"}
    if not scopes:
        raise InvalidArguments("a key needs a scope that its user can have", hint=_THE_SCOPES)
    return scopes


def _granted_capabilities(
    wanted: frozenset[str] | None, before: ApiKey | None, caller: Caller, own: frozenset[str]
) -> frozenset[str] | None:
    """What a key is restricted to. The user's own capabilities hold at each use, whatever it says; what
    restricts the caller beyond them (the key that asks, its agent) must hold for this key as well.
    """
    beyond = [grant for grant in caller.grants if grant != own]
    if before is not None and _is_within(wanted, before.capabilities):
        return wanted
    if wanted is None:
        if before is not None and beyond:
            raise Denied("the key that asks is restricted itself", hint="a key makes no greater key")
        return reduce(_meet, beyond) if beyond else None
    if caller.is_read_only:
        wanted |= {READ_ONLY}
    for grant in beyond:
        if missing := [word for word in wanted if not _admits(grant, word)]:
            raise Denied(
                f"the key that asks may not use {min(missing)[:80]!r} itself",
                hint="a key makes no greater key",
            )
    return wanted


def narrowed_to(wanted: frozenset[str], caller: Caller, own: frozenset[str]) -> frozenset[str]:
    """What is left of it for somebody whom the caller lets act for them: what restricts the caller beyond
    `own`, the capabilities of their user, restricts it too.
    """
    return reduce(_meet, [grant for grant in caller.grants if grant != own], wanted)


def narrowed_end(end: datetime | None, caller: Caller) -> datetime | None:
    """No later than what the caller came with."""
    return min((one for one in (end, caller.until) if one is not None), default=None)


def _is_within(wanted: frozenset[str] | None, had: frozenset[str] | None) -> bool:
    if had is None:
        return True
    if wanted is None or (READ_ONLY in had and READ_ONLY not in wanted):
        return False
    return all(_admits(had, word) for word in wanted)


def _granted_end(end: datetime | None, before: ApiKey | None, caller: Caller) -> datetime | None:
    now = datetime.now(UTC)
    is_same = before is not None and end == before.expires_at
    if end is not None and not is_same and not now < end <= now + LONGEST_LIFE:
        raise InvalidArguments(
            f"a key lives for more than nothing and at most {LONGEST_LIFE.days:,} days",
            hint="leave it out for a key that does not expire",
        )
    if before is None and end is None:
        return caller.until
    is_no_longer = before is not None and _ends(end) <= _ends(before.expires_at)
    if not is_no_longer and _ends(end) > _ends(caller.until):
        raise Denied("the key that asks ends before that itself", hint="a key makes no greater key")
    return end


def _ends(end: datetime | None) -> datetime:
    return end or datetime.max.replace(tzinfo=UTC)


def _meet(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in one if _admits(other, word)) | frozenset(
        word for word in other if _admits(one, word)
    )


def _admits(grant: frozenset[str], word: str) -> bool:
    """Whether the grant gives all that the word alone would give."""
    if word in grant or word == READ_ONLY:  # which gives nothing: it takes away
        return True
    if word.startswith(BUNDLE):  # gives tools, and no other extra
        return ANY_TOOL in grant
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
