"""Workspaces, users, their keys and preferences: frozen values, and the rule by which limits narrow.

Knows no store and no door. Ids are random; names are for people. `revision` is how often a record had been
written when it was read: 0 for a new one.
"""

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from dragoman.connector import LIMITS, Policy
from dragoman.hook_rule import HookRules
from dragoman.scope import Capability
from dragoman.setting import Setting

UserRole = Literal["member", "admin"]
KeyScope = Literal["read", "call", "manage", "approve", "admin"]
KEY_SCOPES: tuple[KeyScope, ...] = ("read", "call", "manage", "approve", "admin")
KeyWay = Literal["direct", "agent", "mcp"]
_MOST = 2**53
_Whole = Annotated[int, Field(ge=0, le=_MOST)]
_Money = Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)]


RETENTION = "Retention"
_Days = Annotated[int, Field(ge=1, le=36_500)]
_Capabilities = Annotated[frozenset[Capability], Field(max_length=1000)]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """What may be used in a time: by a user, or through one of their keys or clients. None is no limit.

    Money is in dollars.
    """

    calls_per_minute: Annotated[
        _Whole | None,
        Setting(
            "How many tools may be called in a minute; more are refused.", LIMITS, label="Calls a minute"
        ),
    ] = None
    calls_per_hour: Annotated[
        _Whole | None, Setting("The same for an hour.", LIMITS, label="Calls an hour")
    ] = None
    tokens_per_day: Annotated[
        _Whole | None,
        Setting("What models may read and write in a day.", LIMITS, label="Tokens a day"),
    ] = None
    cost_per_day: Annotated[
        _Money | None,
        Setting("What models and tools with a price may cost in a day.", LIMITS, label="Dollars a day"),
    ] = None
    max_concurrency: Annotated[
        _Whole | None,
        Setting("How many calls may be under way at once; more are refused.", LIMITS, label="Calls at once"),
    ] = None

    def is_within(self, other: "CallLimits") -> bool:
        """Whether it allows nothing that the other does not."""
        return all(
            limit is None or (own is not None and own <= limit)
            for item in fields(CallLimits)
            for own, limit in [(getattr(self, item.name), getattr(other, item.name))]
        )


NO_LIMITS = CallLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLimits(CallLimits):
    """What one user may use, by whichever way they come."""

    max_connectors_per_thread: Annotated[
        _Whole | None,
        Setting("How many connectors one of a user's chats may have.", LIMITS, label="Connectors per chat"),
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


def _limits(self: Any) -> UserLimits:
    return self.limits


# What `limits` were called before; for one version.
_OLD_NAME = property(_limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The tenant. `limits` hold for each of its users; `approval` for every tool that says nothing nearer."""

    id: str
    name: str
    approval: Annotated[
        Policy,
        Setting(
            "When a person must say yes, for every tool that says nothing nearer.",
            "Rights",
            "admin",
            label="When agents ask for approval",
            words={
                "never": "never ask",
                "default": "ask where something is changed or destroyed",
                "always": "ask before every call",
            },
        ),
    ] = "default"
    recipes: Annotated[
        bool,
        Setting(
            "Whether runs that went well can be kept as recipes, which later runs get as an example.",
            "Agents",
            "admin",
            label="Recipes",
        ),
    ] = False
    hooks: Annotated[
        HookRules,
        Setting(
            "What looks at every call, result and list of its users, after the app's hooks.",
            "Rights",
            "admin",
            label="Hooks",
            flag="--hook",
            rows=2,
            example="secrets mask",
        ),
    ] = ()
    model: Annotated[
        str | None,
        Setting(
            "Which language model answers where neither message nor agent names one; else the best.",
            "Agents",
            "admin",
            label="Model",
            example="openai:gpt-5",
        ),
    ] = None
    keep_chats_days: Annotated[
        _Days | None,
        Setting(
            "Days after the last message when a chat that is not pinned is deleted; unset: never.",
            RETENTION,
            "admin",
            label="Chats and runs",
            example="90",
        ),
    ] = None
    keep_calls_days: Annotated[
        _Days | None,
        Setting(
            "Days that records of its calls are kept, if less than in the whole installation.",
            RETENTION,
            "admin",
            label="Records of calls",
        ),
    ] = None
    keep_results_days: Annotated[
        _Days | None,
        Setting(
            "Days that large results and files are kept, if less than in the whole installation.",
            RETENTION,
            "admin",
            label="Large results and files",
        ),
    ] = None
    limits: Annotated[UserLimits, Setting("Limits of each of its users.", LIMITS, "admin")] = UserLimits()
    created_at: datetime = field(default_factory=_now)
    revision: int = field(default=0, compare=False, repr=False)

    bounds = _OLD_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """What a user chooses: the connectors of a new thread (None: all), and limits of their own."""

    connectors: Annotated[
        Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=1000)] | None,
        Setting("The connectors of a new thread; unset: all.", "New threads", "owner", flag="--connector"),
    ] = None
    auto_load: Annotated[
        bool, Setting("Whether a new thread starts with them, or with none.", "New threads", "owner")
    ] = True
    time_zone: Annotated[
        Annotated[str, Field(max_length=100)] | None,
        Setting(
            "Where today begins for one's agents; unset: where the browser is, else where Dragoman runs.",
            "Agents",
            "owner",
            example="Europe/Berlin",
        ),
    ] = None
    limits: Annotated[UserLimits, Setting("Limits of one's own.", LIMITS, "owner")] = UserLimits()

    bounds = _OLD_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person or a service. `external` is who they are to an outside issuer: issuer and subject.
    `email` is what that issuer says, and told to their agents. `groups_read_at` is when the token was made
    whose groups decided about role and capabilities last.

    `capabilities` and `limits` are set by admins; an admin's capabilities restrict nothing.
    """

    id: str
    workspace: str
    name: str
    role: Annotated[UserRole, Setting("What they may manage.", "Rights", "admin")] = "member"
    capabilities: Annotated[
        _Capabilities,
        Setting(
            "What they may use: mcp_integration (all), mcp_<connector> or a tool's name.",
            "Rights",
            "admin",
            flag="--capability",
        ),
    ] = frozenset({"mcp_integration"})
    limits: Annotated[UserLimits, Setting("What they may use.", LIMITS, "admin")] = UserLimits()
    preferences: Annotated[Preferences, Setting("What they chose.", who="owner", derived=True)] = (
        Preferences()
    )
    is_active: Annotated[
        bool,
        Setting("Whether they are let in.", "Rights", "admin", label="Let in", flag="--active/--inactive"),
    ] = True
    external: str | None = None
    groups_read_at: datetime | None = None
    email: str | None = None
    created_at: datetime = field(default_factory=_now)
    revision: int = field(default=0, compare=False, repr=False)

    bounds = _OLD_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedClient:
    """An OAuth client that a person has allowed to act for them. `id` is its client id; `host` is from where
    it says who it is, empty where it registered itself; `redirect` is where the browser was sent back to.

    What it is given opens `audience` and no other address.
    """

    id: str
    audience: str
    redirect: str
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A way in for one user. Only the hash of the key is known; `hint` are its first letters.

    `capabilities` None means all that the user has. By way of `agent` it binds approvals. With a `client` it
    is what a person allowed that client: access tokens name it, and `hash` is that of the refresh token.
    """

    id: str
    workspace: str
    user: str
    name: str
    hash: str = field(repr=False)
    hint: str
    scopes: Annotated[
        frozenset[KeyScope],
        Field(min_length=1),
        Setting(
            "What it may do.",
            "Rights",
            "owner",
            label="It may",
            flag="--scope",
            words={
                "read": "look at everything",
                "call": "call tools, write messages",
                "manage": "change connectors, agents, keys",
                "approve": "answer approvals and questions",
                "admin": "users, workspaces, audit",
            },
        ),
    ] = frozenset({"read", "call"})
    capabilities: Annotated[
        _Capabilities | None,
        Setting(
            "What it may use of what its user may; unset: all of it.",
            "Rights",
            "owner",
            label="Only these capabilities",
            flag="--capability",
            example="all that its user has",
        ),
    ] = None
    way: Annotated[
        KeyWay,
        Setting(
            "Who acts with it; with agent and mcp it is a model, and approvals bind it.",
            "Rights",
            "owner",
            label="Used by",
            words={
                "direct": "a person or a program",
                "agent": "an agent: it asks first",
                "mcp": "an MCP client: it asks first",
            },
        ),
    ] = "direct"
    created_at: datetime = field(default_factory=_now)
    expires_at: Annotated[
        datetime | None,
        Setting(
            "When it ends; unset: it does not.",
            "Rights",
            "owner",
            label="Expires",
            flag="--expires",
            metavar="TIME",
            example="does not expire",
        ),
    ] = None
    limits: Annotated[CallLimits, Setting("What may be used through it.", LIMITS, "owner")] = NO_LIMITS
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    client: ConnectedClient | None = None
    revision: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A conversation of one user. `connectors` None: the user's default set, whatever it is by then.

    Until `remove_at` it is in no list, and can be restored; from then on it is gone.
    """

    id: str
    workspace: str
    user: str
    title: str = ""
    connectors: tuple[str, ...] | None = None
    pinned: bool = False
    remove_at: datetime | None = None
    created_at: datetime = field(default_factory=_now)
    updated_at: datetime = field(default_factory=_now)
    revision: int = field(default=0, compare=False, repr=False)

    @property
    def position(self) -> "ThreadPosition":
        return ThreadPosition(self.pinned, self.updated_at, self.id, self.title)


ThreadSort = Literal["latest", "title"]
"""How threads are listed, pinned ones first in any case: by the last change or message, or by title."""


class ThreadPosition(NamedTuple):
    """Where a thread stands in its user's list: pinned ones first, then the last changed; or by title."""

    pinned: bool
    updated_at: datetime
    id: str
    title: str = ""


def find_zone(name: str) -> ZoneInfo | None:
    """The zone of this name, where this machine knows it."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):  # it is looked up as a file
        return None
