"""Three services are restarted one after the other under load: no request fails and no run is lost."""

import asyncio
from pathlib import Path

import pytest

from cluster.service_load import Load, open_installation, summary

pytestmark = [pytest.mark.anyio, pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_no_request_fails_and_an_approval_from_before_continues_after(
    tmp_path: Path, postgres_url: str
) -> None:
    async with open_installation(tmp_path, postgres_url) as installation:
        asked = await installation.asked("before")
        load = Load(installation, "roll")
        working = asyncio.create_task(load.work())
        await installation.roll()
        load.end()
        await working
        await load.settle()
        assert not load.faults(), "\n".join([*load.faults(), str(summary(load))])
        assert await installation.said_yes(*asked) == "done"
        assert installation.effects()["before near"] == 1
        assert load.seen.ended["done"] == len(load.seen.runs) > 0, summary(load)
