"""Workspaces, users and keys as the REST door is asked for them and tells of them. No hash ever leaves."""

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool
from typing_extensions import TypedDict

from dragoman.connector import Policy
from dragoman.hub.people import Myself
from dragoman.people import ApiKey, Bounds, KeyScope, User, UserRole, Workspace
from dragoman.scope import ANY_TOOL, Role, Way

_MOST = 2**53
Name = Annotated[str, Field(min_length=1, max_length=100)]
Named = Annotated[str, Field(min_length=1, max_length=200)]
Whole = Annotated[int, Field(ge=0, le=_MOST)]
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=1000)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class UserLimitsRequest(_Request):
    """What is left out stays as it is; null takes a bound away. Money is in dollars."""

    calls_per_hour: Whole | None = None
    tokens_per_day: Whole | None = None
    cost_per_day: Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)] | None = None
    calls_per_minute: Whole | None = None
    max_concurrency: Whole | None = None
    max_connectors_per_thread: Whole | None = None

    def over(self, before: Bounds) -> Bounds:
        return replace(before, **{name: getattr(self, name) for name in self.model_fields_set})


class NewWorkspace(_Request):
    name: Name = Field(examples=["acme"])


class WorkspaceChanges(_Request):
    name: Name | None = Field(default=None, description="only the operator renames")
    approval: Policy | None = None
    bounds: UserLimitsRequest | None = Field(default=None, description="for each of its users")


class NewUser(_Request):
    name: Name = Field(examples=["ada"])
    role: UserRole = "member"
    capabilities: Words = Field(
        default_factory=lambda: [ANY_TOOL], description="mcp_integration, mcp_<connector> or a tool's name"
    )
    bounds: UserLimitsRequest = Field(default_factory=UserLimitsRequest)
    workspace: Named | None = Field(default=None, description="id or name; for the operator")


class UserChanges(_Request):
    role: UserRole | None = None
    capabilities: Words | None = None
    bounds: UserLimitsRequest | None = None
    is_active: StrictBool | None = Field(default=None, description="false keeps them out")
    workspace: Named | None = Field(default=None, description="id or name; for the operator")


class NewKey(_Request):
    """Without `user` the key is the caller's own. It never has more than its user, or than who makes it."""

    name: Name = Field(examples=["laptop"])
    user: Named | None = Field(default=None, description="id or name; for admins")
    scopes: Annotated[list[KeyScope], Field(min_length=1, max_length=10)] = Field(
        default_factory=lambda: list[KeyScope](("read", "call"))
    )
    capabilities: Words | None = Field(default=None, description="null: all that the user has")
    expires_in: Annotated[float, Field(gt=0, le=3660 * 86400, allow_inf_nan=False)] | None = Field(
        default=None, description="seconds; null: it does not expire"
    )
    way: Literal["direct", "agent", "mcp"] = Field(
        default="direct", description="agent and mcp act for a model: approvals bind them"
    )
    workspace: Named | None = Field(default=None, description="id or name; for the operator")


class UserLimitsShape(TypedDict):
    """What a user may use. Null is no bound."""

    calls_per_hour: int | None
    tokens_per_day: int | None
    cost_per_day: float | None
    calls_per_minute: int | None
    max_concurrency: int | None
    max_connectors_per_thread: int | None


class WorkspaceShape(TypedDict):
    id: str
    name: str
    approval: Policy
    bounds: UserLimitsShape
    created_at: str


class WorkspacesShape(TypedDict):
    workspaces: list[WorkspaceShape]


class UserShape(TypedDict):
    """`external` is who they are to an outside issuer."""

    id: str
    workspace: str
    name: str
    role: UserRole
    capabilities: list[str]
    bounds: UserLimitsShape
    is_active: bool
    external: str | None
    created_at: str


class UsersShape(TypedDict):
    users: list[UserShape]


class KeyShape(TypedDict):
    """`hint` are the first letters of the key, by which a person knows it again."""

    id: str
    workspace: str
    user: str
    name: str
    hint: str
    scopes: list[str]
    capabilities: list[str] | None
    way: Way
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None


class NewKeyShape(KeyShape):
    """`key` is told here and never again."""

    key: str


class KeysShape(TypedDict):
    keys: list[KeyShape]


class MembershipShape(TypedDict):
    id: str
    name: str


class MeShape(TypedDict):
    """Who asks. `grants` are sets of capabilities that must all admit a tool; `bounds` those in force."""

    workspace: MembershipShape
    user: MembershipShape
    role: Role
    way: Way
    scopes: list[str]
    grants: list[list[str]]
    bounds: UserLimitsShape


def workspace_view(workspace: Workspace) -> WorkspaceShape:
    return {
        "id": workspace.id,
        "name": workspace.name,
        "approval": workspace.approval,
        "bounds": bounds_view(workspace.bounds),
        "created_at": workspace.created_at.isoformat(),
    }


def user_view(user: User) -> UserShape:
    return {
        "id": user.id,
        "workspace": user.workspace,
        "name": user.name,
        "role": user.role,
        "capabilities": sorted(user.capabilities),
        "bounds": bounds_view(user.bounds),
        "is_active": user.is_active,
        "external": user.external,
        "created_at": user.created_at.isoformat(),
    }


def key_view(key: ApiKey) -> KeyShape:
    return {
        "id": key.id,
        "workspace": key.workspace,
        "user": key.user,
        "name": key.name,
        "hint": key.hint,
        "scopes": sorted(key.scopes),
        "capabilities": None if key.capabilities is None else sorted(key.capabilities),
        "way": key.way,
        "created_at": key.created_at.isoformat(),
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
        "last_used_at": key.last_used_at.isoformat() if key.last_used_at else None,
    }


def me_view(myself: Myself, scopes: frozenset[KeyScope]) -> MeShape:
    caller, person = myself.caller, myself.person
    return {
        "workspace": {"id": person.workspace.id, "name": person.workspace.name},
        "user": {"id": person.user.id, "name": person.user.name},
        "role": caller.role,
        "way": caller.way,
        "scopes": sorted(scopes),
        "grants": [sorted(grant) for grant in caller.grants],
        "bounds": bounds_view(person.bounds),
    }


def bounds_view(bounds: Bounds) -> UserLimitsShape:
    facts: Any = asdict(bounds)
    return facts
