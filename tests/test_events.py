import asyncio

import pytest

from dragoman.events import Event, Events
from patience import deadline

pytestmark = pytest.mark.anyio


def made(name: str, workspace: str = "local", user: str = "") -> Event:
    return Event(kind="connector.updated", workspace=workspace, user=user, connector=name)


async def test_a_listener_hears_what_happens_after_it_began_and_until_the_end() -> None:
    events = Events()
    events.publish(made("before"))
    with events.listen("local", "ann") as listener:
        events.publish(made("one"))
        events.publish(made("two"))
        events.close()
        assert [event.connector async for event in listener] == ["one", "two"]
    assert not events.has_listeners


async def test_a_waiting_listener_wakes_up() -> None:
    events = Events()
    with events.listen("local", "ann") as listener:
        stream = aiter(listener)
        async with deadline(5), asyncio.TaskGroup() as tasks:
            first = tasks.create_task(anext(stream))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            events.publish(made("late"))
        assert first.result().connector == "late"


async def test_nobody_hears_of_another_workspace_or_user() -> None:
    events = Events()
    with events.listen("local", "ann") as listener:
        events.publish(made("other workspace", workspace="elsewhere"))
        events.publish(made("other user", user="bob"))
        events.publish(made("mine", user="ann"))
        events.publish(made("all", user=""))
        events.close()
        assert [event.connector async for event in listener] == ["mine", "all"]


async def test_a_slow_listener_loses_the_oldest_and_is_told_how_many() -> None:
    events = Events()
    with events.listen("local", "ann", limit=2) as listener:
        for number in range(5):
            events.publish(made(str(number)))
        events.close()
        heard = [event async for event in listener]
    assert heard[0].kind == "events.lost"
    assert heard[0].data == {"count": 3}
    assert [event.connector for event in heard[1:]] == ["3", "4"]


async def test_a_listener_of_closed_events_ends_at_once() -> None:
    events = Events()
    events.close()
    with events.listen("local", "ann") as listener:
        assert [event async for event in listener] == []
