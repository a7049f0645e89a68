"""`/api/me`, `/api/workspaces`, `/api/users`, `/api/keys`, `/api/clients`. Rights are the hub's to say."""

from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from dragoman.api import people_shapes as shapes
from dragoman.api.people_shapes import client_view, key_view, me_view, new_key_view, user_view, workspace_view
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.setting_models import SettingsRequest
from dragoman.identity.authenticated import ALL_SCOPES
from dragoman.people import KeyScope
from dragoman.web.encoding import JSON, encode, json_response
from dragoman.web.scopes import SCOPES

routes = APIRouter(prefix="/api", tags=["people"], responses=PROBLEMS)


async def scopes_of(request: Request) -> frozenset[KeyScope]:
    """Those of the credential; the service's own token has all."""
    return request.scope.get(SCOPES, ALL_SCOPES)


def _as(request: SettingsRequest) -> Any:
    """What the hub takes: the model is made from the same description as the hub's own types."""
    return request.settings()


_EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "By table: every row that is theirs",
        "content": {JSON: {"schema": {"type": "object", "additionalProperties": {"type": "array"}}}},
    }
}


async def _exported(rows: AsyncGenerator[tuple[str, Mapping[str, Any]]]) -> Response:
    """As it is read, so that nobody holds all of it. Who may not have it is told before it begins."""
    first = await anext(rows)

    async def written() -> AsyncGenerator[bytes]:
        table, row = first
        yield b"{" + encode(table) + b": [" + encode(row)
        async for name, row in rows:
            yield b", " if name == table else b"], " + encode(name) + b": ["
            table = name
            yield encode(row)
        yield b"]}"

    return StreamingResponse(written(), media_type=JSON)


TheScopes = Annotated[frozenset[KeyScope], Depends(scopes_of)]
Where = Annotated[str | None, Query(min_length=1, max_length=200, description="id or name; for the operator")]
Whose = Annotated[str | None, Query(min_length=1, max_length=200, description="id or name; for admins")]


@routes.get("/me", responses={200: {"model": shapes.MeShape}})
async def show_me(hub: TheHub, scopes: TheScopes) -> Response:
    """Who asks, in which workspace, and with which rights."""
    return json_response(me_view(await hub.people.me(), scopes))


@routes.get("/me/export", responses=_EXPORTED)
async def export_me(hub: TheHub) -> Response:
    """All that is kept of who asks. Secrets are named and not told."""
    return await _exported(hub.people.export_user())


@routes.get("/workspaces", responses={200: {"model": shapes.WorkspacesShape}})
async def list_workspaces(hub: TheHub) -> Response:
    """All for the operator, their own for an admin."""
    found = await hub.people.workspaces()
    return json_response({"workspaces": [workspace_view(one) for one in found]})


@routes.post("/workspaces", status_code=201, responses={201: {"model": shapes.WorkspaceShape}})
async def add_workspace(new: shapes.NewWorkspace, hub: TheHub) -> Response:
    made = await hub.people.add_workspace(new.name)
    return json_response(workspace_view(made), 201, {"Location": f"/api/workspaces/{made.id}"})


@routes.get("/workspaces/{workspace}", responses={200: {"model": shapes.WorkspaceShape}})
async def get_workspace(workspace: str, hub: TheHub) -> Response:
    return json_response(workspace_view(await hub.people.get_workspace(workspace)))


@routes.patch("/workspaces/{workspace}", responses={200: {"model": shapes.WorkspaceShape}})
async def update_workspace(workspace: str, changes: shapes.WorkspaceChanges, hub: TheHub) -> Response:
    after = await hub.people.update_workspace(workspace, name=changes.name, **_as(changes))
    return json_response(workspace_view(after))


@routes.delete("/workspaces/{workspace}", status_code=204)
async def remove_workspace(workspace: str, hub: TheHub) -> Response:
    """With its users, connectors and all that is theirs; calls under way finish."""
    await hub.people.remove_workspace(workspace)
    return Response(status_code=204)


@routes.get("/users", responses={200: {"model": shapes.UsersShape}})
async def list_users(hub: TheHub, workspace: Where = None) -> Response:
    found = await hub.people.users(workspace)
    return json_response({"users": [user_view(one) for one in found]})


@routes.post("/users", status_code=201, responses={201: {"model": shapes.UserShape}})
async def add_user(new: shapes.NewUser, hub: TheHub) -> Response:
    made = await hub.people.add_user(new.name, workspace=new.workspace, **_as(new))
    return json_response(user_view(made), 201, {"Location": f"/api/users/{made.id}"})


@routes.get("/users/{user}", responses={200: {"model": shapes.UserShape}})
async def get_user(user: str, hub: TheHub, workspace: Where = None) -> Response:
    return json_response(user_view(await hub.people.get_user(user, workspace)))


@routes.patch("/users/{user}", responses={200: {"model": shapes.UserShape}})
async def update_user(
    user: str, changes: shapes.UserChanges, hub: TheHub, workspace: Where = None
) -> Response:
    """Effective at once: the next request of theirs is judged anew."""
    place = changes.workspace or workspace
    after = await hub.people.update_user(user, workspace=place, **_as(changes))
    return json_response(user_view(after))


@routes.delete("/users/{user}", status_code=204)
async def remove_user(user: str, hub: TheHub, workspace: Where = None) -> Response:
    """Their keys end at once, calls under way finish, then all that is theirs goes."""
    await hub.people.remove_user(user, workspace)
    return Response(status_code=204)


@routes.get("/users/{user}/export", responses=_EXPORTED)
async def export_user(user: str, hub: TheHub, workspace: Where = None) -> Response:
    """All that is kept of a user: one's own, or anybody's for the operator. Secrets are named only."""
    return await _exported(hub.people.export_user(user, workspace))


@routes.post("/users/{user}/erase", responses={200: {"model": shapes.ErasureShape}})
async def erase_user(user: str, hub: TheHub, workspace: Where = None) -> Response:
    """Removes them with all that is theirs, and their name from the audit trail, for good."""
    return json_response(await hub.people.erase_user(user, workspace))


@routes.get("/keys", responses={200: {"model": shapes.KeysShape}})
async def list_keys(hub: TheHub, user: Whose = None, workspace: Where = None) -> Response:
    """One's own; for an admin those of the workspace, or of one user."""
    found = await hub.people.keys(user, workspace)
    return json_response({"keys": [key_view(one) for one in found]})


@routes.post("/keys", status_code=201, responses={201: {"model": shapes.NewKeyShape}})
async def add_key(new: shapes.NewKey, hub: TheHub, scopes: TheScopes) -> Response:
    """The answer holds the key itself, this once."""
    made, plaintext = await hub.people.add_key(
        new.name, user=new.user, within=scopes, workspace=new.workspace, **_as(new)
    )
    headers = {"Location": f"/api/keys/{made.id}", "Cache-Control": "no-store"}
    return json_response(new_key_view(made, plaintext), 201, headers)


@routes.patch("/keys/{key}", responses={200: {"model": shapes.KeyShape}})
async def update_key(
    key: str, changes: shapes.KeyChanges, hub: TheHub, scopes: TheScopes, workspace: Where = None
) -> Response:
    """Effective at once. Nobody gives a key more than the credential has that asks."""
    after = await hub.people.update_key(key, within=scopes, workspace=workspace, **_as(changes))
    return json_response(key_view(after))


@routes.delete("/keys/{key}", responses={200: {"model": shapes.KeyShape}})
async def revoke_key(key: str, hub: TheHub, workspace: Where = None) -> Response:
    """It opens nothing from now on. Its record stays for the audit."""
    return json_response(key_view(await hub.people.revoke_key(key, workspace)))


@routes.get("/clients", responses={200: {"model": shapes.ClientsShape}})
async def list_clients(hub: TheHub, user: Whose = None, workspace: Where = None) -> Response:
    """MCP clients that were allowed something: by oneself; for an admin by those of the workspace."""
    found = await hub.clients.list(user, workspace)
    return json_response({"clients": [client_view(one) for one in found]})


@routes.post("/clients/rotate", responses={200: {"model": shapes.SigningKeyShape}})
async def rotate_signing_key(hub: TheHub) -> Response:
    """A new key signs access tokens from now on; for who runs the installation. Nobody has to log in anew."""
    return json_response({"key": await hub.clients.rotate()})


@routes.get("/clients/{client}", responses={200: {"model": shapes.ClientShape}})
async def get_client(client: str, hub: TheHub, workspace: Where = None) -> Response:
    """One of them."""
    return json_response(client_view(await hub.clients.get(client, workspace)))


@routes.patch("/clients/{client}", responses={200: {"model": shapes.ClientShape}})
async def update_client(
    client: str, changes: shapes.ClientChanges, hub: TheHub, workspace: Where = None
) -> Response:
    """Sets its limits; effective at once. What it may use it asks for anew."""
    limits = _as(changes).get("limits", {})
    return json_response(client_view(await hub.clients.update(client, limits=limits, workspace=workspace)))


@routes.delete("/clients/{client}", responses={200: {"model": shapes.ClientShape}})
async def revoke_client(client: str, hub: TheHub, workspace: Where = None) -> Response:
    """Its tokens open nothing from now on. Its record stays for the audit."""
    return json_response(client_view(await hub.clients.revoke(client, workspace)))
