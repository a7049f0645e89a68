"""Random steps of two processes on one store, against a plain model of what must be true after each.

Every change must be seen by the other process, in time; no change may be lost, also when both change the same
connector at once; nothing that was removed comes back; a process may be killed at any moment.
"""

import asyncio
import os
import random
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from hub_process import OtherHub, RemoteError

from patience import patient
from servers.hubs import QUICK
from servers.processes import stdio

_MOST = 4
_WEIGHTS = {
    "add": 6,
    "describe": 12,
    "both_other": 10,
    "both_same": 8,
    "switch": 12,
    "price": 10,
    "call": 30,
    "remove": 4,
    "kill": 2,
    "kill_changing": 2,
    "restart": 1,
}


@dataclass
class Box:
    """What is known of one connector."""

    description: str = ""
    max_tools: int = 100
    enabled: bool = True
    cost: float = 0.0


@dataclass
class Walk:
    """`limit` is how long a change may take to be seen; `delays` are how long they took.

    Of a `slow` one, it is kept how long a process needed for its answers and how busy the machine was.
    """

    hubs: list[OtherHub]
    seed: int
    limit: float
    boxes: dict[str, Box] = field(default_factory=dict[str, Box])
    done: int = 0
    delays: list[float] = field(default_factory=list[float])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    wrong: list[str] = field(default_factory=list[str])
    slow: list[str] = field(default_factory=list[str])
    added: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.seed} {self.done}")
        self._slowest_answer = 0.0

    async def step(self) -> None:
        names = list(_WEIGHTS) if self.boxes else ["add"]
        if len(self.boxes) >= _MOST:
            names.remove("add")
        name = self.random.choices(names, [_WEIGHTS[one] for one in names])[0]
        self.counts[name] = self.counts.get(name, 0) + 1
        try:
            await getattr(self, f"_{name}")()
            await self._agree(name)
        except (AssertionError, RemoteError, TimeoutError) as error:
            self.wrong.append(f"step {self.done}, {name}: {type(error).__name__} {error}"[:300])
            await self.read_model()
        self.done += 1

    # Steps

    async def _add(self) -> None:
        self.added += 1
        slug = f"box-{self.added}"
        await self._any("connectors.add", slug, **QUICK, **stdio())
        self.boxes[slug] = Box()

    async def _describe(self) -> None:
        slug, box = self._box()
        box.description = f"d{self.done}"
        await self._any("connectors.update", slug, description=box.description, connect=False)

    async def _both_other(self) -> None:
        """At once, and of different fields: both hold."""
        slug, box = self._box()
        box.description, box.max_tools = f"d{self.done}", 50 + self.done % 50
        here, there = self.hubs
        await asyncio.gather(
            here("connectors.update", slug, description=box.description, connect=False),
            there("connectors.update", slug, max_tools=box.max_tools, connect=False),
        )

    async def _both_same(self) -> None:
        """At once, and of the same field: who is told that it worked was not overwritten in that moment."""
        slug, box = self._box()
        wanted = [f"d{self.done}-{number}" for number in range(2)]
        outcomes = await asyncio.gather(
            *(
                hub("connectors.update", slug, description=text, connect=False)
                for hub, text in zip(self.hubs, wanted, strict=True)
            ),
            return_exceptions=True,
        )
        refused = [one for one in outcomes if isinstance(one, BaseException)]
        for one in refused:
            assert isinstance(one, RemoteError), one
            assert one.code == "conflict", one
        assert len(refused) < 2, "one of two must win"
        now = (await self._seen(self.hubs[0]))[slug].description
        won = [text for text, one in zip(wanted, outcomes, strict=True) if not isinstance(one, BaseException)]
        # Where both worked, the later one had seen the other's.
        assert now in won or len(won) == 1, (now, won)
        box.description = won[0] if len(won) == 1 else now

    async def _switch(self) -> None:
        slug, box = self._box()
        box.enabled = not box.enabled
        await self._any(f"connectors.{'enable' if box.enabled else 'disable'}", slug)

    async def _price(self) -> None:
        slug, box = self._box()
        box.cost = float(self.done)
        await self._any("tools.configure", f"mcp_{slug}_echo", cost=box.cost)

    async def _call(self) -> None:
        slug, box = self._box()
        output = await self._any("call", f"mcp_{slug}_echo", {"text": "x"})
        wanted = None if box.enabled else "tool_disabled"
        found = output["error"] and output["error"]["code"]
        assert found == wanted, f"a call ended with {found}, not {wanted}"

    async def _remove(self) -> None:
        slug, _ = self._box()
        del self.boxes[slug]
        await self._any("connectors.remove", slug)
        for hub in self.hubs:
            await self._becomes(lambda hub=hub: self._is_unknown(hub, slug))

    async def _kill(self) -> None:
        hub = self.random.choice(self.hubs)
        await hub.kill()
        await hub.start()

    async def _kill_changing(self) -> None:
        """In the middle of a change: it is made or not, and both say the same."""
        slug, box = self._box()
        here, there = self.random.sample(self.hubs, 2)
        text = f"d{self.done}"
        change = asyncio.ensure_future(here("connectors.update", slug, description=text, connect=False))
        await asyncio.sleep(self.random.uniform(0, 0.05))
        await here.kill()
        with suppress(ValueError, OSError, RemoteError, AssertionError):
            await change
        await here.start()
        now = (await self._seen(here))[slug].description
        assert now in (text, box.description), now
        box.description = now
        await self._becomes(lambda: self._shows(there))

    async def _restart(self) -> None:
        hub = self.random.choice(self.hubs)
        await hub.stop()
        await hub.start()

    # Parts

    def _box(self) -> tuple[str, Box]:
        return self.random.choice([*self.boxes.items()])

    async def _any(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return await self.random.choice(self.hubs)(path, *args, **kwargs)

    async def _agree(self, name: str) -> None:
        started, self._slowest_answer = time.monotonic(), 0.0
        for hub in self.hubs:
            await self._becomes(lambda hub=hub: self._shows(hub))
        if name not in ("call", "kill", "kill_changing", "restart", "remove"):
            delay = time.monotonic() - started
            self.delays.append(delay)
            if delay > self.limit / 2:
                self.slow.append(
                    f"step {self.done}, {name}: {delay:.2f} s, one answer took {self._slowest_answer:.2f} s;"
                    f" load {os.getloadavg()[0]:.1f}"
                )

    async def _becomes(self, holds: Any) -> None:
        """Who is asked in time may answer later: a call may have to load what it needs first."""
        limit = time.monotonic() + patient(self.limit)
        asked_at = time.monotonic()
        while not await holds():
            assert asked_at < limit, f"not seen within {patient(self.limit):g} s"
            await asyncio.sleep(0.02)
            asked_at = time.monotonic()

    async def _shows(self, hub: OtherHub) -> bool:
        return await self._seen(hub) == self.boxes

    async def _is_unknown(self, hub: OtherHub, slug: str) -> bool:
        output = await hub("call", f"mcp_{slug}_echo", {"text": "x"})
        return bool(output["error"]) and output["error"]["code"] == "not_found"

    async def _seen(self, hub: OtherHub) -> dict[str, Box]:
        """What a process says there is; a connector without its tools counts as not yet there."""
        asked_at = time.monotonic()
        costs = {
            tool["slug"]: tool["cost"] for tool in await hub("tools.list") if tool["name"].endswith("_echo")
        }
        found: dict[str, Box] = {}
        for view in await hub("connectors.list"):
            one = view["connector"]
            if one["slug"] in costs:
                most = one["configuration"].get("max_tools", Box.max_tools)
                found[one["slug"]] = Box(one["description"], most, one["enabled"], costs[one["slug"]])
        self._slowest_answer = max(self._slowest_answer, time.monotonic() - asked_at)
        return found

    async def read_model(self) -> None:
        """After a fault: what the first of them says is the truth from now on."""
        with suppress(AssertionError, RemoteError, TimeoutError):
            self.boxes = await self._seen(self.hubs[0])

    def facts(self) -> dict[str, Any]:
        """What another run goes on from."""
        return {
            "seed": self.seed,
            "done": self.done,
            "added": self.added,
            "delays": self.delays,
            "counts": self.counts,
            "wrong": self.wrong,
            "slow": self.slow,
            "boxes": {slug: asdict(box) for slug, box in self.boxes.items()},
        }
