"""Workspaces, users, their keys and preferences: frozen values, and the rule by which limits narrow.

Knows no store and no door. Ids are random; names are for people.
"""

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Literal

from dragoman.connector import Policy
from dragoman.scope import Way

UserRole = Literal["member", "admin"]
KeyScope = Literal["read", "call", "manage", "approve", "admin"]
KEY_SCOPES: tuple[KeyScope, ...] = ("read", "call", "manage", "approve", "admin")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one user may use. None is no bound. Money is in dollars."""

    calls_per_hour: int | None = None
    tokens_per_day: int | None = None
    cost_per_day: float | None = None
    calls_per_minute: int | None = None
    max_concurrency: int | None = None
    max_connectors_per_thread: int | None = None

    def narrowed_by(self, nearer: "Bounds") -> "Bounds":
        """The smaller of each: a nearer tier can take away, never give."""
        both = {item.name: (getattr(self, item.name), getattr(nearer, item.name)) for item in fields(self)}
        return Bounds(
            **{
                name: min((one for one in pair if one is not None), default=None)
                for name, pair in both.items()
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The tenant. `bounds` hold for each of its users; `approval` for every tool that says nothing nearer."""

    id: str
    name: str
    approval: Policy = "default"
    bounds: Bounds = Bounds()
    created_at: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """What a user chooses: the connectors of a new thread (None: all), and bounds of their own."""

    connectors: tuple[str, ...] | None = None
    auto_load: bool = True
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person or a service. `external` is who they are to an outside issuer: issuer and subject.

    `capabilities` and `bounds` are set by admins; an admin's capabilities restrict nothing.
    """

    id: str
    workspace: str
    name: str
    role: UserRole = "member"
    capabilities: frozenset[str] = frozenset({"mcp_integration"})
    bounds: Bounds = Bounds()
    preferences: Preferences = Preferences()
    is_active: bool = True
    external: str | None = None
    created_at: datetime = field(default_factory=_now)


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
    scopes: frozenset[KeyScope] = frozenset({"read", "call"})
    capabilities: frozenset[str] | None = None
    way: Way = "direct"
    created_at: datetime = field(default_factory=_now)
    expires_at: datetime | None = None
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
