"""UserLimits on the whole road, with real hubs: never more than allowed, by one process or by two."""

import asyncio
import time
from pathlib import Path

import pytest
from crowd import (
    ADA,
    away_from_the_end_of_the_hour,
    called_at_once,
    crowd_process,
    made_call,
    made_connector,
    made_tool,
    out_of,
    put_user,
    soon,
    tell,
)

from dragoman import Caller, Hub, Settings
from dragoman.access import Budgets
from dragoman.errors import LimitReached
from dragoman.identity.directory import Directory
from dragoman.store import open_store
from patience import deadline

pytestmark = pytest.mark.anyio


async def test_fifty_callers_at_once_get_exactly_what_the_hour_allows(
    tmp_path: Path, database_url: str
) -> None:
    ran = 0

    async def work() -> str:
        nonlocal ran
        ran += 1
        await asyncio.sleep(0.01)
        return "done"

    await away_from_the_end_of_the_hour()
    await put_user(database_url, calls_per_hour=20)
    async with Hub(Settings(home=tmp_path, database_url=database_url)) as hub:
        hub.add_tool(work)
        outputs = await called_at_once(hub, 50)
        others = await called_at_once(hub, 5, Caller(workspace="acme", user="bob"))
        same_name = await called_at_once(hub, 5, Caller(workspace="other", user="ada"))
        used = await hub.acting_for(ADA).usage.show()
    assert ran == 30
    assert sum(output.ok for output in outputs) == 20
    assert all(output.ok for output in (*others, *same_name)), "the limit is one user's"
    error = next(output.error for output in outputs if not output.ok)
    assert error
    assert (error.code, error.retryable) == ("limit_reached", True)
    assert error.message == "the limit of 20 calls an hour is reached"
    assert "set by an admin" in (error.hint or "")
    assert "hub.usage.show()" in (error.hint or "")
    assert error.retry_after is not None
    assert 0 < error.retry_after <= 3600
    [use] = [one for one in used.uses if one.name == "calls_per_hour"]
    assert (use.used, use.limit, use.set_by) == (20, 20, "an admin")


async def test_two_processes_together_get_exactly_what_the_hour_allows(
    tmp_path: Path, postgres_url: str
) -> None:
    await away_from_the_end_of_the_hour()
    await put_user(postgres_url, calls_per_hour=20)
    with (
        crowd_process(tmp_path, postgres_url, 25) as one,
        crowd_process(tmp_path, postgres_url, 25) as other,
    ):
        tell(one)
        tell(other)
        ran = [int(out_of(process).readline()) for process in (one, other)]
    assert sum(ran) == 20


async def test_no_more_calls_of_a_user_run_at_once_than_allowed(tmp_path: Path, database_url: str) -> None:
    running = most = 0

    async def work() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return "done"

    async def persistent() -> None:
        while not (output := await hub.acting_for(ADA).call("work")).ok:
            assert output.error
            assert (output.error.code, output.error.retry_after) == ("limit_reached", 1.0)
            await asyncio.sleep(0.01)

    await put_user(database_url, max_concurrency=3)
    async with Hub(Settings(home=tmp_path, database_url=database_url)) as hub:
        hub.add_tool(work)
        async with deadline(30):
            await asyncio.gather(*(persistent() for _ in range(12)))
    assert most <= 3
    assert most > 1


async def test_a_cancelled_call_gives_its_place_back(tmp_path: Path, database_url: str) -> None:
    begun = asyncio.Event()
    go = asyncio.Event()

    async def work() -> str:
        begun.set()
        await go.wait()
        return "done"

    await put_user(database_url, max_concurrency=1)
    async with Hub(Settings(home=tmp_path, database_url=database_url)) as hub:
        hub.add_tool(work)
        call = asyncio.ensure_future(hub.acting_for(ADA).call("work"))
        await begun.wait()
        assert not (await hub.acting_for(ADA).call("work")).ok
        [use] = [
            one for one in (await hub.acting_for(ADA).usage.show()).uses if one.name == "max_concurrency"
        ]
        assert use.used == 1
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        go.set()
        assert (await hub.acting_for(ADA).call("work")).ok


async def test_a_process_that_was_killed_frees_its_place(tmp_path: Path, postgres_url: str) -> None:
    await put_user(postgres_url, max_concurrency=1)
    with crowd_process(tmp_path, postgres_url, 1, "hold") as process:
        tell(process)
        assert out_of(process).readline().strip() == "holding"
        process.kill()
    async with open_store(postgres_url) as store:
        directory = Directory(store.people)
        asked = (made_call(), made_tool(), made_connector(), ADA)
        with pytest.raises(LimitReached):
            await Budgets(store.usage, directory, store.people.find_key_by_id).enter(*asked, soon())
        # A call may take 60 seconds, and some more to end.
        later = Budgets(store.usage, directory, store.people.find_key_by_id, clock=lambda: time.time() + 90)
        assert await later.enter(*asked, soon())
