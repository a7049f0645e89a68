"""`/api/questions`: what agents want to know from a person before they go on."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.run_shapes import QuestionShape, QuestionsShape, question_view
from dragoman.run import QuestionStatus
from dragoman.web.encoding import json_response

routes = APIRouter(prefix="/api", tags=["questions"], responses=PROBLEMS)
_ONE: dict[int | str, dict[str, Any]] = {200: {"model": QuestionShape}}


class QuestionAnswer(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"answer": "the red one"}, {"answer": {"size": 3}}]}
    )

    answer: str | dict[str, Any] = Field(
        description="text, or an object of what the question's `fields` describe"
    )


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
    """By a person only; the run that asked goes on with it."""
    return json_response(question_view(await hub.runs.answer(question, given.answer)))
