"""Holders are killed and frozen, and NATS is lost, under calls: no read fails, nothing is made twice."""

import asyncio
from pathlib import Path

import pytest

from calls.test_server_tasks import log, task_server
from cluster.calls_under_faults import WRITE_SLOWLY, Trial, open_trial, summary
from dragoman.cluster.places import OVER_AFTER
from patience import deadline, patient, until
from servers.processes import journal, read_log

pytestmark = [pytest.mark.anyio, pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(400)]
KILLS, FREEZES, STOPS = 10, 3, 2


async def test_no_read_fails_and_nothing_is_made_twice(tmp_path: Path, postgres_url: str) -> None:
    async with open_trial(tmp_path, postgres_url) as trial:
        await _another_caller_places_it_anew(trial)
        calling = asyncio.create_task(trial.call_on(callers=3))
        watching = asyncio.create_task(trial.watch_processes())
        for number in range(KILLS):
            await trial.kill_holder()
            if number < FREEZES:
                await trial.freeze_holder()
            if number == FREEZES:
                await trial.lose_nats(0.5)
        for _ in range(STOPS):
            assert await trial.stop_holder() < patient(OVER_AFTER), (
                "nobody waits for a lease that was given back"
            )
        trial.stop()
        await calling
        watching.cancel()
        assert trial.faults() == [], summary(trial)
        assert trial.tally.codes["done"] > KILLS


async def _another_caller_places_it_anew(trial: Trial) -> None:
    """The holder freezes in the middle of a call that may not be repeated; a second caller has the connection
    placed anew, where a repeated call would be answered at once.
    """
    gate = trial.folder / "gate"
    holder = await trial.found_holder()
    first, second = (one for one in trial.nodes if one is not holder)
    slow = asyncio.create_task(
        first.call(WRITE_SLOWLY, {"seconds": 60, "text": "only once", "gate": str(gate)})
    )
    await until(lambda: any(one.get("tool") == "sleep_send" for one in read_log(trial.log)))
    holder.freeze()
    answer = await second.call("mcp_box_echo", {"text": "placed anew"})
    assert answer is not None
    assert answer["ok"], answer
    gate.write_text("x")
    async with deadline(20):
        ended = await slow
    holder.thaw()
    assert ended is not None
    assert ended["code"] == "uncertain", ended
    assert await trial.found_holder() is not holder
    assert (await holder.call("mcp_box_echo", {"text": "after"}) or {})["ok"]
    assert journal(trial.written).count("only once") <= 1


async def test_a_task_is_followed_on_where_the_node_that_followed_it_is_killed(
    tmp_path: Path, postgres_url: str
) -> None:
    with task_server(tmp_path, "2025") as server:
        async with open_trial(tmp_path, postgres_url, nodes=2) as trial:
            facts = {"url": server.url, "approval": "never", "shared": True}
            connector = await trial.nodes[0].do("add", "jobs", facts)
            for node in trial.nodes:
                await until(lambda node=node: node.do("tools", "jobs"))
            (place,) = [one for name, one in (await trial.nodes[0].do("places")).items() if name == connector]
            holder = next(one for one in trial.nodes if one.id == place)
            other = next(one for one in trial.nodes if one is not holder)
            calling = asyncio.create_task(other.call("mcp_jobs_work", {}))
            await until(lambda: "tasks/get work" in log(tmp_path))
            await holder.kill()
            (tmp_path / "tasks" / "finish").touch()
            async with deadline(30):
                answer = await calling
            assert answer is not None
            assert answer["ok"], answer
            assert log(tmp_path).count("begun work") == 1
