"""Code mode: a program calls many tools in a sandbox, and only what it returns leaves it.

A model writes such code in place of forty calls whose results it would have to read.
"""

import asyncio

from dragoman import Annotations, Hub

hub = Hub()
PRICES = {f"item-{number}": number * 1.5 for number in range(40)}


@hub.tool(annotations=Annotations(read_only=True))
def items() -> list[str]:
    """The names of all items."""
    return [*PRICES]


@hub.tool(annotations=Annotations(read_only=True))
def price(item: str) -> float:
    """The price of an item."""
    return PRICES[item]


CODE = """
total = 0
for item in await items():
    total += await price(item=item)
total
"""


async def main() -> None:
    async with hub:
        output = await hub.code.run(CODE)
        print(output.result if output.ok else output.error)
        print(output.calls, "calls,", output.tokens_outside, "tokens that no model read")
        # Nothing else can be reached from there: no files, no network.
        output = await hub.code.run("open('/etc/passwd').read()")
        print(output.error.code if output.error else "")


asyncio.run(main())
