"""All sample servers in one process, by HTTP: each folder of state has its own at `/NAME/FOLDER IN HEX/`.

Run as a script, like the other servers. A sample is made when the first request for it comes.
"""

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

import chat_server
import email_server
import tasks_service
import tracker_server
from channels import Channels
from issues import Issues
from listening import serve
from mailboxes import Mailbox
from state import State

_SAMPLES: dict[str, Callable[[Path], Starlette]] = {
    "chat": lambda data: _http(chat_server.build_server(Channels(data / "chat.json"))),
    "email": lambda data: _http(email_server.build_server(Mailbox(data / "mailbox.json"))),
    "tasks": lambda data: tasks_service.build_app(State(data / "tasks.json", tasks_service.seeded)),
    "tracker": lambda data: _http(tracker_server.build_server(Issues(data / "tracker.json"))),
}


def _http(server: Any) -> Starlette:
    return server.streamable_http_app(host="127.0.0.1")


class SampleHost:
    def __init__(self) -> None:
        self._running: dict[str, asyncio.Future[Starlette]] = {}
        self._lifetimes: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        _, name, folder, *_ = scope["path"].split("/", 3)
        if name not in _SAMPLES:
            await PlainTextResponse("no such sample", 404)(scope, receive, send)
            return
        prefix = f"/{name}/{folder}"
        if prefix not in self._running:
            self._running[prefix] = asyncio.get_running_loop().create_future()
            app = _SAMPLES[name](Path(bytes.fromhex(folder).decode()))
            self._lifetimes.append(asyncio.create_task(self._live(app, self._running[prefix])))
        app = await self._running[prefix]
        await app({**scope, "root_path": prefix}, receive, send)

    async def _live(self, app: Starlette, running: "asyncio.Future[Starlette]") -> None:
        """As long as this process: the tests that use a sample end without saying so."""
        async with app.router.lifespan_context(app):
            running.set_result(app)
            await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, required=True)
    options = parser.parse_args()
    serve(SampleHost(), options.port, options.port_file)


if __name__ == "__main__":
    main()
