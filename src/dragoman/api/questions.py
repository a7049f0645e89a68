"""`/api/questions`: what agents, and servers in the middle of a call, want to know from a person."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.run_shapes import QuestionShape, QuestionsShape, question_view
from dragoman.run import QuestionStatus
from dragoman.web.encoding import json_response
from dragoman.web.problems import InvalidRequest

routes = APIRouter(prefix="/api", tags=["questions"], responses=PROBLEMS)
_ONE: dict[int | str, dict[str, Any]] = {200: {"model": QuestionShape}}


class QuestionAnswer(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"answer": "the red one"}, {"answer": {"size": 3}}, {"decline": True}]
        },
    )

    answer: str | dict[str, Any] | None = Field(
        default=None, description="text, or an object of what the question's `fields` describe"
    )
    decline: bool = Field(default=False, description="in place of an answer: the person will not give one")


@routes.get("/questions", responses={200: {"model": QuestionsShape}})
async def list_questions(
    hub: TheHub,
    thread: Annotated[str | None, Query(max_length=200)] = None,
    status: QuestionStatus | Literal["all"] = "pending",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """One's own, newest first."""
    wanted = None if status == "all" else status
    found = await hub.runs.questions(thread=thread, status=wanted, limit=limit)
    return json_response({"questions": [question_view(question) for question in found]})


@routes.get("/questions/{question}", responses=_ONE)
async def get_question(question: str, hub: TheHub) -> Response:
    return json_response(question_view(await hub.runs.question(question)))


@routes.post("/questions/{question}", responses=_ONE)
async def answer_question(question: str, given: QuestionAnswer, hub: TheHub) -> Response:
    """By a person only; who asked goes on with it, or without."""
    if given.decline and given.answer is not None:
        raise InvalidRequest("a question is answered or declined, not both")
    if given.decline:
        return json_response(question_view(await hub.runs.decline(question)))
    return json_response(question_view(await hub.runs.answer(question, given.answer)))
