"""Python functions as tools: types become the schema, the docstring the description."""

import asyncio
from typing import Annotated

from pydantic import Field

from dragoman import Annotations, Hub

hub = Hub()


@hub.tool(annotations=Annotations(read_only=True))
def discount(price: float, percent: Annotated[float, Field(ge=0, le=100)] = 10) -> float:
    """The price after a discount."""
    return price * (1 - percent / 100)


async def main() -> None:
    async with hub:
        print((await hub.call("discount", {"price": 200})).result)
        # Arguments are checked before the function sees them.
        output = await hub.call("discount", {"price": 200, "percent": 120})
        print(output.error.code if output.error else "")
        print(hub.tools.get("discount").definition.input_schema["properties"]["percent"])


asyncio.run(main())
