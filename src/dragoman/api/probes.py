"""Whether the process lives and can work, for whoever watches it. Needs no token, and nothing of FastAPI."""

import asyncio

from starlette.responses import Response

from dragoman.errors import DragomanError, StoreUnavailable
from dragoman.hub import BoundHub
from dragoman.web.encoding import json_response
from dragoman.web.problems import problem

HEALTH, READY = "/health", "/ready"
READY_LIMIT = 3.0


def health() -> Response:
    return json_response({"status": "alive"})


async def readiness(hub: BoundHub) -> Response:
    try:
        async with asyncio.timeout(READY_LIMIT):
            await hub.check()
    except TimeoutError:
        return problem(StoreUnavailable("the store did not answer in time"))
    except DragomanError as error:
        # Whoever asks here has shown no token: the code is enough.
        return problem(StoreUnavailable("the installation cannot work now", cause=error.code))
    return json_response({"status": "ready"})
