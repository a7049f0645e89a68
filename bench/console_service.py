"""A service for `console.py`, in a process of its own: its model says what time it is, word after word."""

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dragoman import Hub, Settings
from dragoman.server import Doors, build_app
from dragoman.web.service_token import get_or_make_token

GAP = 0.02  # seconds between two words


async def clock(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    """`say N`: N words, each the milliseconds of the moment at which it was said."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    asked = [str(part.content) for part in last.parts if isinstance(part, UserPromptPart)][-1]
    if not asked.startswith("say "):
        yield "Here are **three** things:\n\n- one\n- two\n- `three`\n"
        return
    for _ in range(int(asked.split()[1])):
        yield f"{time.time() * 1000:.1f} "
        await asyncio.sleep(GAP)


async def main(home: Path) -> None:
    async with Hub(Settings(home=home, model="clock")) as hub:
        hub.models.register("clock", FunctionModel(stream_function=clock))
        await hub.ask("hello")  # what executes runs is loaded
        doors = Doors(hub)
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        config = uvicorn.Config(
            build_app(hub, doors), http="httptools", ws="none", lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        facts = {
            "url": f"http://127.0.0.1:{listener.getsockname()[1]}",
            "codes": [await doors.sign_in_code() for _ in range(4)],
            "token": get_or_make_token(hub.settings.token_file),
        }
        print(json.dumps(facts), flush=True)
        await server.serve(sockets=[listener])
        doors.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
