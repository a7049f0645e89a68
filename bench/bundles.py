"""Whether overrides survive what servers do: a bundle of 200 tools, 50 of them overridden, over four servers.

Each step is a random refresh: tools go, come back, change their description or their schema; a connector gets
another name; the catalog is loaded anew, as after a restart. After each the bundle is compared with what it
must show, worked out here from the servers' lists alone. Prints how many steps of each kind there were, and
how long a look at the whole bundle takes after a change.

    python bench/bundles.py [--steps 1000] [--seed 7] [--json]
"""

import argparse
import asyncio
import json
import random
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from dragoman.bundle import EVERY_TOOL, Bundle, BundleEntry
from dragoman.catalog import Catalog
from dragoman.connections.source import Listing
from dragoman.connector import Configuration, Connector
from dragoman.events import Events
from dragoman.scope import Caller
from dragoman.store import Store, open_store
from dragoman.tool import ToolDefinition

SERVERS, TOOLS, OVERRIDES = 4, 50, 50
WORKSPACE = "local"
ANN = Caller(user="ann").within(["bundle:many"])
Schema = dict[str, Any]


def plain_schema(number: int) -> Schema:
    """Each tool has an address that bundles fix, a text that they rename, and a number with a default."""
    return {
        "type": "object",
        "properties": {
            "place": {"type": "string"},
            "text": {"type": "string", "description": f"text {number}"},
            "count": {"type": "integer", "minimum": 1},
        },
        "required": ["place", "text"],
    }


def broken_schema(number: int) -> Schema:
    """A place is a number now: what bundles fix of it is refused."""
    schema = plain_schema(number)
    return {**schema, "properties": {**schema["properties"], "place": {"type": "integer"}}}


def poor_schema(number: int) -> Schema:
    """It has no text any more: a new name for it says nothing, and does no harm."""
    properties = {key: value for key, value in plain_schema(number)["properties"].items() if key != "text"}
    return {"type": "object", "properties": properties, "required": ["place"]}


SHAPES = {"plain": plain_schema, "broken": broken_schema, "poor": poor_schema}


class Trial:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kinds: Counter[str] = Counter()
        self.looks: list[float] = []
        self.connectors = [
            Connector(
                id=f"con_{number}",
                workspace=WORKSPACE,
                owner="",
                slug=f"server-{number}",
                configuration=Configuration.model_validate({"command": "server"}),
            )
            for number in range(SERVERS)
        ]
        # What each server lists now, by own name: how often it was described anew, and its shape.
        self.lists: list[dict[str, tuple[int, str]]] = [
            {f"tool_{number}": (0, "plain") for number in range(TOOLS)} for _ in range(SERVERS)
        ]
        self.overridden = {
            (f"con_{number % SERVERS}", f"tool_{number // SERVERS}"): number for number in range(OVERRIDES)
        }
        self.bundle = Bundle(workspace=WORKSPACE, owner="", name="many", tools=(*self._entries(),))

    def _entries(self) -> list[BundleEntry]:
        """Of two servers every tool, of the others each by its name."""
        entries = [
            BundleEntry.model_validate({"connector": connector, "tool": tool, **self.override(number)})
            for (connector, tool), number in self.overridden.items()
        ]
        entries += [BundleEntry(connector=f"con_{number}", tool=EVERY_TOOL) for number in (0, 1)]
        return entries + [
            BundleEntry(connector=f"con_{number}", tool=f"tool_{tool}")
            for number in (2, 3)
            for tool in range(TOOLS)
            if (f"con_{number}", f"tool_{tool}") not in self.overridden
        ]

    def override(self, number: int) -> dict[str, Any]:
        parameters = {
            "text": {"name": "words"},
            "place": {"value": f"place {number}"},
            "count": {"default": 3},
        }
        return {"name": f"ours_{number}", "description": f"Ours {number}", "parameters": parameters}

    async def run(self, store: Store, steps: int) -> None:
        for connector in self.connectors:
            await store.connectors.add(connector, [])
        await store.bundles.put(self.bundle, 1)
        catalog = await Catalog.load(store, Events())
        for number in range(SERVERS):
            await self.refresh(catalog, number)
        self.check(catalog)
        for _ in range(steps):
            catalog = await self.step(catalog, store)
            self.check(catalog)

    async def step(self, catalog: Catalog, store: Store) -> Catalog:
        kind = self.random.choices(
            ["removed", "returned", "described", "changed", "renamed", "unchanged", "restarted"],
            [20, 25, 15, 25, 8, 5, 2],
        )[0]
        self.kinds[kind] += 1
        if kind == "restarted":
            return await Catalog.load(store, Events())
        number = self.random.randrange(SERVERS)
        if kind == "renamed":
            before = self.connectors[number]
            slug = f"server-{number}-{self.random.randrange(1000)}"
            after = replace(before, slug=slug, revision=before.revision + 1)
            self.connectors[number] = after
            catalog.adopt(after)
            return catalog
        listed = self.lists[number]
        for _ in range(self.random.randint(1, 10)):
            name = f"tool_{self.random.randrange(TOOLS)}"
            described, shape = listed.get(name, (0, "plain"))
            if kind == "removed":
                listed.pop(name, None)
            elif kind == "returned":
                listed.setdefault(name, (described, self.random.choice([*SHAPES])))
            elif kind == "described" and name in listed:
                listed[name] = (described + 1, shape)
            elif kind == "changed" and name in listed:
                listed[name] = (described, self.random.choice([*SHAPES]))
        await self.refresh(catalog, number)
        return catalog

    async def refresh(self, catalog: Catalog, number: int) -> None:
        definitions = [
            ToolDefinition(
                original_name=name,
                description=f"{name} for the {described}. time",
                input_schema=SHAPES[shape](int(name.removeprefix("tool_"))),
            )
            for name, (described, shape) in self.lists[number].items()
        ]
        await catalog.refresh(self.connectors[number], Listing(tools=tuple(definitions)))

    def check(self, catalog: Catalog) -> None:
        """Every entry is there, shown as it should be or said to be broken; and nothing else is."""
        began = perf_counter()
        shown = catalog.show_bundle(self.bundle, ANN)
        self.looks.append((perf_counter() - began) * 1000)
        by_key = {}
        for one in shown.entries:
            key = (one.entry.connector, one.base.original_name if one.base else one.entry.tool)
            assert key not in by_key, f"{key} is there twice"
            by_key[key] = one
        expected = 0
        for number, listed in enumerate(self.lists):
            for tool in range(TOOLS):
                key = (f"con_{number}", f"tool_{tool}")
                place = self.overridden.get(key)
                state = listed.get(key[1])
                if state is None:
                    if place is not None or number > 1:
                        assert by_key[key].tool is None, key
                        assert "does not offer" in by_key[key].problems[0]
                    continue
                if place is None:
                    assert by_key[key].tool is not None, (key, by_key[key].problems)
                    assert by_key[key].tool.definition.description == f"{key[1]} for the {state[0]}. time"
                elif state[1] == "broken":
                    assert (by_key[key].tool, len(by_key[key].problems)) == (None, 1), key
                    continue
                else:
                    self.check_override(by_key[key].tool, place, state[1], key)
                expected += 1
        assert len(shown.tools) == expected == len(catalog.list(ANN))

    def check_override(self, tool: Any, place: int, shape: str, key: tuple[str, str]) -> None:
        assert tool is not None, key
        assert (tool.name, tool.definition.description) == (f"ours_{place}", f"Ours {place}")
        names = {"count"} if shape == "poor" else {"count", "words"}
        assert {*tool.definition.input_schema["properties"]} == names
        given = dict.fromkeys(names - {"count"}, "x")
        sent = {"place": f"place {place}", "count": 3, **({"text": "x"} if shape != "poor" else {})}
        assert tool.bundled.arguments(given) == sent


async def tried(steps: int, seed: int) -> dict[str, Any]:
    trial = Trial(seed)
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(f"sqlite:///{Path(folder) / 'store.db'}") as store:
            await trial.run(store, steps)
    return {
        "steps": steps,
        "seed": seed,
        "kinds": dict(sorted(trial.kinds.items())),
        "look_ms": round(median(trial.looks), 2),
        "kept": True,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = asyncio.run(tried(options.steps, options.seed))
    if options.json:
        print(json.dumps(report))
    else:
        kinds = ", ".join(f"{name} {count}" for name, count in report["kinds"].items())
        print(f"{report['steps']:,} steps ({kinds}): overrides are kept; a look takes {report['look_ms']} ms")


if __name__ == "__main__":
    main()
