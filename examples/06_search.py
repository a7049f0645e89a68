"""Search among many tools: a model gets the few that fit, not the definitions of all."""

import asyncio

from dragoman import Annotations, Hub

THINGS = ("invoice", "customer", "parcel", "holiday", "meeting", "server", "song", "recipe")
VERBS = ("create", "find", "delete", "archive", "translate")

hub = Hub()


def add(verb: str, thing: str) -> None:
    def act(name: str) -> str:
        return f"{verb} {thing} {name}"

    hub.add_tool(
        act,
        name=f"{verb}_{thing}",
        description=f"{verb.title()}s one {thing} by its name.",
        annotations=Annotations(read_only=verb == "find"),
    )


async def main() -> None:
    for thing in THINGS:
        for verb in VERBS:
            add(verb, thing)
    async with hub:
        found = await hub.tools.search("look up a bill by its name", limit=3)
        print(found.summary)
        found = await hub.tools.search("delete a parcel", limit=3)
        for hit in found.hits:
            print(hit.tool.name, hit.tool.definition.description)
        # The tools for a prompt, for one request to a model; with a thread they are loaded there.
        resolved = await hub.tools.resolve("please archive the meeting of Monday", max_tools=2)
        print([info.tool.name for info, _ in resolved.hits])


asyncio.run(main())
