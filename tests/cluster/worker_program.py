"""A process that executes runs: a hub whose one tool says who began to work, and works until it may end."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from dragoman.telemetry.logs import configure_logging
from dragoman.tool import Annotations
from runs.scripted import open_scripted, situation


async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    turn, told = situation(messages)
    if turn == 0:
        yield {0: DeltaToolCall("work", "{}", tool_call_id="c")}
    else:
        yield told[0]


async def main(name: str, folder: Path, database: str) -> None:
    configure_logging()
    home = folder / name
    async with open_scripted(home, FunctionModel(stream_function=answer), database) as hub:

        async def work() -> str:
            with (folder / "begun").open("a") as file:
                file.write(f"{name}\n")
            while not (folder / "may_end").exists():
                await asyncio.sleep(0.05)
            return "worked"

        hub.add_tool(work, annotations=Annotations(read_only=True))
        dispatch = await hub.open_engine()
        print(dispatch.worker, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
