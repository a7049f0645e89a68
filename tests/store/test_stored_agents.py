import asyncio
from dataclasses import replace

import pytest
from run_values import LATER, a_run, accept, add_numbers, an_agent
from store_values import NOON

from dragoman.agent import AgentNumbers
from dragoman.errors import Conflict
from dragoman.store import Store, open_store

pytestmark = pytest.mark.anyio

FULL = an_agent(
    owner="ann",
    status="stopped",
    description="Knows the time.",
    instructions="Be brief.",
    model="openai:gpt-test",
    fallbacks=("b", "a"),
    capabilities=frozenset({"finance", "mcp_time"}),
    connectors=("time", "files"),
    connector_id="con_time",
    exposure="delegate",
)


async def test_agents_come_back_as_they_were_by_name(store: Store) -> None:
    plain, empty = an_agent("apple"), an_agent("pear", capabilities=frozenset(), connectors=())
    for agent in (empty, FULL, plain):
        await store.agents.put(agent)
    assert await store.agents.list("local") == [plain, FULL, empty]
    assert await store.agents.find("local", FULL.id) == FULL
    assert await store.agents.find("other", FULL.id) is None
    changed = replace(FULL, name="zoe", model=None, revision=1)
    await store.agents.put(changed)
    assert await store.agents.list("local") == [plain, empty, changed]


async def test_agents_of_another_workspace_are_not_listed_and_not_removed(store: Store) -> None:
    await store.agents.put(an_agent())
    await store.agents.put(an_agent(workspace="other"))
    await store.agents.remove("other", "agent_pear")
    assert await store.agents.list("other") == [an_agent(workspace="other")]
    assert len(await store.agents.list()) == 2
    await store.agents.remove("other", "agent_clerk")
    assert await store.agents.list() == [an_agent()]


async def test_a_name_belongs_to_one_agent_of_an_owner(store: Store) -> None:
    await store.agents.put(an_agent())
    with pytest.raises(Conflict, match="clerk") as refused:
        await store.agents.put(an_agent(id="agent_2"))
    assert refused.value.hint
    await store.agents.put(an_agent(id="agent_2", owner="ann"))
    assert len(await store.agents.list("local")) == 2


async def test_numbers_of_two_processes_add_up(store: Store, database_url: str) -> None:
    one = AgentNumbers(
        runs=1, errors=1, calls=2, milliseconds=2.5, input_tokens=2**31, output_tokens=4, cost=0.25
    )
    moments = [None, LATER, NOON, None]
    await accept(store, a_run())
    async with open_store(database_url) as other:
        await asyncio.gather(
            *(
                add_numbers(where, a_run(), "agent_clerk", replace(one, last_used=moment))
                for where in (store, other)
                for moment in moments
            )
        )
    total = AgentNumbers(
        runs=8, errors=8, calls=16, milliseconds=20.0, input_tokens=2**34, output_tokens=32, cost=2.0
    )
    assert await store.agents.numbers("local") == {"agent_clerk": replace(total, last_used=LATER)}
    assert await store.agents.numbers("other") == {}


async def test_an_agent_that_is_removed_takes_its_numbers_along(store: Store) -> None:
    await store.agents.put(an_agent())
    for workspace in ("local", "other"):
        run = (await accept(store, a_run(workspace=workspace))).run
        await add_numbers(store, run, "agent_clerk", AgentNumbers(runs=1))
    await store.agents.remove("other", "agent_clerk")
    assert len(await store.agents.numbers("local")) == 1
    await store.agents.remove("local", "agent_clerk")
    assert await store.agents.numbers("local") == {}
    assert await store.agents.numbers("other") == {}
