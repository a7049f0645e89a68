"""Workspaces, users and keys as the REST door is asked for them and tells of them. No hash ever leaves."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from dragoman.api.setting_models import SettingsRequest, request_of, shape_of
from dragoman.hub.people import Myself
from dragoman.people import ApiKey, CallLimits, KeyScope, User, UserLimits, Workspace
from dragoman.scope import ANY_TOOL, BUNDLE, READ_ONLY, Role, Way
from dragoman.web.shape import Shape, Sorted

Name = Annotated[str, Field(min_length=1, max_length=100)]
Named = Annotated[str, Field(min_length=1, max_length=200)]
Workspaces = Field(default=None, description="id or name; for the operator")


class NewWorkspace(SettingsRequest):
    name: Name = Field(examples=["acme"])


class WorkspaceChanges(request_of(Workspace)):
    """What is left out stays as it is; null sets back to the default."""

    name: Name | None = Field(default=None, description="only the operator renames")


class NewUser(request_of(User)):
    """What is left out or null is at its default."""

    name: Name = Field(examples=["ada"])
    workspace: Named | None = Workspaces


class UserChanges(request_of(User)):
    """What is left out stays as it is; null sets back to the default."""

    workspace: Named | None = Workspaces


class KeyChanges(request_of(ApiKey)):
    """What is left out stays as it is; null sets back to the default. No key gets more than who asks has."""

    expires_in: Annotated[float, Field(gt=0, le=3660 * 86400, allow_inf_nan=False)] | None = Field(
        default=None, description="seconds from now, in the place of `expires_at`; null: it does not expire"
    )

    def settings(self) -> dict[str, Any]:
        given = super().settings()
        if "expires_in" in self.model_fields_set:
            given["expires_at"] = self._end()
        return given

    def _end(self) -> datetime | None:
        return None if self.expires_in is None else datetime.now(UTC) + timedelta(seconds=self.expires_in)


class ClientChanges(request_of(ApiKey, "limits")):
    """Limits that are left out stay as they are; null takes one away, or all of them."""


class NewKey(KeyChanges):
    """Without `user` the key is the caller's own. It never has more than its user, or than who makes it."""

    name: Name = Field(examples=["laptop"])
    user: Named | None = Field(default=None, description="id or name; for admins")
    workspace: Named | None = Workspaces


OldName = Annotated[
    UserLimits, Field(description="The same as `limits`.", json_schema_extra={"deprecated": True})
]


class WorkspaceShape(shape_of(Workspace, id=str, name=str)):
    bounds: OldName
    created_at: datetime


class WorkspacesShape(Shape):
    workspaces: list[WorkspaceShape]


class UserShape(shape_of(User, id=str, workspace=str, name=str)):
    """`external` is who they are to an outside issuer."""

    bounds: OldName
    external: str | None
    created_at: datetime


class ErasureShape(Shape):
    """`pseudonym` stands in the audit trail now. `is_compact` says whether the database's files are clean."""

    pseudonym: str
    entries: int
    is_compact: bool


class UsersShape(Shape):
    users: list[UserShape]


class KeyShape(shape_of(ApiKey, id=str, workspace=str, user=str, name=str, hint=str)):
    """`hint` are the first letters of the key, by which a person knows it again."""

    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewKeyShape(KeyShape):
    """`key` is told here and never again."""

    key: str


class KeysShape(Shape):
    keys: list[KeyShape]


class ClientShape(Shape):
    """An MCP client that somebody allowed to use their tools. `client_id` is how OAuth calls it, `host` where
    it says who it is, empty where nobody vouches for it; `connectors` null: all of its user's.
    """

    id: str
    workspace: str
    user: str
    name: str
    client_id: str
    host: str
    redirect: str
    resource: str
    connectors: list[str] | None
    only_reads: bool
    limits: CallLimits
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class SigningKeyShape(Shape):
    """`key` is its id, which tokens name."""

    key: str


class ClientsShape(Shape):
    clients: list[ClientShape]


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


def client_view(key: ApiKey) -> ClientShape:
    client, words = key.client, key.capabilities or frozenset()
    assert client is not None
    slugs = sorted(word.removeprefix("mcp_") for word in words if word.startswith(("mcp_", BUNDLE)))
    return ClientShape.of(
        key,
        client_id=client.id,
        host=client.host,
        redirect=client.redirect,
        resource=client.audience,
        connectors=None if ANY_TOOL in words else slugs,
        only_reads=READ_ONLY in words,
    )


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
