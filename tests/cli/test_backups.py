"""`dragoman backup` and `restore`: all in one file, made while a service runs, opened by its passphrase."""

import io
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from command_line import Command, Outcome, raw, running_service

from dragoman.errors import StoreUnavailable
from dragoman.store.copies import PASSING, DatabaseCopy, TableCopy, read_copy, write_copy
from dragoman.store.schema import HEAD
from dragoman.store.tables import metadata

OLD_HOME = Path(__file__).parents[1] / "contract" / "old_home"
PASSPHRASE = "correct horse battery"
SECRET = "canary-5e1f0c77"
Typed = Callable[..., Outcome]


@pytest.fixture
def typed(dragoman: Command, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """A command with a passphrase on its stdin."""

    def command(*words: str, passphrase: str = PASSPHRASE) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.StringIO(passphrase + "\n"))
        return dragoman(*words)

    return command


def rows_of(url: str) -> dict[str, list[str]]:
    with read_copy(url) as copy:
        return {table.name: sorted(map(json.dumps, table.rows)) for table in copy.tables}


def contents_of(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir() if path.name != "server.lock"}


@pytest.mark.slow
def test_a_backup_of_a_running_service_opens_elsewhere_with_its_secrets(
    dragoman: Command, typed: Typed, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "monday.backup"
    with running_service():
        assert dragoman("connectors", "add", "raw", *raw("--secret-env", f"WORD={SECRET}")).code == 0
        digest = dragoman("call", "raw__environment", "--json").value["result"]["digests"]["WORD"]
        made = typed("backup", str(file), "--json")
        assert made.code == 0, made.err
        assert dragoman("call", "raw__count").code == 0
        refused = typed("restore", str(file), "--replace")
        assert (refused.code, "a service runs" in refused.err) == (1, True)
    assert file.stat().st_mode & 0o777 == 0o600
    assert made.value["rows"]["connectors"] >= 1
    for word in (SECRET, "raw", "connectors"):
        assert word.encode() not in file.read_bytes()

    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "elsewhere"))
    done = typed("restore", str(file))
    assert done.code == 0, done.err
    assert dragoman("call", "raw__environment", "--json").value["result"]["digests"]["WORD"] == digest
    assert dragoman("audit", "verify").code == 0
    assert dragoman("token").out.strip() == (home / "token").read_text().strip()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "elsewhere").iterdir()} == {0o600}


@pytest.mark.slow
def test_nothing_is_put_over_what_is_there_unless_told(
    dragoman: Command, typed: Typed, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "backup"
    assert dragoman("threads", "create", "--id", "before").code == 0
    assert typed("backup", str(file)).code == 0
    assert dragoman("threads", "create", "--id", "after").code == 0
    before = contents_of(home)
    refused = typed("restore", str(file))
    assert (refused.code, "hint: set DRAGOMAN_HOME to an empty folder" in refused.err) == (1, True)
    assert contents_of(home) == before
    done = typed("restore", str(file), "--replace", "--json")
    assert done.code == 0, done.err
    assert [one["id"] for one in dragoman("threads", "list", "--json").value["threads"]] == ["before"]
    kept = Path(done.value["kept"])
    assert (kept / "key").read_bytes() == before["key"]
    assert (kept / "dragoman.db").exists()


def damaged(data: bytes) -> Iterator[tuple[bytes, str]]:
    middle = len(data) // 2
    yield b"PK\x03\x04" + data, "no backup of Dragoman"
    yield data[:-1], "damaged"
    yield data[:40], "damaged"
    yield data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :], "does not open the backup"
    yield data.replace(b'"n": 131072', b'"n": 131073'), "damaged"
    yield data.replace(b'"n": 131072', b'"n": 999999999'), "damaged"
    yield data + b"more", "does not open the backup"


@pytest.mark.slow
def test_a_wrong_passphrase_and_a_damaged_file_say_so_and_leave_nothing(
    dragoman: Command, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, elsewhere = tmp_path / "backup", tmp_path / "elsewhere"
    assert dragoman("threads", "create").code == 0
    short = typed("backup", str(file), passphrase="short")
    assert (short.code, "8 characters or more" in short.err, file.exists()) == (1, True, False)
    assert typed("backup", str(tmp_path / "no" / "folder")).code == 1
    assert typed("backup", str(file)).code == 0
    monkeypatch.setenv("DRAGOMAN_HOME", str(elsewhere))
    nothing = typed("backup", str(tmp_path / "other"))
    assert (nothing.code, "nothing to back up" in nothing.err) == (1, True)
    wrong = typed("restore", str(file), passphrase="another passphrase")
    assert (wrong.code, "this passphrase does not open the backup" in wrong.err) == (1, True)
    for data, told in damaged(file.read_bytes()):
        (tmp_path / "bad").write_bytes(data)
        refused = typed("restore", str(tmp_path / "bad"))
        assert (refused.code, told in refused.err) == (1, True), refused.err
    assert [path.name for path in elsewhere.iterdir()] == ["server.lock"]


def test_a_large_backup_that_lost_a_frame_is_refused(
    dragoman: Command, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several frames: one is taken out, so that all the others are whole."""
    assert dragoman("threads", "create").code == 0
    with closing(sqlite3.connect(tmp_path / "home" / "dragoman.db")) as database:
        row = "'w', hex(randomblob(8)), 'u', 't', 'x', randomblob(1500000), '2026-01-01'"
        for _ in range(3):
            database.execute(f"INSERT INTO results VALUES ({row})")
        database.commit()
    file = tmp_path / "backup"
    assert typed("backup", str(file)).code == 0
    data = file.read_bytes()
    begin = data.index(b"\n", data.index(b"\n") + 1) + 1
    first = begin + 4 + int.from_bytes(data[begin : begin + 4])
    second = first + 4 + int.from_bytes(data[first : first + 4])
    assert len(data) > second
    file.write_bytes(data[:first] + data[second:])
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "elsewhere"))
    refused = typed("restore", str(file))
    assert (refused.code, "changed or is missing" in refused.err) == (1, True)
    assert not (tmp_path / "elsewhere" / "dragoman.db").exists()


@pytest.mark.slow
def test_sqlite_and_postgresql_take_each_others_backups_row_by_row(
    typed: Typed, dragoman: Command, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home that has something in almost every table goes there and back."""
    old = tmp_path / "old"
    monkeypatch.setenv("DRAGOMAN_HOME", str(old))
    old.mkdir(mode=0o700)
    with closing(sqlite3.connect(old / "dragoman.db")) as database:
        database.executescript((OLD_HOME / "dragoman.sql").read_text("utf-8"))
    (old / "key").write_bytes((OLD_HOME / "key").read_bytes())
    (old / "key").chmod(0o600)
    assert dragoman("workspaces", "list").code == 0  # brought up to date
    assert typed("backup", str(tmp_path / "one")).code == 0
    before = rows_of(f"sqlite:///{old / 'dragoman.db'}")
    assert sum(bool(rows) for rows in before.values()) > 15

    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "second"))
    monkeypatch.setenv("DRAGOMAN_DATABASE_URL", postgres_url)
    assert typed("restore", str(tmp_path / "one")).code == 0
    assert rows_of(postgres_url) == before
    assert dragoman("workspaces", "list").code == 0  # the key opens what was sealed
    assert typed("backup", str(tmp_path / "two")).code == 0
    refused = typed("restore", str(tmp_path / "two"))
    assert (refused.code, "--replace" in refused.err) == (1, True)
    assert typed("restore", str(tmp_path / "two"), "--replace").code == 0

    monkeypatch.delenv("DRAGOMAN_DATABASE_URL")
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "third"))
    assert typed("restore", str(tmp_path / "two")).code == 0
    after = rows_of(f"sqlite:///{tmp_path / 'third' / 'dragoman.db'}")
    assert {name: len(rows) for name, rows in after.items()} == {
        name: len(rows) for name, rows in rows_of(postgres_url).items()
    }


def execute(url: str, *statements: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()
    else:
        with psycopg.connect(url) as connection:
            for statement in statements:
                connection.execute(statement.encode())


def test_a_copy_is_of_one_moment_whatever_is_written_meanwhile(database_url: str) -> None:
    values: list[Any] = []
    with read_copy(database_url) as copy:
        for table in copy.tables:
            if not values:  # between two tables somebody writes into several, and nobody waits
                execute(
                    database_url,
                    "INSERT INTO rollout_states (name, state) VALUES ('mine', '{}')",
                    "INSERT INTO audit_heads VALUES ('w', 1, 'x', 0, '')",
                )
            values.append([*table.rows])
    assert not any(values)
    assert rows_of(database_url)["rollout_states"] == ['["mine", {}, 1]']
    assert rows_of(database_url).keys() == metadata.tables.keys() - PASSING


def test_a_copy_of_an_older_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    columns = (("id", "text"), ("name", "free text"), ("approval", "text"), ("bounds", "json"))
    now = datetime.now(UTC).isoformat()
    row = ["w1", "acme", "always", {"calls_per_hour": 7}, now]
    table = TableCopy("workspaces", (*columns, ("created_at", "time")), [row])
    write_copy(url, DatabaseCopy("0004", [table], frozenset()))
    assert json.loads(rows_of(url)["workspaces"][0])[:4] == ["w1", "acme", "always", {"calls_per_hour": 7}]
    with read_copy(url) as copy:
        assert copy.schema == HEAD
    newer = DatabaseCopy("9999", [], frozenset())
    with pytest.raises(StoreUnavailable):
        write_copy(f"sqlite:///{tmp_path / 'other.db'}", newer)


@pytest.mark.slow
def test_a_key_from_outside_must_open_what_is_restored(
    dragoman: Command, typed: Typed, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = raw("--no-connect", "--secret-env", f"WORD={SECRET}")
    assert dragoman("connectors", "add", "raw", *server).code == 0
    assert typed("backup", str(tmp_path / "backup")).code == 0
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("DRAGOMAN_KEY", "00" * 32)
    refused = typed("restore", str(tmp_path / "backup"))
    assert (refused.code, "need the master key" in refused.err) == (1, True)
    monkeypatch.setenv("DRAGOMAN_KEY", (home / "key").read_bytes().hex())
    assert typed("restore", str(tmp_path / "backup")).code == 0
    assert not (tmp_path / "elsewhere" / "key").exists()
    assert dragoman("connectors", "show", "raw", "--json").value["secrets"] == ["env:WORD"]


def test_a_service_elsewhere_is_not_backed_up_from_here(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_URL", "http://127.0.0.1:9")
    refused = typed("backup", str(tmp_path / "backup"))
    assert (refused.code, "where its home is" in refused.err) == (1, True)
