"""Approvals in your program: what an agent wants to change waits for the yes of a person."""

import asyncio

from dragoman import Annotations, Hub
from dragoman.integrations.model_tools import ModelTools

hub = Hub()


@hub.tool(annotations=Annotations(read_only=False, destructive=True))
def delete_file(name: str) -> str:
    """Deletes a file for ever."""
    return f"{name} is gone"


async def person(answer: str) -> None:
    """Stands for whoever your program asks: by a dialog, a message, a page."""
    while not (waiting := await hub.approvals.list()):  # noqa: ASYNC110 - the shortest that works
        await asyncio.sleep(0.1)  # or listen to hub.events() for `approval.requested`
    for one in waiting:
        print("asked:", one.approval.binding.tool, dict(one.asked.arguments))
        await hub.approvals.answer(one.approval.id, answer)


async def main() -> None:
    async with hub:
        agent = ModelTools(hub)  # calls of a model; your own would not be asked for
        for answer, name in (("once", "draft.txt"), ("no", "thesis.txt")):
            reply, _ = await asyncio.gather(agent.call("delete_file", {"name": name}), person(answer))
            print(reply.text)


asyncio.run(main())
