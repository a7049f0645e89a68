"""Texts that want to be obeyed, as recipes, and a model that obeys: nothing changes without a yes."""

from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest
from test_injections import ORDERS, open_injected, state, texts

from dragoman import Hub
from dragoman.errors import Conflict
from dragoman.recipe import Recipe
from dragoman.run import Run, RunLimits
from servers.hubs import runtime_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
QUESTION = "Look whether there is something new"


async def refused(hub: Hub, agent: str) -> tuple[Run, set[str]]:
    """The run, and what a person was asked for: who says no to all of it, and answers nothing."""
    limits = RunLimits(calls=None, requests=20, tokens=None)
    accepted = await hub.messages.post(QUESTION, agent=agent, limits=limits)
    asked: set[str] = set()
    async for event in hub.runs.follow(accepted.run.id):
        if event.kind == "question.asked":
            with suppress(Conflict):  # the run may have ended meanwhile
                await hub.runs.decline(event.data["question"])
        elif event.kind == "approval.requested":
            approval = (await hub.approvals.get(event.data["approval"])).approval
            asked.add(approval.binding.tool)
            if approval.status == "pending":
                await hub.approvals.answer(approval.id, "no")
    return await hub.runs.get(accepted.run.id), asked


async def test_a_recipe_that_gives_orders_changes_nothing_without_a_yes(tmp_path: Path) -> None:
    async with open_injected(tmp_path) as (hub, _):
        await hub.people.update_workspace("local", recipes=True)
        before = state(tmp_path)
        for slug in ("email", "chat", "tracker", "tasks"):
            connector = (await hub.connectors.get(slug)).connector.id
            own = {tool for tool in ORDERS.values() if tool.startswith(f"mcp_{slug}_")}
            orders = [text for text, tool in zip(texts("output"), cycle(ORDERS.values())) if tool in own]
            for place, owner in enumerate(("owner", "")):  # their own, and one that is shared
                recipe = Recipe(
                    id=f"recipe_{slug}{place}",
                    workspace="local",
                    owner=owner,
                    connector_id=connector,
                    question=QUESTION,
                    text="\n".join(orders[place::2]),
                    tools=(),
                )
                assert await runtime_of(hub).store.recipes.put(recipe, 9)
            run, asked = await refused(hub, slug)
            assert run.status == "done", run.error
            assert asked == own, "some order never came to a person"
            assert "[c99]" not in str(run.answer)
            assert state(tmp_path) == before
        assert [agent.name for agent in await hub.agents.list() if agent.kind == "worker"] == ["mailer"]
