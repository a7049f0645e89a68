"""Replicas whose app files differ, as they do while a deploy lasts: none removes what another still has."""

from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from dragoman import Hub
from dragoman.hub import configuration_files
from dragoman.settings import Settings
from dragoman.store import open_store
from patience import until

pytestmark = pytest.mark.anyio
KEY = "x" * 43 + "="


def _files(path: Path, *names: str) -> Path:
    path.unlink(missing_ok=True)
    for name in names:
        with path.open("a") as file:
            file.write(f'[connectors.{name}]\nurl = "http://127.0.0.1:1/{name}"\nauto_discover = false\n')
    return path


def _replica(tmp_path: Path, url: str, name: str, *connectors: str) -> Hub:
    file = _files(tmp_path / f"{name}.toml", *connectors)
    return Hub(Settings(home=tmp_path / name, database_url=url, key=KEY, configuration=file))


async def _slugs(url: str) -> set[str]:
    async with open_store(url) as store:
        return {connector.slug for connector in await store.connectors.list()}


async def test_what_another_replica_has_in_its_files_stays_until_that_one_is_gone(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration_files, "_DESCRIBE_EVERY", 0.5)
    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(AsyncExitStack())
        await old.enter_async_context(_replica(tmp_path, database_url, "old", "mail", "time"))
        new = await stack.enter_async_context(_replica(tmp_path, database_url, "new", "mail", "maps"))
        assert not new.configuration_files.problems
        assert await _slugs(database_url) == {"mail", "time", "maps"}
        # One more of the old: it takes nothing away from the new.
        async with _replica(tmp_path, database_url, "older", "mail", "time"):
            assert await _slugs(database_url) == {"mail", "time", "maps"}
        await old.aclose()

        async def is_clean() -> bool:
            return await _slugs(database_url) == {"mail", "maps"}

        await until(is_clean, within=15)


async def test_what_a_killed_process_had_in_its_files_goes_at_the_next_start(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with _replica(tmp_path, sqlite_url, "one", "mail", "time") as hub:
        described = hub.configuration_files._process  # pyright: ignore[reportPrivateUsage]
    place, pid, _, word = described.rsplit(":", 3)
    async with open_store(sqlite_url) as store:
        # As `kill -9` leaves it: said for half a minute more, by a process that is not there any longer.
        now = store.clock.now()
        gone = f"{place}:{pid}:1:{word}"
        await store.connectors.describe(gone, ["mail", "time"], now + timedelta(seconds=30), now)
    async with _replica(tmp_path, sqlite_url, "one", "mail"):
        assert await _slugs(sqlite_url) == {"mail"}
