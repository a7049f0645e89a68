"""`/api/approvals`: questions to people, and their answers."""

from datetime import datetime
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.shapes import AnnotationsShape
from dragoman.hub import BoundHub
from dragoman.hub.approvals import ApprovalView
from dragoman.store.records import Allowance, Answer, ApprovalStatus
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["approvals"], responses=PROBLEMS)


class ApprovalShape(Shape):
    """One question: the exact call, who asks for it, why it is asked, and which answers are possible."""

    id: str
    status: ApprovalStatus
    tool: str
    connector: str
    version: int
    title: str | None
    description: str
    annotations: AnnotationsShape
    arguments: dict[str, Any]
    reason: str
    answers: list[Answer]
    user: str
    user_name: str
    thread: str | None
    agent: str | None
    way: str
    created_at: datetime
    expires_at: datetime
    answer: Answer | None
    answered_by: str | None
    answered_at: datetime | None


class ApprovalsShape(Shape):
    approvals: list[ApprovalShape]


class AllowanceShape(Shape):
    """What was allowed for longer: for one thread, or (null) for every call of this version of the tool;
    and for one key or client, or (null) for whoever comes with none.
    """

    approval: str
    tool: str
    thread: str | None
    key: str | None
    fingerprint: str
    created_at: datetime


class AllowancesShape(Shape):
    allowed: list[AllowanceShape]


class AnswerRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    answer: Answer = Field(description="`thread` and `always` hold until the tool changes")


_ONE: dict[int | str, dict[str, Any]] = {200: {"model": ApprovalShape}}


@routes.get("/approvals", responses={200: {"model": ApprovalsShape}})
async def list_approvals(hub: TheHub, status: ApprovalStatus | Literal["all"] = "pending") -> Response:
    """Newest first: one's own, and for an admin those of the whole workspace."""
    questions = await hub.approvals.list(None if status == "all" else status)
    return json_response({"approvals": [await _approval(hub, question) for question in questions]})


@routes.get("/approvals/allowed", responses={200: {"model": AllowancesShape}})
async def list_allowed(hub: TheHub) -> Response:
    """What one has allowed for longer than one call."""
    allowed = await hub.approvals.allowances()
    return json_response({"allowed": [_allowance(one) for one in allowed]})


@routes.delete("/approvals/allowed/{approval}", status_code=204)
async def withdraw(approval: str, hub: TheHub) -> None:
    """The next call asks again."""
    await hub.approvals.withdraw(approval)


@routes.get("/approvals/{approval}", responses=_ONE)
async def get_approval(approval: str, hub: TheHub) -> Response:
    return json_response(await _approval(hub, await hub.approvals.get(approval)))


@routes.post("/approvals/{approval}/answer", responses=_ONE)
async def answer(approval: str, given: AnswerRequest, hub: TheHub) -> Response:
    """By a person only; whoever waits for the answer goes on, or hears the no."""
    question = await hub.approvals.answer(approval, given.answer)
    return json_response(await _approval(hub, question))


async def _approval(hub: BoundHub, question: ApprovalView) -> ApprovalShape:
    approval, binding = question.approval, question.approval.binding
    return ApprovalShape.of(
        approval,
        status=question.status,
        tool=binding.tool,
        connector=approval.slug,
        version=binding.version,
        title=question.asked.title,
        description=question.asked.description,
        annotations=question.asked.annotations,
        arguments=question.asked.arguments,
        answers=question.answers,
        user=binding.user,
        user_name=await hub.people.name_of(binding.workspace, binding.user),
        thread=binding.thread,
        agent=binding.agent,
        way=binding.way,
    )


def _allowance(allowance: Allowance) -> AllowanceShape:
    return AllowanceShape.of(
        allowance,
        approval=allowance.approval_id,
        thread=allowance.thread or None,
        key=allowance.key or None,
    )
