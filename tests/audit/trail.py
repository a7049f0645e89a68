"""Rows of the trail changed behind the store's back, and a process of its own that fills a trail.

As a program: `trail.py HOME URL COUNT` opens a hub, makes so many calls and has them written, prints
`made`, and goes on calling, at most fifty times a second, until it is killed.
"""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import psycopg

from dragoman import Caller, Hub, Settings

ADA = Caller(workspace="acme", user="ada")
ADMIN = Caller(workspace="acme", user="root", role="admin")
TABLES = ("audit", "audit_heads")


def tamper(url: str, *statements: str) -> None:
    """As somebody does who has the database."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            for statement in statements:
                assert connection.execute(statement).rowcount, statement
            connection.commit()
        return
    with psycopg.connect(url) as connection:
        for statement in statements:
            assert connection.execute(statement.encode()).rowcount, statement


def dumped(url: str) -> str:
    """Every value of the trail."""
    queries = [f"SELECT * FROM {table}" for table in TABLES]
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return repr([connection.execute(query).fetchall() for query in queries])
    with psycopg.connect(url) as connection:
        return repr([connection.execute(query.encode()).fetchall() for query in queries])


@contextmanager
def writing_process(home: Path, url: str, count: int) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, __file__, str(home), url, str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def out_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


async def main(home: str, url: str, count: str) -> None:
    async with Hub(Settings(home=Path(home), database_url=url)) as hub:
        hub.add_tool(echo)
        for number in range(int(count)):
            await hub.acting_for(ADA).call("echo", {"text": str(number)})
        await hub.acting_for(ADMIN).audit.list(limit=1)  # writes what waits
        print("made", flush=True)
        while True:
            await hub.acting_for(ADA).call("echo", {"text": "more"})
            print("called", flush=True)
            await asyncio.sleep(0.02)


async def echo(text: str) -> str:
    return text


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
