"""`/api/code`: Python that calls tools, run in the sandbox.

Code that fails is an answer like any other (200, `ok: false`), with what is needed to mend it.
"""

from dataclasses import asdict, replace
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.sandbox.outcome import CodeFault
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["code"], responses=PROBLEMS)


class CodeRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    code: str = Field(description="Python; its last expression is the result", examples=["1 + 1"])
    thread: str | None = Field(default=None, min_length=1, max_length=200)


class CodeErrorShape(Shape):
    code: CodeFault
    message: str
    hint: str | None
    traceback: str | None
    line: int | None


class CodeOutputShape(Shape):
    """`tokens_outside` is about what a model did not have to read: results that stayed in the sandbox."""

    ok: bool
    result: Any
    printed: str
    calls: int
    tokens_outside: int
    duration_ms: float
    error: CodeErrorShape | None


class CodeGuideShape(Shape):
    """`limits` are seconds, bytes and numbers."""

    description: str
    limits: dict[str, float]


@routes.post("/code", responses={200: {"model": CodeOutputShape}})
async def run_code(hub: TheHub, request: CodeRequest) -> Response:
    """Runs code for the caller. Every call that it makes takes the same road as any other."""
    if request.thread is not None:
        hub = hub.acting_for(replace(hub.caller, thread=request.thread))
    return json_response(CodeOutputShape.of(await hub.code.run(request.code)))


@routes.get("/code", responses={200: {"model": CodeGuideShape}})
async def show_guide(hub: TheHub) -> Response:
    """What a model is told before it writes code: what works, what is missing, how tools are named."""
    return json_response({"description": hub.code.description(), "limits": asdict(hub.code.limits)})
