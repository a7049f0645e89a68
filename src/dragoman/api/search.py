"""`/api/tools/search`: the right tool among many. Its route stands before those that take a tool's name."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS
from dragoman.api.shapes import SearchHitShape, tool_hit
from dragoman.api.threads import ThreadHub
from dragoman.catalog.search import SearchResults
from dragoman.errors import NotFound
from dragoman.hub import BoundHub
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["tools"], responses=PROBLEMS)


class SearchResultsShape(Shape):
    """`total` is how many tools were searched, `summary` says both: 5 of 1,938."""

    query: str
    strategy: str
    total: int
    summary: str
    hits: list[SearchHitShape]


@routes.get("/tools/search", responses={200: {"model": SearchResultsShape}})
async def search_tools(
    hub: ThreadHub,
    q: Annotated[str, Query(description="what the tool should do, its name, or a pattern")] = "",
    strategy: Annotated[str, Query(description="hybrid, bm25, semantic or regex")] = "hybrid",
    limit: Annotated[int, Query(description="most hits, at most 100")] = 10,
    connector: Annotated[str | None, Query(description="only tools of this connector")] = None,
) -> Response:
    """The tools that fit best; none when nothing fits."""
    found = await hub.tools.search(q, strategy=strategy, limit=limit, connector=connector)
    return json_response(
        {
            "query": found.question.text,
            "strategy": found.question.strategy,
            "total": found.total,
            "summary": found.summary,
            "hits": [*_views(hub, found)],
        }
    )


def _views(hub: BoundHub, found: SearchResults) -> Iterator[SearchHitShape]:
    for hit in found.hits:
        with suppress(NotFound):  # gone while the others were looked for
            yield tool_hit(hub.tools.info(hit.tool.name), hit.score)
