"""For whom a hub acts: bound once, never left out, never with more than the person has; while it is open."""

import ast
import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, Hub, Settings
from dragoman.errors import Denied, NotFound, NotOpen, StoreUnavailable
from dragoman.hub import BoundHub
from dragoman.hub.bound import BoundService
from dragoman.scope import LOCAL_CALLER
from parsed_source import FILES, tree
from servers.hubs import runtime_of

pytestmark = pytest.mark.anyio


def double(number: int) -> int:
    """Doubles."""
    return number * 2


def with_default(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[str]:
    """Parameters that may be left out: the name, and for one that is a `Caller` by its type `caller` too."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    optional = positional[len(positional) - len(given.defaults) :]
    for one in (*optional, *(one for one, value in named if value is not None)):
        yield one.arg
        # The owner of a `Hub` is who opens it: the one place where somebody is the operator by default.
        if one.annotation and ast.unparse(one.annotation) == "Caller" and one.arg != "owner":
            yield "caller"


@pytest.mark.slow
def test_no_function_has_a_caller_that_can_be_left_out() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    found = [
        f"{path.name}:{node.lineno}"
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, functions) and "caller" in with_default(node)
    ]
    assert len(FILES) > 300
    assert found == []


def services() -> list[type[BoundService]]:
    found = [
        inspect.signature(value.fget, eval_str=True).return_annotation
        for value in vars(BoundHub).values()
        if isinstance(value, property) and value.fget
    ]
    return [one for one in found if isinstance(one, type) and issubclass(one, BoundService)]


def test_no_public_method_of_a_service_takes_a_caller_and_no_service_keeps_anything() -> None:
    assert len(services()) >= 19
    for service in services():
        assert service.__slots__ == (), f"{service.__name__} keeps something"
        methods = [
            value for name, value in vars(service).items() if inspect.isfunction(value) and name[0] != "_"
        ]
        takers = [one.__qualname__ for one in methods if "caller" in inspect.signature(one).parameters]
        assert takers == []


async def test_a_bound_hub_acts_for_its_caller_whatever_is_asked_of_it(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        hub.add_tool(double)
        eve = hub.acting_for(Caller(user="eve"))
        assert (await eve.call("double", {"number": 2})).result == 4
        assert [record.user for record in await eve.calls()] == ["eve"]
        assert await hub.calls() == []
        with pytest.raises(Denied):
            await eve.people.add_user("mallory")
        with pytest.raises(Denied):
            await eve.audit.verify()


async def test_a_library_acts_for_a_user_by_name_with_no_more_than_theirs(
    tmp_path: Path, database_url: str
) -> None:
    async with Hub(Settings(home=tmp_path, database_url=database_url)) as hub:
        hub.add_tool(double)
        acme = await hub.people.add_workspace("acme")
        ann = await hub.people.add_user("ann", workspace="acme", capabilities=["mcp_other"])
        await hub.people.add_user("bob", workspace="acme", role="admin")
        hers = await hub.as_user("ann", workspace="acme", thread="t1")
        wanted = Caller(acme.id, ann.id, thread="t1", grants=(frozenset({"mcp_other"}),), manages=True)
        assert hers.caller == wanted
        output = await hers.call("double", {"number": 2})
        assert output.error
        assert output.error.code == "not_found"
        theirs = await hub.as_user("bob", workspace="acme")
        assert (theirs.caller.role, theirs.caller.grants) == ("admin", ())
        assert (await theirs.call("double", {"number": 2})).result == 4
        for missing in ("carol", "owner"):
            with pytest.raises(NotFound, match=missing):
                await hub.as_user(missing, workspace="acme")
        with pytest.raises(NotFound, match="nowhere"):
            await hub.as_user("ann", workspace="nowhere")
        for other in (hers, theirs):
            with pytest.raises(Denied):
                await other.as_user("ann", workspace="acme")
        await hub.people.update_user("ann", workspace="acme", is_active=False)
        with pytest.raises(Denied, match="not active"):
            await hub.as_user("ann", workspace="acme")


# What a thread refuses is refused on the road


class WithoutThreads:
    """A store that cannot say what is active in a thread."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return self if name == "threads" else getattr(self._store, name)

    async def find(self, *key: str) -> None:
        raise StoreUnavailable("the store does not answer")


async def refused_in_thread(hub: Hub, code: str) -> None:
    """Told to who called, recorded, audited, and told to listeners: as every call is."""
    ada = hub.acting_for(replace(LOCAL_CALLER, user="ada", thread="t1"))
    with runtime_of(hub).events.listen("local", "ada") as listener:
        output = await ada.call("double", {"number": 2})
        assert output.error
        assert (output.error.code, output.error.tool) == (code, "double")
        events = aiter(listener)
        kinds = [(await anext(events)).kind for _ in range(2)]
        assert kinds == ["call.started", "call.finished"]
    [record] = await ada.calls()
    assert (record.tool, record.ok, record.code) == ("double", False, code)
    [entry] = await ada.audit.list(action="call")
    assert (entry.subject, entry.outcome, entry.user) == ("double", code, "ada")


async def test_a_connector_that_is_not_active_in_the_thread_is_refused_on_the_road(
    tmp_path: Path, database_url: str
) -> None:
    async with Hub(Settings(home=tmp_path, database_url=database_url)) as hub:
        hub.add_tool(double)
        await hub.acting_for(replace(LOCAL_CALLER, user="ada")).threads.create(connectors=[], id="t1")
        await refused_in_thread(hub, "denied")


async def test_a_thread_that_the_store_cannot_tell_of_is_refused_on_the_road(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        hub.add_tool(double)
        rows: Any = WithoutThreads(runtime_of(hub).store.threads)
        runtime_of(hub).active._rows = rows
        await refused_in_thread(hub, "store_unavailable")
        assert (await hub.call("double", {"number": 2})).result == 4, "outside of threads nobody asks"


async def test_what_a_person_allows_is_checked_again_in_the_thread_as_it_is_then(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path, approval_wait=5.0)) as hub:
        hub.add_tool(double)
        await hub.tools.configure("double", approval="always")
        ada = hub.acting_for(replace(LOCAL_CALLER, user="ada", thread="t1"))
        agent = hub.acting_for(replace(ada.caller, way="agent", agent="helper"))
        await ada.threads.create(id="t1")
        with runtime_of(hub).events.listen("local", "ada") as listener:
            events = aiter(listener)
            call = asyncio.create_task(agent.call("double", {"number": 2}))
            while (await anext(events)).kind != "approval.requested":
                pass
            [asked] = await ada.approvals.list()
            await ada.threads.disable("t1", "native")
            await ada.approvals.answer(asked.approval.id, "once")
            output = await call
        assert output.error
        assert output.error.code == "denied"


# Before it is opened, and after it is closed


async def test_a_hub_that_is_not_open_says_so(tmp_path: Path) -> None:
    hub = Hub(Settings(home=tmp_path))
    hub.tool(double)  # tools may be given before
    bound, connectors = hub.acting_for(Caller(user="eve")), hub.connectors

    async def uses() -> None:
        for use in (
            lambda: hub.call("double", {"number": 2}),
            lambda: hub.ask("hello"),
            lambda: hub.calls(),
            lambda: anext(hub.events()),
            lambda: connectors.list(),
            lambda: hub.connectors.add("x", command="y"),
            lambda: bound.call("double", {"number": 2}),
            lambda: bound.threads.list(),
            lambda: hub.as_user("owner"),
            lambda: hub.check(),
        ):
            with pytest.raises(NotOpen, match="not open") as caught:
                await use()
            assert "async with Hub()" in (caught.value.hint or "")
        with pytest.raises(NotOpen):
            hub.tools.list()

    await uses()
    async with hub:
        assert (await bound.call("double", {"number": 2})).result == 4
    await uses()
    async with hub:  # and it can be opened again
        assert (await hub.call("double", {"number": 3})).result == 6
        assert await connectors.list()
