"""`/api/rollout`: how far connector agents are rolled out, for the operator."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response
from typing_extensions import TypedDict

from dragoman.agents.rollout import RolloutFigures
from dragoman.api.requests import PROBLEMS, TheCaller, TheHub
from dragoman.hub.rollout import RolloutStatus
from dragoman.web.encoding import json_response

routes = APIRouter(prefix="/api", tags=["rollout"], responses=PROBLEMS)


class RolloutChanges(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    share: float | None = Field(default=None, ge=0, le=100, description="percent of all users")
    workspaces: list[str] | None = Field(default=None, max_length=1000, description="ids; all their users")
    users: list[str] | None = Field(default=None, max_length=1000, description="id, or workspace/id")


class RolloutFiguresShape(TypedDict):
    """Of the runs that count. `error_share` is in percent, `tokens` and `cost` are means of a run."""

    runs: int
    errors: int
    error_share: float
    latency_ms: float
    latency_p95_ms: float
    tokens: float
    cost: float
    thumbs_up: int
    thumbs_down: int


class RolloutPlanShape(TypedDict):
    share: float
    workspaces: list[str]
    users: list[str]


class RolloutThresholdsShape(TypedDict):
    """`errors` and `slower` are in percent: beyond them the arm `agents` is switched off."""

    errors: float
    slower: float
    sample: int
    runs: int
    hours: float


class RolloutRollbackShape(TypedDict):
    """`is_in_force`: nobody has set the rollout anew since."""

    at: str
    reason: str
    is_in_force: bool
    agents: dict[str, Any]
    direct: dict[str, Any]


class RolloutShape(TypedDict):
    state: Literal["off", "on", "rolled_back"]
    plan: RolloutPlanShape
    source: Literal["environment", "operator"]
    set_at: str | None
    set_by: str | None
    arms: dict[str, RolloutFiguresShape]
    thresholds: RolloutThresholdsShape
    rollback: RolloutRollbackShape | None
    notes: list[str]


@routes.get("/rollout", responses={200: {"model": RolloutShape}})
async def show_rollout(hub: TheHub, caller: TheCaller) -> Response:
    """Who goes through connector agents, what the runs of each arm were like, and the last rollback."""
    return json_response(_view(await hub.rollout.status(caller)))


@routes.put("/rollout", responses={200: {"model": RolloutShape}})
async def set_rollout(hub: TheHub, caller: TheCaller, changes: RolloutChanges) -> Response:
    """Sets it, for every process at once. Counting begins anew, and a rollback is over."""
    status = await hub.rollout.set(
        share=changes.share, workspaces=changes.workspaces, users=changes.users, caller=caller
    )
    return json_response(_view(status))


@routes.delete("/rollout", responses={200: {"model": RolloutShape}})
async def reset_rollout(hub: TheHub, caller: TheCaller) -> Response:
    """Back to what the environment says. Counting begins anew, and a rollback is over."""
    return json_response(_view(await hub.rollout.reset(caller)))


def _view(status: RolloutStatus) -> Mapping[str, Any]:
    plan, rollback = status.plan, status.rollback
    state = "on" if status.is_active else "rolled_back" if status.is_rolled_back else "off"
    return {
        "state": state,
        "plan": {"share": plan.share, "workspaces": [*plan.workspaces], "users": [*plan.users]},
        "source": status.source,
        "set_at": status.set_at.isoformat() if status.set_at else None,
        "set_by": status.set_by,
        "arms": {arm: _figures(figures) for arm, figures in status.arms.items()},
        "thresholds": asdict(status.thresholds),
        "rollback": rollback
        and {
            "at": rollback.at.isoformat(),
            "reason": rollback.reason,
            "is_in_force": status.is_rolled_back,
            "agents": dict(rollback.agents),
            "direct": dict(rollback.direct),
        },
        "notes": [*status.notes],
    }


def _figures(figures: RolloutFigures) -> Mapping[str, Any]:
    return {**asdict(figures), "error_share": figures.error_share}
