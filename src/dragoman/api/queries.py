"""`query_mcp_connector` by REST: a whole job for the agent of one connector, waited for unless told not to.

The call itself was understood, so an answer with `status: error` comes with 200; a problem is only for a
request that is none.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.agents.connector_query import MOST_TOOLS, ConnectorQuery, ErrorCode
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.run_shapes import AcceptedShape, run_view
from dragoman.hub import BoundHub
from dragoman.hub.connector_queries import AcceptedQuery
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["agents"], responses=PROBLEMS)


class QueryErrorShape(Shape):
    code: ErrorCode
    message: str
    hint: str | None = None


class QueryShape(Shape):
    """`metadata`: connector_id and connector_name; where its agent worked also plan, tools_used, contexts,
    answer, usage and run. Every citation `[c1]` in an answer names one of the contexts."""

    status: Literal["success", "error"]
    data: str | None
    error: QueryErrorShape | None = None
    metadata: dict[str, Any]


class QueryRequest(BaseModel):
    """`maxTools` and `planOnly` are understood too."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"query": "which issues are open?", "max_tools": 5}]},
    )

    query: str = Field(description="the job, in full sentences, with all it needs to know")
    context: str | None = Field(default=None, description="what else the connector's agent should know")
    max_tools: int = Field(
        default=10,
        ge=1,
        le=MOST_TOOLS,
        validation_alias=AliasChoices("max_tools", "maxTools"),
        description="the most tool calls it may make",
    )
    plan_only: bool = Field(
        default=False,
        validation_alias=AliasChoices("plan_only", "planOnly"),
        description="only say what it would do",
    )


class ConnectorQueryRequest(QueryRequest):
    """`connectorId`, `maxTools` and `planOnly` are understood too."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"connector_id": "tracker", "query": "which issues are open?"}]},
    )

    connector_id: str = Field(
        validation_alias=AliasChoices("connector_id", "connectorId"), description="id or name"
    )


Wait = Annotated[
    bool,
    Query(description="false: answers at once with the run; `GET …/query/{run}` has what came of it"),
]
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"model": QueryShape, "description": "What came of it, `status: error` included"}
}
_ANSWER_OR_RUN: dict[int | str, dict[str, Any]] = {
    **_ANSWER,
    202: {"model": AcceptedShape, "description": "Without `wait`: it is on disk and will be worked on"},
}


@routes.post("/connectors/{slug}/query", responses=_ANSWER_OR_RUN)
async def query_connector(slug: str, asked: QueryRequest, hub: TheHub, wait: Wait = True) -> Response:
    """Answers when its agent is done. An unknown or unable connector is an answer too, not a problem."""
    query = ConnectorQuery.read({"connector_id": slug, **asked.model_dump()})
    return await _answered(query, hub, wait)


@routes.get("/connectors/{slug}/query/{run}", responses=_ANSWER)
async def get_query(slug: str, run: str, hub: TheHub) -> Response:
    """What came of a query that was not waited for, once its run has ended."""
    return json_response(await hub.queries.answer(slug, run))


@routes.post("/query_mcp_connector", responses=_ANSWER_OR_RUN)
async def query_mcp_connector(asked: ConnectorQueryRequest, hub: TheHub, wait: Wait = True) -> Response:
    """The same, with the connector in the body."""
    return await _answered(ConnectorQuery.read(asked.model_dump()), hub, wait)


async def _answered(query: ConnectorQuery, hub: BoundHub, wait: bool) -> Response:
    if wait:
        return json_response(await hub.queries.ask(query))
    begun = await hub.queries.begin(query)
    if not isinstance(begun, AcceptedQuery):
        return json_response(begun)
    body = {"run": run_view(begun.run), "message": None}
    return json_response(body, 202, {"Location": f"/api/runs/{begun.run.id}"})
