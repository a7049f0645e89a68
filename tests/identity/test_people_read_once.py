"""Many calls of one person at once: the store is asked once, and a change is never overlooked."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from dragoman.identity.directory import Directory
from dragoman.people import User, Workspace
from dragoman.scope import Caller
from dragoman.store import Store, open_store

pytestmark = pytest.mark.anyio
ADA = Caller(workspace="acme", user="ada")
BOB = Caller(workspace="acme", user="bob")


class CountedPeople:
    """The store's people, each reading counted and held until `go`."""

    def __init__(self, store: Store) -> None:
        self._people = store.people
        self.users = self.workspaces = 0
        self.go = asyncio.Event()
        self.go.set()

    async def find_user(self, workspace: str, user: str) -> User | None:
        self.users += 1
        found = await self._people.find_user(workspace, user)
        await self.go.wait()
        return found

    async def find_workspace(self, workspace: str) -> Workspace | None:
        self.workspaces += 1
        found = await self._people.find_workspace(workspace)
        await self.go.wait()
        return found


@pytest.fixture
async def people(sqlite_url: str) -> AsyncGenerator[CountedPeople]:
    async with open_store(sqlite_url) as store:
        await store.people.put_workspace(Workspace(id="acme", name="Acme"))
        await store.people.put_user(User(id="ada", workspace="acme", name="Ada"))
        yield CountedPeople(store)


async def test_fifty_at_once_read_a_person_once(people: CountedPeople) -> None:
    directory = Directory(people)  # pyright: ignore[reportArgumentType] - two of its methods are enough
    found = await asyncio.gather(*(directory.of(ADA) for _ in range(50)))
    assert {one.user.name for one in found} == {"Ada"}
    assert (people.users, people.workspaces) == (1, 1)


async def test_fifty_at_once_without_a_record_read_their_workspace_once(people: CountedPeople) -> None:
    directory = Directory(people)  # pyright: ignore[reportArgumentType]
    await asyncio.gather(*(directory.of(BOB) for _ in range(50)))
    assert (people.users, people.workspaces) == (1, 1)


async def test_who_asks_after_a_change_gets_no_reading_from_before_it(people: CountedPeople) -> None:
    directory = Directory(people)  # pyright: ignore[reportArgumentType]
    people.go.clear()
    async with asyncio.TaskGroup() as tasks:
        before = tasks.create_task(directory.of(ADA))
        while not people.users:
            await asyncio.sleep(0)
        directory.forget("acme", "ada")
        after = tasks.create_task(directory.of(ADA))
        while people.users < 2:
            await asyncio.sleep(0)
        people.go.set()
    assert before.result().user == after.result().user
    assert people.users == 2


async def test_who_goes_away_leaves_the_others_their_answer(people: CountedPeople) -> None:
    directory = Directory(people)  # pyright: ignore[reportArgumentType]
    people.go.clear()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(directory.of(ADA))
        while not people.users:
            await asyncio.sleep(0)
        second = tasks.create_task(directory.of(ADA))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        people.go.set()
    assert first.cancelled()
    assert second.result().user.name == "Ada"
    assert people.users == 1


async def test_a_workspace_is_read_once_until_it_changes(people: CountedPeople) -> None:
    directory = Directory(people)  # pyright: ignore[reportArgumentType]
    assert [await directory.model_of("acme") for _ in range(3)] == [None] * 3
    await directory.hooks_of("acme")
    assert people.workspaces == 1
    directory.forget("acme")
    people.go.clear()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(directory.model_of("acme"))
        while people.workspaces < 2:
            await asyncio.sleep(0)
        directory.forget("acme")  # while it is read: what was read counts for nobody else
        people.go.set()
    await directory.model_of("acme")
    assert people.workspaces == 3
