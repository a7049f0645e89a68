"""A run acts for its user as the user is now, not as they were when it was accepted."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dragoman import Caller, Hub
from dragoman.people import User, Workspace
from dragoman.settings import Settings
from dragoman.store import open_store
from dragoman.tool import Annotations

pytestmark = pytest.mark.anyio


def cakes() -> int:
    """Counts the cakes."""
    return 1


ANN = Caller(workspace="north", user="ann")  # as she was let in: with all her rights


async def test_what_was_taken_from_a_user_is_taken_from_their_runs(tmp_path: Path, database_url: str) -> None:
    ann = User(id="ann", workspace="north", name="ann")
    async with open_store(database_url) as store:
        await store.people.put_workspace(Workspace(id="north", name="north"))
        await store.people.put_user(ann)
    offered: list[list[str]] = []

    async def listen(_: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        offered.append([tool.name for tool in info.function_tools])
        yield "done"

    settings = Settings(home=tmp_path, database_url=database_url, model="listening")
    async with Hub(settings) as hub:
        hub.models.register("listening", FunctionModel(stream_function=listen))
        hub.tool(name="count_cakes", annotations=Annotations(read_only=True))(cakes)
        assert (await hub.acting_for(ANN).ask("how many?")).status == "done"
        async with open_store(hub.settings.store_url) as store:
            await store.people.put_user(replace(ann, capabilities=frozenset({"mcp_other"}), revision=1))
        hub.authenticator.forget("north", "ann")
        assert (await hub.acting_for(ANN).ask("how many?")).status == "done"
        async with open_store(hub.settings.store_url) as store:
            await store.people.put_user(replace(ann, is_active=False, revision=2))
        hub.authenticator.forget("north", "ann")
        gone = await hub.acting_for(ANN).ask("how many?")
    assert ["count_cakes" in names for names in offered] == [True, False]
    assert (gone.status, gone.error and gone.error.code) == ("failed", "denied")
