import asyncio
import sqlite3
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from run_values import a_run, accept
from sqlalchemy import select, update
from store_values import a_call, a_connector, a_result

from dragoman.errors import InvalidArguments, StoreUnavailable
from dragoman.store import open_store, tables
from dragoman.store.database import Database
from patience import deadline

pytestmark = pytest.mark.anyio


@pytest.fixture
def is_migrated() -> bool:
    """Here stores make their own tables."""
    return False


async def test_a_database_out_of_reach_is_named_without_its_password() -> None:
    url = "postgresql://ann:canary@127.0.0.1:1/facts?password=canary"
    with pytest.raises(
        StoreUnavailable, match=r"does not answer \(postgresql://127.0.0.1:1/facts\)"
    ) as caught:
        async with open_store(url):
            pass
    assert caught.value.hint
    assert caught.value.retryable
    shown = "".join(traceback.format_exception(caught.value)) + str(caught.value.cause)
    assert "canary" not in shown


async def test_a_postgresql_database_that_does_not_exist_gives_the_command_that_makes_it(
    postgres_url: str,
) -> None:
    with pytest.raises(StoreUnavailable, match="no database of this name") as caught:
        async with open_store(postgres_url.replace("/test_", "/missing_")):
            pass
    assert "createdb" in (caught.value.hint or "")


async def test_connections_that_postgresql_has_cut_are_replaced_unnoticed(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        await store.calls.add([a_call()])
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        await store.calls.add([a_call("call_2")])
        assert len(await store.calls.recent("local", "owner")) == 2


async def test_a_postgresql_that_holds_tables_of_another_program_is_left_alone(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE tools (hammer text)")
    with pytest.raises(StoreUnavailable, match="another program"):
        async with open_store(postgres_url):
            pass
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        )
        assert found.fetchall() == [("tools",)]


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.raises(StoreUnavailable, match="no SQLite database") as caught:
        async with open_store(f"sqlite:///{path}"):
            pass
    assert caught.value.hint
    assert path.read_text() == "not a database " * 100


async def test_a_directory_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable) as caught:
        async with open_store(f"sqlite:///{tmp_path}/file/dragoman.db"):
            pass
    assert "directory" in (caught.value.cause or "")


async def test_a_database_that_another_process_keeps_locked_is_said_so_and_recovers(sqlite_url: str) -> None:
    async with open_store(sqlite_url, busy_timeout=0.05) as store:
        other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked by another process"):
            await store.calls.add([a_call()])
        assert await store.calls.recent("local", "owner") == []
        other.execute("ROLLBACK")
        other.close()
        await store.calls.add([a_call()])


async def test_writers_of_one_process_wait_for_each_other_and_not_for_the_database(sqlite_url: str) -> None:
    async with open_store(sqlite_url, busy_timeout=0) as store, asyncio.TaskGroup() as group:
        for n in range(50):
            group.create_task(store.calls.add([a_call(f"{n}.{k}") for k in range(50)]))


async def test_on_a_full_disk_writing_says_so_reading_works_and_space_mends_it(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store:
        database: Database = getattr(store.connectors, "_database")  # noqa: B009 - private, and no part of `Store`
        await store.connectors.add(a_connector(), [])
        await _limit_pages(database, 60)
        with pytest.raises(StoreUnavailable, match="disk is full") as caught:
            await store.calls.keep_result(a_result(body=b"x" * 1_000_000))
        assert "space" in (caught.value.hint or "")
        await store.ping()
        assert await store.connectors.list() == [a_connector()]
        assert await store.calls.find_result("local", "owner", "res_1") is None
        await _limit_pages(database, 1_000_000)
        await store.calls.keep_result(a_result(body=b"x" * 1_000_000))


async def _limit_pages(database: Database, pages: int) -> None:
    """The limit belongs to a connection; there is one as long as nobody works at the same time."""
    async with database.read() as connection:
        await connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")


async def test_a_key_with_characters_that_no_database_holds_is_the_caller_s_fault(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        for handle in ("nul \x00", "half \ud800"):
            with pytest.raises(InvalidArguments):
                await store.calls.find_result("local", "owner", handle)
        await store.ping()


async def test_who_freezes_in_the_middle_of_a_transaction_holds_nobody_up(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its locks end with its patience and not with its process."""
    monkeypatch.setattr("dragoman.store.database.LONGEST_PAUSE", timedelta(seconds=0.5))
    async with open_store(postgres_url) as frozen, open_store(postgres_url) as other:
        await accept(other, a_run())
        database: Any = frozen.runs._database  # type: ignore[attr-defined]
        with pytest.raises(StoreUnavailable):
            async with database.write() as connection:
                await connection.execute(update(tables.runs).values(worker="frozen"))
                async with deadline(5):
                    assert await other.runs.ask_cancel("local", "run_1")
                await connection.execute(select(tables.runs.c.id))
        found = await frozen.runs.find("local", "run_1")
        assert found is not None
        assert found.worker is None
