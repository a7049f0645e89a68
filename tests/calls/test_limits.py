import asyncio
from dataclasses import replace

import pytest
from toolshop import made_connector

from dragoman.access import ConcurrencyLimits
from dragoman.errors import LimitReached

pytestmark = pytest.mark.anyio


def soon(seconds: float = 30) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_no_more_than_the_limit_run_and_the_rest_follow_in_order() -> None:
    connector = made_connector(max_concurrency=3)
    gate = ConcurrencyLimits().gate(connector)
    most, order = 0, list[int]()

    async def visit(number: int) -> None:
        nonlocal most
        await gate.enter(connector, soon())
        order.append(number)
        most = max(most, gate.running)
        await asyncio.sleep(0)
        gate.leave(connector)

    async with asyncio.TaskGroup() as tasks:
        for number in range(50):
            tasks.create_task(visit(number))
    assert most == 3
    assert order == list(range(50))
    assert gate.running == 0


async def test_who_cannot_enter_before_the_deadline_is_told_and_leaves_no_trace() -> None:
    connector = made_connector(max_concurrency=1)
    gate = ConcurrencyLimits().gate(connector)
    await gate.enter(connector, soon())
    with pytest.raises(LimitReached) as caught:
        await gate.enter(connector, soon(0.01))
    assert caught.value.hint
    gate.leave(connector)
    assert gate.try_enter(1)
    assert gate.running == 1


async def test_a_newcomer_never_overtakes_one_who_waits() -> None:
    connector = made_connector(max_concurrency=1)
    gate = ConcurrencyLimits().gate(connector)
    await gate.enter(connector, soon())
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(gate.enter(connector, soon()))
        await asyncio.sleep(0)
        assert not gate.try_enter(3), "not even when the limit has just been raised"
        gate.leave(connector)
        assert not gate.try_enter(1)
        await waiting
    gate.leave(connector)
    assert gate.running == 0


@pytest.mark.parametrize("was_let_in", [False, True])
async def test_who_is_cancelled_while_waiting_gives_the_place_on(was_let_in: bool) -> None:
    connector = made_connector(max_concurrency=1)
    gate = ConcurrencyLimits().gate(connector)
    await gate.enter(connector, soon())
    async with asyncio.TaskGroup() as tasks:
        leaver = tasks.create_task(gate.enter(connector, soon()))
        follower = tasks.create_task(gate.enter(connector, soon()))
        await asyncio.sleep(0)
        if was_let_in:
            gate.leave(connector)
        leaver.cancel()
        if not was_let_in:
            await asyncio.sleep(0)
            gate.leave(connector)
        await follower
    assert gate.running == 1


async def test_a_raised_limit_lets_several_in_at_once() -> None:
    connector = made_connector(max_concurrency=1)
    wider = replace(connector, configuration=made_connector(max_concurrency=3).configuration)
    limits = ConcurrencyLimits()
    gate = limits.gate(connector)
    await gate.enter(connector, soon())
    async with asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(gate.enter(connector, soon()))
        await asyncio.sleep(0)
        gate.leave(wider)
    assert gate.running == 3
    assert limits.gate(wider) is gate
