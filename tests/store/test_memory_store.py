"""The seam for another store: the tests of any store, and a journey, on one of plain dictionaries."""

import asyncio
from inspect import signature
from pathlib import Path
from types import ModuleType

import pytest
import test_claimed_runs
import test_listed_runs
import test_listed_threads
import test_removed_runs
import test_stored_agents
import test_stored_bundles
import test_stored_calls
import test_stored_clients
import test_stored_connectors
import test_stored_logins
import test_stored_messages
import test_stored_people
import test_stored_questions
import test_stored_recipes
import test_stored_runs
import test_stored_tools
from memory_store import memory_store

from dragoman import Caller, Hub, Settings
from dragoman.errors import Unauthenticated
from dragoman.scope import LOCAL_USER
from dragoman.store import Store
from servers.hubs import QUICK, until
from servers.processes import journal, stdio
from servers.scenarios import Reply
from servers.scripted_hubs import MODEL, scripted

pytestmark = pytest.mark.anyio

_OF_SQL = {"database_url", "sqlite_url", "postgres_url", "other_store"}
"""What a test asks for that looks into a database, or opens a second process on it."""

_OF_DATABASES = {
    "test_a_message_that_no_database_can_hold_does_not_spoil_the_batch",
    "test_what_no_database_can_keep_of_a_text_is_replaced",
    "test_what_only_a_server_would_write_is_kept_as_it_is",
}
"""A store may replace characters that it cannot hold; this one holds all of them."""


def _take_over(module: ModuleType) -> None:
    for name, test in vars(module).items():
        wanted = set(signature(test).parameters) if name.startswith("test_") and callable(test) else set()
        if "store" in wanted and not wanted & _OF_SQL and name not in _OF_DATABASES:
            globals()[name] = test


for _module in (
    test_claimed_runs,
    test_listed_runs,
    test_listed_threads,
    test_removed_runs,
    test_stored_agents,
    test_stored_bundles,
    test_stored_calls,
    test_stored_clients,
    test_stored_connectors,
    test_stored_logins,
    test_stored_messages,
    test_stored_people,
    test_stored_questions,
    test_stored_recipes,
    test_stored_runs,
    test_stored_tools,
):
    _take_over(_module)


@pytest.fixture
def store() -> Store:
    return memory_store()


async def test_a_hub_works_on_another_store_and_goes_on_with_it(store: Store, tmp_path: Path) -> None:
    settings, log = Settings(home=tmp_path / "home", model=MODEL), tmp_path / "journal"
    agent = Caller(user=LOCAL_USER, agent="mailer", way="agent")
    async with scripted(lambda turn: Reply(text="It is noon.")), Hub(settings, store=store) as hub:
        await hub.connectors.add("raw", **QUICK, **stdio("--journal", str(log)))
        assert (await hub.call("mcp_raw_echo", {"text": "hi"})).result == "hi"

        thread = (await hub.threads.create("noon")).thread.id
        run = await hub.ask("What time is it?", thread=thread)
        assert (run.status, run.answer) == ("done", "It is noon.")
        said = await hub.messages.list(thread)
        assert [(one.number, one.author) for one in said] == [(1, "person"), (2, "agent")]

        call = asyncio.ensure_future(hub.acting_for(agent).call("mcp_raw_send", {"text": "hello"}))
        await until(lambda: _asked(hub))
        [asked] = await hub.approvals.list("pending")
        assert journal(log) == []
        await hub.approvals.answer(asked.approval.id, "once")
        assert (await call).result == "sent hello"
        assert journal(log) == ["hello"]

        _, key = await hub.people.add_key("laptop")
        assert (await hub.authenticator.admit(key)).caller.user == LOCAL_USER
        with pytest.raises(Unauthenticated):
            await hub.authenticator.admit(key[:-1] + "!")
    async with Hub(settings, store=store) as hub:
        assert (await hub.call("mcp_raw_echo", {"text": "again"})).result == "again"
        assert [one.tool for one in await hub.calls()] == [
            "mcp_raw_echo",
            "mcp_raw_send",
            "mcp_raw_echo",
        ]
        assert (await hub.audit.verify()).is_whole
    assert not [*settings.home.glob("*.db")]


async def _asked(hub: Hub) -> bool:
    return bool(await hub.approvals.list("pending"))
