"""What stands around every page: the workspace's name, how much there is of each thing, and what waits."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.pages import Frame, hub_of, is_part, pages_of
from dragoman.hub import BoundHub

_MOST_WAITING = 100
_MOST_KEPT = 500


class Menu:
    """Makes frames; keeps how many tools somebody has, for as long as the catalogue is the same."""

    def __init__(self) -> None:
        self._tools: dict[tuple[str, int], int] = {}

    async def frame(self, hub: BoundHub, workspace: str) -> Frame:

        counts = {
            "/connectors": hub.connectors.count(),
            "/tools": self._count_tools(hub),
            "/agents": await hub.agents.count_workers(),
        }
        return Frame(workspace, counts, await count_waiting(hub))

    def _count_tools(self, hub: BoundHub) -> int:
        key = (hub.caller.fingerprint, hub.catalog_version)
        if key not in self._tools:
            if len(self._tools) >= _MOST_KEPT:
                self._tools.clear()
            self._tools[key] = len(hub.tools.list())
        return self._tools[key]


async def count_waiting(hub: BoundHub) -> int:
    """Approvals and questions that wait for this person; at most a hundred of each are counted."""
    approvals = await hub.approvals.list(limit=_MOST_WAITING)
    return len(approvals) + len(await hub.runs.questions(limit=_MOST_WAITING))


def wants_frame(request: Request) -> bool:
    """Pages have it; their parts, files and streams have not."""
    accepts = request.headers.get("accept", "")
    return request.method == "GET" and not is_part(request) and "text/event-stream" not in accepts


async def show_waiting(request: Request) -> Response:
    """The badge alone, which every open page asks for again and again."""
    waiting = await count_waiting(hub_of(request))
    return pages_of(request).part(request, "parts/badge.html", waiting=waiting)


routes = [Route("/approvals/waiting", show_waiting)]
