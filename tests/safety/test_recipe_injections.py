"""Forty texts that want to be obeyed, as recipes, and a model that obeys: nothing changes without a yes."""

from pathlib import Path

import pytest
from test_injections import ORDERS, open_injected, refused, state, texts

from dragoman.recipe import Recipe

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
QUESTION = "Look whether there is something new"


async def test_a_recipe_that_gives_orders_changes_nothing_without_a_yes(tmp_path: Path) -> None:
    async with open_injected(tmp_path) as (hub, _):
        await hub.people.update_workspace("local", recipes=True)
        before = state(tmp_path)
        for slug in ("email", "chat", "tracker", "tasks"):
            connector = (await hub.connectors.get(slug)).connector.id
            for place, owner in enumerate(("owner", "")):  # their own, and one that is shared
                recipe = Recipe(
                    id=f"recipe_{slug}{place}",
                    workspace="local",
                    owner=owner,
                    connector_id=connector,
                    question=QUESTION,
                    text="\n".join(texts("output")[place::2]),
                    tools=(),
                )
                assert await hub._runtime.store.recipes.put(recipe, 9)
            run, asked = await refused(hub, QUESTION, agent=slug)
            assert run.status == "done", run.error
            own = {tool for tool in ORDERS.values() if tool.startswith(f"mcp_{slug}_")}
            assert asked == own, "each order that the agent has a tool for came to a person, and no other"
            assert "[c99]" not in str(run.answer)
            assert state(tmp_path) == before
        assert [agent.name for agent in await hub.agents.list() if agent.kind == "worker"] == ["mailer"]
