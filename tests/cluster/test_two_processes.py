"""Two processes on one store: what one changes, the other knows within a second (PostgreSQL: within 2.5)."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hub_process import OtherHub, open_other, secret

from cluster.nats_server import NatsServer
from dragoman import Caller, Hub
from dragoman.errors import Unauthenticated
from dragoman.events import Event
from dragoman.recipe import Recipe
from dragoman.scope import LOCAL_CALLER
from dragoman.store.records import ChangeKind
from oauth.journey import open_scene
from patience import until
from servers.hubs import QUICK, open_hub, runtime_of
from servers.processes import stdio
from servers.toolbox import digest

pytestmark = pytest.mark.anyio
ECHO = "mcp_box_echo"
AGENT = Caller(user="owner", agent="clerk", way="agent")


@dataclass
class Pair:
    """`other` is the process where something is changed, `hub` the one that must see it."""

    other: OtherHub
    hub: Hub
    limit: float
    heard: list[Event]

    async def sees(self, holds: Callable[[], Awaitable[bool] | bool]) -> None:
        await until(holds, self.limit)

    async def hears(self, kind: str, **data: Any) -> None:
        def is_heard() -> bool:
            told = [event for event in self.heard if event.kind == kind]
            return any(data.items() <= dict(event.data).items() for event in told)

        await self.sees(is_heard)

    async def outcome(self, tool: str, caller: Caller = LOCAL_CALLER, **arguments: Any) -> str:
        output = await self.hub.acting_for(caller).call(tool, arguments)
        return "ok" if output.error is None else output.error.code

    async def becomes(self, code: str, tool: str, caller: Caller = LOCAL_CALLER, **arguments: Any) -> None:
        async def is_so() -> bool:
            return await self.outcome(tool, caller, **arguments) == code

        await self.sees(is_so)


@asynccontextmanager
async def open_pair(home: Path, url: str, **settings: Any) -> AsyncGenerator[Pair]:
    facts: dict[str, Any] = {"database_url": url, "approval_wait": 20.0, **settings}
    limit = 1.0 if url.startswith("sqlite") else 2.5
    async with open_hub(home, **facts) as hub, open_other(home=str(home), **facts) as other:
        heard: list[Event] = []

        async def listen() -> None:
            async for event in hub.events():
                heard.append(event)

        listening = asyncio.ensure_future(listen())
        try:
            yield Pair(other, hub, limit, heard)
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening


async def connectors(pair: Pair) -> None:
    other = pair.other
    await other("connectors.add", "box", **QUICK, **stdio())
    await pair.becomes("ok", ECHO, text="x")
    await pair.hears("connector.registered", enabled=True)
    await pair.hears("tools.changed")
    assert [hit.tool.name for hit in (await pair.hub.tools.search("echo")).hits][:1] == [ECHO]
    await other("connectors.update", "box", description="a box", connect=False)

    async def is_described() -> bool:
        return (await pair.hub.connectors.get("box")).connector.description == "a box"

    await pair.sees(is_described)
    await other("connectors.disable", "box")
    await pair.becomes("tool_disabled", ECHO, text="x")
    await pair.hears("connector.updated", enabled=False)
    await other("connectors.enable", "box")
    await pair.becomes("ok", ECHO, text="x")
    await other("connectors.add", "gone", **QUICK, **stdio())
    await pair.becomes("ok", "mcp_gone_echo", text="x")
    await other("connectors.remove", "gone")
    await pair.becomes("not_found", "mcp_gone_echo", text="x")
    await pair.hears("connector.removed")


async def tools(pair: Pair) -> None:
    await pair.other("tools.disable", ECHO)
    await pair.becomes("tool_disabled", ECHO, text="x")
    await pair.other("tools.enable", ECHO)
    await pair.becomes("ok", ECHO, text="x")
    await pair.other("tools.configure", ECHO, cost=2.5)
    await pair.sees(lambda: pair.hub.tools.get(ECHO).cost == 2.5)


async def credentials(pair: Pair) -> None:
    """The connection that was opened with what was brought before is not used any more."""
    tool = "mcp_own_environment"
    await pair.other("connectors.add", "own", **QUICK, **stdio(), personal=["env:WHO"], shared=True)

    async def is_known_as(who: str) -> bool:
        output = await pair.hub.call(tool, {})
        return output.error is None and output.result["digests"].get("WHO") == digest(who)

    for who in ("ann", "bob"):
        await pair.other("credentials.set", "own", {"env:WHO": secret(who)})
        await pair.sees(lambda who=who: is_known_as(who))
    await pair.hears("credential.changed", action="set")
    await pair.other("credentials.remove", "own")
    await pair.becomes("needs_auth", tool)
    await pair.hears("credential.changed", action="removed")


async def workspaces(pair: Pair) -> None:
    async def approval() -> str:
        return (await runtime_of(pair.hub).directory.of(LOCAL_CALLER)).workspace.approval

    for wanted in ("always", "default"):
        await approval()
        await pair.other("people.update_workspace", "local", approval=wanted)
        await pair.sees(lambda wanted=wanted: _equals(approval(), wanted))


async def users(pair: Pair) -> None:
    added = await pair.other("people.add_user", "ann")
    find = runtime_of(pair.hub).directory.find
    await pair.sees(lambda: _holds(find("local", added["id"]), lambda person: person is not None))
    await pair.other("people.update_user", "ann", role="admin")
    await pair.sees(lambda: _holds(find("local", added["id"]), lambda person: person.user.role == "admin"))
    await pair.other("preferences.update", auto_load=False)
    await pair.hears("preferences.changed", changed=["auto_load"])
    await pair.other("preferences.update", auto_load=None)


async def keys(pair: Pair) -> None:
    key, token = await pair.other("people.add_key", "laptop")
    admit = pair.hub.authenticator.admit
    assert (await admit(token)).caller.user == "owner"
    await pair.other("people.revoke_key", key["id"])

    async def is_refused() -> bool:
        try:
            await admit(token)
        except Unauthenticated:
            return True
        return False

    await pair.sees(is_refused)


async def threads(pair: Pair) -> None:
    await pair.other("threads.create", id="t")
    await pair.hears("thread.changed", thread="t", what="created")
    inside = replace(LOCAL_CALLER, thread="t")
    assert await pair.outcome(ECHO, inside, text="x") == "ok"
    await pair.other("threads.set", "t", [])
    await pair.becomes("denied", ECHO, inside, text="x")
    await pair.hears("thread.changed", thread="t", what="changed", connectors=[])
    await pair.other("threads.set", "t", None)


async def loaded_tools(pair: Pair) -> None:
    await pair.other("tools.load", [ECHO], thread="t")
    await pair.sees(lambda: pair.hub.tools.loaded("t") == (ECHO,))
    await pair.hears("tools.loaded", thread="t", tools=[ECHO])
    await pair.other("tools.unload", [ECHO], thread="t")
    await pair.sees(lambda: pair.hub.tools.loaded("t") == ())
    await pair.hears("tools.unloaded", thread="t", tools=[ECHO])


async def agents(pair: Pair) -> None:
    find = pair.hub.agents.find
    assert await find("clerk") is None
    await pair.other("agents.create", "clerk")
    await pair.sees(lambda: _holds(find("clerk"), lambda agent: agent is not None))
    await pair.hears("agent.changed", name="clerk", what="created")
    await pair.other("agents.stop", "clerk")
    await pair.sees(lambda: _holds(find("clerk"), lambda agent: agent.status == "stopped"))
    await pair.other("agents.remove", "clerk")
    await pair.sees(lambda: _holds(find("clerk"), lambda agent: agent is None))
    await pair.hears("agent.changed", name="clerk", what="removed")


async def approvals(pair: Pair) -> None:
    call = asyncio.ensure_future(pair.outcome("mcp_box_send", AGENT, text="x"))
    pending: list[Any] = []

    async def is_asked() -> bool:
        pending[:] = await pair.other("approvals.list")
        return len(pending) == 1

    await until(is_asked)
    await pair.other("approvals.answer", pending[0]["approval"]["id"], "once")
    await pair.sees(call.done)
    assert await call == "ok"
    await pair.hears("approval.answered", answer="once")


async def recipes(pair: Pair) -> None:
    box = (await pair.hub.connectors.get("box")).connector.id
    recipe = Recipe(
        id="recipe_1",
        workspace="local",
        owner="owner",
        connector_id=box,
        question="q",
        text="1.",
        tools=(ECHO,),
    )
    await runtime_of(pair.hub).store.recipes.put(recipe, 1)
    await pair.hub.people.update_workspace("local", recipes=True)

    async def has(**texts: str) -> bool:
        found = {one.recipe.id: one.recipe.text for one in await pair.hub.recipes.list()}
        return found == texts

    await pair.other("recipes.edit", "recipe_1", text="2.")
    await pair.sees(lambda: has(recipe_1="2."))
    await pair.hears("recipe.changed", id="recipe_1", what="edited")
    await pair.other("recipes.share", "recipe_1", text="3.")
    await pair.sees(lambda: has(recipe_1="2.", shared_1="3."))
    await pair.hears("recipe.changed", id="shared_1", what="shared")
    await pair.other("recipes.delete", "recipe_1")
    await pair.sees(lambda: has(shared_1="3."))
    await pair.hears("recipe.changed", id="recipe_1", what="deleted")


async def bundles(pair: Pair) -> None:
    await pair.other("bundles.create", "some", ["box__echo"])
    inside = pair.hub.acting_for(LOCAL_CALLER.within(["bundle:me/some"])).tools

    def shows(*names: str) -> bool:
        return [tool.name for tool in inside.list()] == [*names]

    await pair.sees(lambda: shows(ECHO))
    await pair.hears("bundle.changed", name="some", what="created")
    await pair.other("bundles.override", "some", ECHO, title="Say it", parameters={"text": {"name": "words"}})
    await pair.sees(lambda: inside.get(ECHO).title == "Say it")
    await pair.hears("bundle.changed", name="some", what="updated")
    await pair.other("bundles.remove", "some")
    await pair.sees(shows)
    await pair.hears("bundle.changed", name="some", what="removed")


async def model_providers(pair: Pair) -> None:
    """From the next run on, in every process; the workspace's choice too."""

    async def answers(name: str) -> bool:
        return (await pair.hub.models.choose()).name == name

    address = {"kind": "openai-compatible", "url": "http://127.0.0.1:9/v1"}
    before = (await pair.hub.models.choose()).name
    await pair.other("models.set_provider", "lab", **address, model="one", key="sk-canary")
    await pair.sees(lambda: answers("lab:one"))
    await pair.other("models.set_provider", "lab", model="two")
    await pair.sees(lambda: answers("lab:two"))
    await pair.other("models.set_default", "lab:three")
    await pair.sees(lambda: answers("lab:three"))
    await pair.other("models.set_default", None)
    await pair.other("models.remove_provider", "lab")
    await pair.sees(lambda: answers(before))


async def rollout(pair: Pair) -> None:
    way = runtime_of(pair.hub).rollout.way_of
    assert await way(LOCAL_CALLER) == ("agents", False)
    await pair.other("rollout.set", share=100.0)
    await pair.sees(lambda: _equals(way(LOCAL_CALLER), ("agents", True)))
    await pair.hears("rollout.changed", what="set")


async def _is_connected(pair: Pair) -> bool:
    return (await pair.hub.cluster.status()).is_connected


async def _equals(found: Awaitable[object], wanted: object) -> bool:
    return await found == wanted


async def _holds(found: Awaitable[Any], is_so: Callable[[Any], bool]) -> bool:
    return is_so(await found)


# In this order: what is added first is used by the others.
KINDS: dict[ChangeKind, Callable[[Pair], Awaitable[None]]] = {
    "connector": connectors,
    "tools": tools,
    "credential": credentials,
    "workspace": workspaces,
    "user": users,
    "key": keys,
    "thread": threads,
    "loaded_tools": loaded_tools,
    "agent": agents,
    "approval": approvals,
    "recipe": recipes,
    "bundle": bundles,
    "model_provider": model_providers,
    "rollout": rollout,
}


# Of sessions and waiting requests of MCP clients: seen by nodes in test_sessions_anywhere.py.
OF_CLIENTS: set[ChangeKind] = {"client_session", "one_time_value"}


@pytest.mark.slow
async def test_every_kind_of_change_in_one_process_is_seen_in_the_other(
    tmp_path: Path, database_url: str
) -> None:
    assert KINDS.keys() | OF_CLIENTS == {*get_args(ChangeKind)}, (
        "a kind that no other process is seen to hear of"
    )
    async with open_pair(tmp_path / "home", database_url) as pair:
        for change in KINDS.values():
            await change(pair)


async def test_where_nodes_tell_each_other_a_change_is_seen_before_anybody_would_look(
    tmp_path: Path, postgres_url: str
) -> None:
    """By NATS: then the store is asked only every five seconds unless somebody says that there is news."""
    async with (
        NatsServer(tmp_path) as server,
        open_pair(tmp_path / "home", postgres_url, cluster_url=(server.url,)) as pair,
    ):
        await until(lambda: _is_connected(pair))
        await connectors(pair)
        await keys(pair)


async def test_an_authorisation_that_is_removed_elsewhere_is_used_no_more(
    tmp_path: Path, database_url: str
) -> None:
    """A bearer holds its token in memory: it is dropped, and the connection that was opened with it too."""
    async with open_scene(tmp_path, database_url) as scene, Hub(scene.hub.settings) as second:
        await scene.add()
        await scene.authorise()
        pair = Pair(OtherHub({}), second, 1.0 if database_url.startswith("sqlite") else 2.5, [])
        await pair.becomes("ok", "mcp_notes_echo", text="x")
        await scene.hub.credentials.remove("notes")
        await pair.becomes("needs_auth", "mcp_notes_echo", text="x")
        bearers = runtime_of(second).authorizations._bearers.values()
        assert all(bearer._tokens is None for bearer in bearers)
