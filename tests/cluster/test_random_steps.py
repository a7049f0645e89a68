"""A hundred random steps of two processes on each database; `bench/two_processes.py` makes ten thousand."""

from pathlib import Path

import pytest
from hub_process import open_other
from random_steps import Walk

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.mark.timeout(240)
async def test_after_a_hundred_random_steps_both_say_the_same_and_nothing_is_lost(
    tmp_path: Path, database_url: str
) -> None:
    facts = {"home": str(tmp_path / "home"), "database_url": database_url}
    limit = 1.0 if database_url.startswith("sqlite") else 2.5
    async with open_other(**facts) as here, open_other(**facts) as there:
        walk = Walk([here, there], seed=14, limit=limit)
        while walk.done < 100:
            await walk.step()
    assert walk.wrong == []
    assert len(walk.counts) >= 9, walk.counts
