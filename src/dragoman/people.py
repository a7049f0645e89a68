"""Workspaces, users, their keys and preferences: frozen values, and the rule by which limits narrow.

Knows no store and no door. Ids are random; names are for people.
"""

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, Literal

from dragoman.connector import LIMITS, Policy
from dragoman.scope import Way
from dragoman.setting import Setting

UserRole = Literal["member", "admin"]
KeyScope = Literal["read", "call", "manage", "approve", "admin"]
KEY_SCOPES: tuple[KeyScope, ...] = ("read", "call", "manage", "approve", "admin")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLimits:
    """What one user may use. None is no limit. Money is in dollars."""

    calls_per_minute: Annotated[
        int | None, Setting("Calls in a minute.", LIMITS, "narrow", label="calls a minute")
    ] = None
    calls_per_hour: Annotated[
        int | None, Setting("Calls in an hour.", LIMITS, "narrow", label="calls an hour")
    ] = None
    tokens_per_day: Annotated[
        int | None, Setting("Tokens of models in a day.", LIMITS, "narrow", label="tokens a day")
    ] = None
    cost_per_day: Annotated[
        float | None, Setting("Dollars in a day.", LIMITS, "narrow", label="dollars a day")
    ] = None
    max_concurrency: Annotated[
        int | None, Setting("Calls at once.", LIMITS, "narrow", label="calls at once")
    ] = None
    max_connectors_per_thread: Annotated[
        int | None, Setting("Connectors in one thread.", LIMITS, "narrow", label="connectors in a thread")
    ] = None

    def narrowed_by(self, nearer: "UserLimits") -> "UserLimits":
        """The smaller of each: a nearer tier can take away, never give."""
        both = {item.name: (getattr(self, item.name), getattr(nearer, item.name)) for item in fields(self)}
        return UserLimits(
            **{
                name: min((one for one in pair if one is not None), default=None)
                for name, pair in both.items()
            }
        )


# What `limits` were called before; for one version.
_OLD_NAME = property(attrgetter("limits"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The tenant. `limits` hold for each of its users; `approval` for every tool that says nothing nearer."""

    id: str
    name: str
    approval: Annotated[
        Policy,
        Setting("When a person must say yes, for every tool that says nothing nearer.", "Rights", "owner"),
    ] = "default"
    limits: UserLimits = UserLimits()
    created_at: datetime = field(default_factory=_now)

    bounds = _OLD_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """What a user chooses: the connectors of a new thread (None: all), and limits of their own."""

    connectors: Annotated[
        tuple[str, ...] | None, Setting("The connectors of a new thread; none: all.", "New threads", "owner")
    ] = None
    auto_load: Annotated[
        bool, Setting("Whether a new thread starts with them, or with none.", "New threads", "owner")
    ] = True
    limits: UserLimits = UserLimits()

    bounds = _OLD_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person or a service. `external` is who they are to an outside issuer: issuer and subject.

    `capabilities` and `limits` are set by admins; an admin's capabilities restrict nothing.
    """

    id: str
    workspace: str
    name: str
    role: Annotated[UserRole, Setting("What they may manage.", "Rights", "owner")] = "member"
    capabilities: Annotated[
        frozenset[str],
        Setting(
            "What they may use: mcp_integration (all), mcp_<connector> or a tool's name.",
            "Rights",
            "owner",
            flag="--capability",
        ),
    ] = frozenset({"mcp_integration"})
    limits: UserLimits = UserLimits()
    preferences: Preferences = Preferences()
    is_active: Annotated[
        bool, Setting("Whether they are let in.", "Rights", "owner", flag="--active/--inactive")
    ] = True
    external: str | None = None
    created_at: datetime = field(default_factory=_now)

    bounds = _OLD_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A way in for one user. Only the hash of the key is known; `hint` are its first letters.

    `capabilities` None means all that the user has. By way of `agent` it binds approvals.
    """

    id: str
    workspace: str
    user: str
    name: str
    hash: str = field(repr=False)
    hint: str
    scopes: Annotated[frozenset[KeyScope], Setting("What it may do.", "Rights", "owner", flag="--scope")] = (
        frozenset({"read", "call"})
    )
    capabilities: Annotated[
        frozenset[str] | None,
        Setting(
            "What it may use of what its user may; none: all of it.", "Rights", "owner", flag="--capability"
        ),
    ] = None
    way: Annotated[
        Way,
        Setting(
            "Who acts with it; with agent and mcp it is a model, and approvals bind it.", "Rights", "owner"
        ),
    ] = "direct"
    created_at: datetime = field(default_factory=_now)
    expires_at: Annotated[
        datetime | None, Setting("When it ends; none: it does not.", "Rights", "owner", flag="--expires")
    ] = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A conversation of one user. `connectors` None: the user's default set, whatever it is by then."""

    id: str
    workspace: str
    user: str
    title: str = ""
    connectors: tuple[str, ...] | None = None
    created_at: datetime = field(default_factory=_now)
    updated_at: datetime = field(default_factory=_now)
