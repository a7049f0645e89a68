"""Workspaces, users and keys as the REST door is asked for them and tells of them. No hash ever leaves."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictBool

from dragoman.connector import Policy
from dragoman.hub.people import Myself
from dragoman.people import ApiKey, KeyScope, User, UserLimits, UserRole, Workspace
from dragoman.scope import ANY_TOOL, Role, Way
from dragoman.web.shape import Shape, Sorted, SortedOrNone

_MOST = 2**53
Name = Annotated[str, Field(min_length=1, max_length=100)]
Named = Annotated[str, Field(min_length=1, max_length=200)]
Whole = Annotated[int, Field(ge=0, le=_MOST)]
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=1000)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


# For one version they are also called bounds.
LIMITS_OR_BOUNDS = AliasChoices("limits", "bounds")


class UserLimitsRequest(_Request):
    """What is left out stays as it is; null takes a limit away. Money is in dollars."""

    calls_per_hour: Whole | None = None
    tokens_per_day: Whole | None = None
    cost_per_day: Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)] | None = None
    calls_per_minute: Whole | None = None
    max_concurrency: Whole | None = None
    max_connectors_per_thread: Whole | None = None

    def over(self, before: UserLimits) -> UserLimits:
        return replace(before, **{name: getattr(self, name) for name in self.model_fields_set})


class NewWorkspace(_Request):
    name: Name = Field(examples=["acme"])


class WorkspaceChanges(_Request):
    """What is left out stays as it is; null sets back to the default."""

    name: Name | None = Field(default=None, description="only the operator renames")
    approval: Policy | None = None
    limits: UserLimitsRequest | None = Field(
        default=None, description="for each of its users", validation_alias=LIMITS_OR_BOUNDS
    )


class NewUser(_Request):
    name: Name = Field(examples=["ada"])
    role: UserRole = "member"
    capabilities: Words = Field(
        default_factory=lambda: [ANY_TOOL], description="mcp_integration, mcp_<connector> or a tool's name"
    )
    limits: UserLimitsRequest = Field(default_factory=UserLimitsRequest, validation_alias=LIMITS_OR_BOUNDS)
    workspace: Named | None = Field(default=None, description="id or name; for the operator")


class UserChanges(_Request):
    """What is left out stays as it is; null sets back to the default."""

    role: UserRole | None = None
    capabilities: Words | None = None
    limits: UserLimitsRequest | None = Field(default=None, validation_alias=LIMITS_OR_BOUNDS)
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


def limits_over(changes: UserLimitsRequest | None, before: UserLimits) -> UserLimits:
    """The limits after a change; null takes all of them away."""
    return UserLimits() if changes is None else changes.over(before)


OldName = Annotated[
    UserLimits, Field(description="The same as `limits`.", json_schema_extra={"deprecated": True})
]


class WorkspaceShape(Shape):
    id: str
    name: str
    approval: Policy
    limits: UserLimits
    bounds: OldName
    created_at: datetime


class WorkspacesShape(Shape):
    workspaces: list[WorkspaceShape]


class UserShape(Shape):
    """`external` is who they are to an outside issuer."""

    id: str
    workspace: str
    name: str
    role: UserRole
    capabilities: Sorted
    limits: UserLimits
    bounds: OldName
    is_active: bool
    external: str | None
    created_at: datetime


class UsersShape(Shape):
    users: list[UserShape]


class KeyShape(Shape):
    """`hint` are the first letters of the key, by which a person knows it again."""

    id: str
    workspace: str
    user: str
    name: str
    hint: str
    scopes: Sorted
    capabilities: SortedOrNone
    way: Way
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewKeyShape(KeyShape):
    """`key` is told here and never again."""

    key: str


class KeysShape(Shape):
    keys: list[KeyShape]


class MembershipShape(Shape):
    id: str
    name: str


class MeShape(Shape):
    """Who asks. `grants` are sets of capabilities that must all admit a tool; `limits` those in force."""

    workspace: MembershipShape
    user: MembershipShape
    role: Role
    way: Way
    scopes: Sorted
    grants: list[list[str]]
    limits: UserLimits
    bounds: OldName


def workspace_view(workspace: Workspace) -> WorkspaceShape:
    return WorkspaceShape.of(workspace)


def user_view(user: User) -> UserShape:
    return UserShape.of(user)


def key_view(key: ApiKey) -> KeyShape:
    return KeyShape.of(key)


def new_key_view(key: ApiKey, plaintext: str) -> NewKeyShape:
    return NewKeyShape.of(key, key=plaintext)


def me_view(myself: Myself, scopes: frozenset[KeyScope]) -> MeShape:
    person = myself.person
    return MeShape.of(
        myself.caller,
        workspace=person.workspace,
        user=person.user,
        scopes=scopes,
        grants=[sorted(grant) for grant in myself.caller.grants],
        limits=person.limits,
        bounds=person.limits,
    )
