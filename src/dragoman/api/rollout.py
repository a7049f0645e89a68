"""`/api/rollout`: how far connector agents are rolled out, for the operator."""

from datetime import datetime
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.hub.rollout import RolloutStatus
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["rollout"], responses=PROBLEMS)


class RolloutChanges(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    share: float | None = Field(default=None, ge=0, le=100, description="percent of all users")
    workspaces: list[str] | None = Field(default=None, max_length=1000, description="ids; all their users")
    users: list[str] | None = Field(default=None, max_length=1000, description="id, or workspace/id")


class RolloutFiguresShape(Shape):
    """Of the runs that count. `error_share` is in percent, `tokens` and `cost` are means of a run; `unpriced`
    are requests to models whose price nobody knows, which `cost` does not contain.
    """

    runs: int
    errors: int
    error_share: float
    latency_ms: float
    latency_p95_ms: float
    tokens: float
    cost: float
    unpriced: int
    thumbs_up: int
    thumbs_down: int


class RolloutPlanShape(Shape):
    """Nothing named and `share` null: all go through connector agents, and nobody is compared."""

    share: float | None
    workspaces: list[str]
    users: list[str]


class RolloutThresholdsShape(Shape):
    """`errors` and `slower` are in percent: beyond them the arm `agents` is switched off."""

    errors: float
    slower: float
    sample: int
    runs: int
    hours: float


class RolloutRollbackShape(Shape):
    """`is_in_force`: nobody has set the rollout anew since."""

    at: datetime
    reason: str
    is_in_force: bool
    agents: dict[str, Any]
    direct: dict[str, Any]


class RolloutShape(Shape):
    state: Literal["off", "on", "rolled_back"]
    plan: RolloutPlanShape
    source: Literal["environment", "operator"]
    set_at: datetime | None
    set_by: str | None
    arms: dict[str, RolloutFiguresShape]
    thresholds: RolloutThresholdsShape
    rollback: RolloutRollbackShape | None
    notes: list[str]


@routes.get("/rollout", responses={200: {"model": RolloutShape}})
async def show_rollout(hub: TheHub) -> Response:
    """Who goes through connector agents, what the runs of each arm were like, and the last rollback."""
    return json_response(_view(await hub.rollout.status()))


@routes.put("/rollout", responses={200: {"model": RolloutShape}})
async def set_rollout(hub: TheHub, changes: RolloutChanges) -> Response:
    """Sets it, for every process at once. Counting begins anew, and a rollback is over."""
    status = await hub.rollout.set(share=changes.share, workspaces=changes.workspaces, users=changes.users)
    return json_response(_view(status))


@routes.delete("/rollout", responses={200: {"model": RolloutShape}})
async def reset_rollout(hub: TheHub) -> Response:
    """Back to what the environment says. Counting begins anew, and a rollback is over."""
    return json_response(_view(await hub.rollout.reset()))


def _view(status: RolloutStatus) -> RolloutShape:
    rollback = status.rollback
    return RolloutShape.of(
        status,
        state="on" if status.is_active else "rolled_back" if status.is_rolled_back else "off",
        rollback=rollback and RolloutRollbackShape.of(rollback, is_in_force=status.is_rolled_back),
    )
