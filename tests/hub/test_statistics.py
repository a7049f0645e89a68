"""Numbers over time, as a person has them: true, their own, and without what nobody knows."""

import asyncio
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import pytest

from console.speaking import Speaker
from dragoman import Hub
from dragoman.errors import InvalidArguments, NotFound
from dragoman.tool import Annotations
from servers.hubs import open_hub, until

pytestmark = pytest.mark.anyio


def with_tools(hub: Hub) -> None:
    @hub.tool
    async def greet(name: str) -> str:
        """Greets."""
        if name == "nobody":
            raise ValueError("nobody is there")
        return f"hello {name}"

    @hub.tool(annotations=Annotations(destructive=True))
    async def burn(what: str) -> str:
        """Burns it."""
        return f"{what} is ashes"


async def test_more_than_a_thousand_calls_are_counted_one_by_one(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        with_tools(hub)
        for _ in range(1300):
            await hub.call("greet", {"name": "Ada"})
        await hub.call("greet", {"name": "nobody"})
        for last in ("1h", "24h", "7d", "30d"):
            series = await hub.statistics.series(last, split="tool")
            assert (series.total.calls, series.total.errors) == (1301, 1)
            assert sum(point.numbers.calls for point in series.points) == 1301
            assert [(group.name, group.numbers.calls) for group in series.groups] == [("greet", 1301)]
            assert series.points[-1].start < series.end
        assert (await hub.statistics.series("1h", tool="other")).total.calls == 0


async def test_what_a_person_took_to_answer_is_no_latency(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub, asyncio.TaskGroup() as tasks:
        with_tools(hub)
        agent = hub.acting_for(replace(hub.caller, way="agent", agent="mailer"))
        call = tasks.create_task(agent.call("burn", {"what": "letters"}))

        async def is_asked() -> bool:
            return bool(await hub.approvals.list())

        await until(is_asked)
        began = perf_counter()
        while perf_counter() - began < 1.0:  # the person thinks
            await asyncio.sleep(0.1)
        [asked] = await hub.approvals.list()
        await hub.approvals.answer(asked.approval.id, "once")
        assert (await call).ok
        total = (await hub.statistics.series("1h", agent="mailer")).total
        assert total.calls == 1
        assert total.p95_ms is not None
        assert total.p95_ms < 1000


async def test_a_member_has_their_own_numbers_and_an_admin_those_of_all(tmp_path: Path) -> None:
    async with open_hub(tmp_path, multi_user=True) as hub:
        with_tools(hub)
        anna = (await hub.people.add_user("anna")).id
        bert = (await hub.people.add_user("bert")).id
        for user, count in ((anna, 2), (bert, 3)):
            for _ in range(count):
                await (await hub.as_user(user)).call("greet", {"name": "x"})
        hers = (await hub.as_user(anna)).statistics
        assert (await hers.series("1h", split="user")).total.calls == 2
        assert [group.name for group in (await hers.series("1h", split="user")).groups] == [anna]
        with pytest.raises(NotFound):
            await hers.series("1h", user=bert)
        everybody = await hub.statistics.series("1h", split="user")
        assert everybody.total.calls == 5
        assert [(one.label, one.numbers.calls) for one in everybody.groups] == [("bert", 3), ("anna", 2)]
        [busiest] = (await hub.statistics.series("1h", split="user", groups=1)).groups
        assert (busiest.label, busiest.numbers) == ("bert", everybody.groups[0].numbers)
        assert (await hub.statistics.series("1h", user="anna")).total.calls == 2
        await hub.people.remove_user(bert)
        assert (await hub.statistics.series("1h")).total.calls == 2


async def test_a_model_without_a_price_costs_an_unknown_amount(tmp_path: Path) -> None:
    async with open_hub(tmp_path, model="speaker") as hub:
        Speaker().install(hub)
        run = await hub.ask("hello")
        assert (run.usage.requests, run.usage.unpriced, run.usage.cost) == (1, 1, 0.0)
        series = await hub.statistics.series("1h", split="model")
        assert (series.total.requests, series.total.runs, series.total.cost) == (1, 1, None)
        assert series.total.tokens == run.usage.input_tokens + run.usage.output_tokens > 0
        assert [(one.name, one.numbers.unpriced) for one in series.groups] == [("speaker", 1)]
        worked = (await hub.agents.view(run.agent)).numbers
        assert (worked.unpriced, worked.cost) == (1, 0.0)


async def test_what_there_is_not_is_refused_with_what_there_is(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        with pytest.raises(InvalidArguments, match="no range"):
            await hub.statistics.series("2h")
        with pytest.raises(InvalidArguments, match="no split"):
            await hub.statistics.series("1h", split="password")
