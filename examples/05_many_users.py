"""Many users of one hub: each has their own tools, rights and limits, and nobody sees another's."""

import asyncio
from dataclasses import replace

from dragoman import Annotations, Hub, Settings

hub = Hub(replace(Settings.load(), multi_user=True))


@hub.tool(annotations=Annotations(read_only=True))
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sun in {city}"


async def main() -> None:
    async with hub:
        if "acme" not in {workspace.name for workspace in await hub.people.workspaces()}:
            acme = await hub.people.add_workspace("acme")
            await hub.people.add_user("ann", workspace=acme.id, limits={"calls_per_hour": 2})
            await hub.people.add_user("bob", workspace=acme.id, capabilities=[])

        ann = await hub.as_user("ann", workspace="acme")
        for city in ("Rome", "Oslo", "Lima"):
            output = await ann.call("weather", {"city": city})
            print("ann:", output.result or (output.error and output.error.code))

        bob = await hub.as_user("bob", workspace="acme")
        print("bob:", [tool.name for tool in bob.tools.list()])


asyncio.run(main())
