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
    """`say N`: N words, each the milliseconds of the moment at which it was said. `write N`: N KB at once."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    asked = [str(part.content) for part in last.parts if isinstance(part, UserPromptPart)][-1]
    if asked.startswith("write "):
        left, number = int(asked.split()[1]) * 1024, 0
        while left > 0:
            number += 1
            for piece in _section(number):
                yield piece
                left -= len(piece)
                await asyncio.sleep(GAP / 10)
        return
    if not asked.startswith("say "):
        yield "Here are **three** things:\n\n- one\n- two\n- `three`\n"
        return
    for number in range(int(asked.split()[1])):
        word, place = f"{time.time() * 1000:.1f}", number % 40
        yield (
            f"**{word}** "
            if place == 7
            else f"`{word}` "
            if place == 9
            else f"\n- {word} "
            if place > 35
            else f"{word} "
        )
        await asyncio.sleep(GAP)


def _section(number: int) -> list[str]:
    """About a KB of Markdown as models write it, in pieces of some words."""
    text = (
        f"## Depot {number}\n\nThe **late** orders of `depot-{number}`, *newest* first:\n\n"
        + "".join(
            f"- order {number}{place}: [papers](https://example.com/{place}) are **missing**\n"
            for place in range(6)
        )
        + "\n| order | days | value |\n|---|--:|--:|\n"
        + "".join(f"| {number}{place} | {place} | {place * 17}.50 |\n" for place in range(5))
        + "\n```python\ndef late(order: Order) -> bool:\n    return order.due < today()\n```\n\n"
        + "What is late for more than a week is told to who ordered it, with the day on which it comes. " * 3
        + "\n\n"
    )
    return [text[begin : begin + 24] for begin in range(0, len(text), 24)]


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
