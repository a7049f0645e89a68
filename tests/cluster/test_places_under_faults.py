"""Holders are killed and frozen, and NATS is lost, under calls: no read fails, nothing is made twice."""

import asyncio
from pathlib import Path

import pytest

from cluster.calls_under_faults import open_trial, summary

pytestmark = [pytest.mark.anyio, pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(400)]
KILLS, FREEZES = 10, 3


async def test_no_read_fails_and_nothing_is_made_twice(tmp_path: Path, postgres_url: str) -> None:
    async with open_trial(tmp_path, postgres_url) as trial:
        calling = asyncio.create_task(trial.call_on(callers=3))
        watching = asyncio.create_task(trial.watch_processes())
        times: list[float] = []
        for number in range(KILLS):
            times.append(await trial.kill_holder())
            if number % 3 == 1:
                times.append(await trial.freeze_holder())
            if number == KILLS // 2:
                await trial.lose_nats(0.5)
        trial.stop()
        await calling
        watching.cancel()
        print(summary(trial), sorted(round(one, 2) for one in times))
        assert trial.faults() == []
        assert trial.tally.codes["done"] > 0
