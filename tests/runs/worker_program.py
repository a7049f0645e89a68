"""A process that executes runs: a hub whose one tool works for a second and writes down that it did."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from pydantic_ai.messages import ModelMessage, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from dragoman.tool import Annotations
from runs.scripted import open_scripted, situation


async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    turn, told = situation(messages)
    asked = [part.content for one in messages for part in one.parts if isinstance(part, UserPromptPart)]
    if turn == 0:
        number = str(asked[-1]).split()[1]
        yield {0: DeltaToolCall("work", f'{{"number": {number}}}', tool_call_id="c")}
    else:
        yield f'["{told[0]}"]'


async def main(home: Path, database: str, ready: Path) -> None:
    async with open_scripted(home, FunctionModel(stream_function=answer), database) as hub:

        async def work(number: int) -> str:
            with (home / f"work{number}").open("a") as file:
                file.write("began\n")
            await asyncio.sleep(1)
            with (home / f"work{number}").open("a") as file:
                file.write("ended\n")
            return f"worked {number}"

        hub.add_tool(work, annotations=Annotations(read_only=True))
        await hub.open_engine()
        ready.touch()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
