"""`/api/cluster`: the processes of the installation, for the operator."""

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.cluster import Role
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["cluster"], responses=PROBLEMS)


class NodeShape(Shape):
    """One process. A process that starts again is another node.

    `runs` are those that it executes, or holds until a person has answered. `is_draining`: it stops soon,
    and gives away what it has.
    """

    id: str
    host: str
    pid: int
    version: str
    started_at: datetime
    roles: list[Role]
    is_draining: bool
    runs: int


class HeldShape(Shape):
    """A connection with state, and the node that holds it. `user` is empty where a workspace shares it."""

    connector: str
    workspace: str
    user: str
    node: str
    is_pinned: bool


class Move(BaseModel, extra="forbid"):
    """`to` is the id of a node; without it another is chosen. Without `user` all of the connector move."""

    connector: str
    user: str | None = None
    to: str | None = None


class ClusterShape(Shape):
    """`node` is the one that answers. Not `is_connected`: nodes find what others wrote by looking.

    `runs_waiting` could begin and wait for a node, the first of them for `longest_wait` seconds; null while
    the database does not answer. `runs_at_work` are those of the node that answers.
    """

    is_clustered: bool
    is_connected: bool
    node: str
    nodes: list[NodeShape]
    runs_waiting: int | None
    longest_wait: float | None
    runs_at_work: int


@routes.get("/cluster", responses={200: {"model": ClusterShape}})
async def get_cluster(hub: TheHub) -> Response:
    """Which processes share this installation, as the one that answers knows it."""
    status = await hub.cluster.status()
    nodes = [NodeShape.of(node, runs=status.runs.get(node.id, 0)) for node in status.nodes]
    return json_response(ClusterShape.of(status, nodes=nodes))


@routes.get("/cluster/places", responses={200: {"model": list[HeldShape]}})
async def list_places(hub: TheHub) -> Response:
    """Which node holds which connection with state."""
    return json_response([HeldShape.of(one) for one in await hub.cluster.places()])


@routes.post("/cluster/places/move", responses={200: {"model": list[HeldShape]}})
async def move_places(move: Move, hub: TheHub) -> Response:
    """Has another node hold the connections of a connector. Those in use are waited for, not for long."""
    moved = await hub.cluster.move(move.connector, user=move.user, to=move.to)
    return json_response([HeldShape.of(one) for one in moved])
