"""What any process may write and tasks of this one wait for: looked for once for all of them."""

import asyncio
from collections.abc import Sequence

import pytest

from cluster.nodes import alone
from dragoman.background_tasks import Supervisor
from dragoman.cluster.awaited import Awaited
from dragoman.errors import StoreUnavailable
from patience import deadline, give_time, until

pytestmark = pytest.mark.anyio


class Answers:
    """What is written by processes that tell nobody. `looks`: for which ids it was asked."""

    def __init__(self) -> None:
        self.written: set[str] = set()
        self.looks: list[frozenset[str]] = []
        self.is_away = False

    async def settled(self, keys: Sequence[str]) -> frozenset[str]:
        self.looks.append(frozenset(keys))
        if self.is_away:
            raise StoreUnavailable("the store does not answer", hint="see whether it runs")
        return frozenset(keys) & self.written


async def test_one_look_serves_all_who_wait_and_nobody_looks_where_nobody_waits() -> None:
    answers = Answers()
    awaited = Awaited(alone(), "answered", answers.settled)
    names = [f"q{number}" for number in range(50)]
    async with awaited.opened(Supervisor()):
        waiting = {name: asyncio.ensure_future(_heard(awaited, name)) for name in names}
        await until(lambda: len(answers.looks) >= 2)
        assert set(answers.looks) == {frozenset(names)}
        looks, answers.is_away = len(answers.looks), True
        await until(lambda: len(answers.looks) > looks)
        answers.written = {"q1", "q2"}
        answers.is_away = False
        await until(lambda: waiting["q1"].done() and waiting["q2"].done())
        await until(lambda: answers.looks[-1] == frozenset(names) - answers.written)
        assert sum(one.done() for one in waiting.values()) == 2
        answers.written = {*names}
        assert all(await asyncio.gather(*waiting.values()))
        looks = len(answers.looks)
        await give_time(2.0)
        assert len(answers.looks) == looks


async def test_who_is_told_does_not_wait_for_a_look() -> None:
    answers = Answers()
    awaited = Awaited(alone(), "answered", answers.settled)
    async with awaited.opened(Supervisor()):
        waiting = asyncio.ensure_future(_heard(awaited, "q1"))
        await asyncio.sleep(0)
        awaited.tell("q1")
        async with deadline(5):
            assert await waiting
        assert answers.looks == []


async def _heard(awaited: Awaited, name: str) -> bool:
    return await awaited.wait(awaited.event(name), 60.0)
