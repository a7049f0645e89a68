import asyncio
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from store_values import a_call, a_connector

from dragoman.errors import InvalidConfig, StoreUnavailable
from dragoman.store import open_store
from dragoman.store.location import DatabaseLocation
from dragoman.store.schema import HEAD, VERSION_TABLE, migrate
from dragoman.store.tables import metadata
from patience import patient

pytestmark = pytest.mark.anyio


@pytest.fixture
def is_migrated() -> bool:
    """Here stores make their own tables."""
    return False


async def test_what_was_written_is_there_when_the_store_is_opened_again(database_url: str) -> None:
    async with open_store(database_url) as store:
        await store.connectors.add(a_connector(), [])
    async with open_store(database_url) as store:
        await store.ping()
        assert await store.connectors.list() == [a_connector()]


def is_compared(name: str | None, kind: str, parents: object) -> bool:
    """All but indexes of expressions, which cannot be read back: `test_listed_runs.py` sees them used."""
    return kind != "index" or name not in ("ix_runs_longest", "ix_runs_costliest")


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_the_migrations_make_exactly_the_tables_that_the_code_knows(database_url: str) -> None:
    location = DatabaseLocation.of(database_url)
    if location.is_sqlite:
        location.make_file()
    migrate(location, busy_timeout=1)
    engine = create_engine(location.blocking_url)
    with engine.connect() as connection:
        options = {"compare_type": True, "version_table": VERSION_TABLE, "include_name": is_compared}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
    engine.dispose()


def test_the_code_knows_which_migration_is_the_last() -> None:
    import dragoman.store

    script = ScriptDirectory(str(Path(dragoman.store.__file__).parent / "migrations"))
    assert script.get_heads() == [HEAD]


async def test_a_current_store_opens_without_alembic(sqlite_url: str) -> None:
    async with open_store(sqlite_url):
        pass
    code = (
        "import asyncio, sys; from dragoman.store import open_store\n"
        "assert 'sqlalchemy' not in sys.modules\n"
        "async def main():\n"
        f"    async with open_store({sqlite_url!r}) as store: await store.ping()\n"
        "asyncio.run(main()); assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=patient(60))


@pytest.mark.slow
async def test_processes_that_open_a_fresh_database_at_once_all_succeed(
    database_url: str, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    code = (
        "import asyncio, pathlib, time; from dragoman.store import open_store\n"
        "import alembic.command, dragoman.store.sql\n"
        "async def main():\n"
        "    print('ready', flush=True)\n"
        f"    while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.001)\n"
        f"    async with open_store({database_url!r}) as store: await store.ping()\n"
        "asyncio.run(main())"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    go.touch()
    assert [process.communicate(timeout=patient(60))[1] for process in processes] == [""] * 4
    assert [process.returncode for process in processes] == [0] * 4


async def test_stores_that_open_a_fresh_database_at_once_in_one_process_all_succeed(
    database_url: str,
) -> None:
    async def use(n: int) -> None:
        async with open_store(database_url) as store:
            await store.connectors.add(a_connector(f"s{n}"), [])

    async with asyncio.TaskGroup() as group:
        for n in range(8):
            group.create_task(use(n))
    async with open_store(database_url) as store:
        assert len(await store.connectors.list()) == 8


@pytest.mark.slow
async def test_many_fresh_databases_are_made_at_once_in_one_process(tmp_path: Path) -> None:
    async def use(n: int) -> None:
        async with open_store(f"sqlite:///{tmp_path}/{n}.db") as store:
            await store.connectors.add(a_connector(), [])

    async with asyncio.TaskGroup() as group:
        for n in range(12):
            group.create_task(use(n))


async def test_a_fresh_file_that_another_process_writes_to_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "dragoman.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE notes (line text)")
    release = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    release.start()
    async with open_store(f"sqlite:///{path}") as store:
        await store.ping()
    release.join()
    other.close()


async def test_two_open_stores_write_to_one_database_by_turns(database_url: str) -> None:
    async with open_store(database_url) as one, open_store(database_url) as two:
        async with asyncio.TaskGroup() as group:
            for n in range(25):
                group.create_task(one.calls.add([a_call(f"one{n}")]))
                group.create_task(two.calls.add([a_call(f"two{n}")]))
        assert len(await one.calls.recent("local", "owner")) == 50


async def test_a_database_of_a_newer_dragoman_is_left_alone(database_url: str) -> None:
    async with open_store(database_url):
        pass
    statement = f"UPDATE {VERSION_TABLE} SET version_num = '9999'"
    if database_url.startswith("sqlite"):
        with sqlite3.connect(database_url.removeprefix("sqlite:///")) as connection:
            connection.execute(statement)
        connection.close()
    else:
        with psycopg.connect(database_url) as connection:
            connection.execute(statement.encode())
    with pytest.raises(StoreUnavailable, match=r"newer Dragoman.*9999") as caught:
        async with open_store(database_url):
            pass
    assert "newer" in (caught.value.hint or "")


async def test_sqlite_s_files_belong_to_their_owner_alone(sqlite_url: str, tmp_path: Path) -> None:
    async with open_store(sqlite_url) as store:
        await store.calls.add([a_call()])
        directory = tmp_path / "store"
        modes = {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
        assert modes == {f"dragoman.db{end}": 0o600 for end in ("", "-wal", "-shm")}
        assert directory.stat().st_mode & 0o777 == 0o700


async def test_sqlite_is_set_up_for_one_writer_and_many_readers(sqlite_url: str) -> None:
    from dragoman.store.database import open_database

    async with open_store(sqlite_url):
        pass
    async with (
        open_database(DatabaseLocation.of(sqlite_url), busy_timeout=10) as database,
        database.read() as reader,
    ):
        found = {
            name: (await reader.exec_driver_sql(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 10_000}


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_every_way_to_write_postgresql_means_the_same_driver(scheme: str) -> None:
    location = DatabaseLocation.of(f"{scheme}://ann:canary@db.example:5433/facts?sslmode=require")
    assert location.url.drivername == "postgresql+psycopg"
    assert location.url.query["sslmode"] == "require"
    assert location.shown == f"{scheme}://db.example:5433/facts"
    assert "canary" not in repr(location)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no url",
        "mysql://ann:canary@host/db",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://ann:can@ary@host/db",
        "postgresql://ann:canary@host:port/db",
    ],
)
async def test_a_url_that_cannot_be_used_is_refused_with_a_hint(url: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        async with open_store(url):
            pass
    assert caught.value.hint
    assert "canary" not in f"{caught.value} {caught.value.hint} {caught.value.cause}"
    assert "ary@" not in f"{caught.value} {caught.value.hint} {caught.value.cause}"
