"""A whole installation in one encrypted file, and back: the database, the master key, the operator's token.

Reads the database itself, whether a service runs or not. Blocks: whoever calls it has nothing else to do.
"""

import asyncio
import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from dragoman.errors import Conflict, InvalidConfig, KeyFault
from dragoman.private_files import locked, make_private_directory, open_private, write_whole
from dragoman.settings import Settings
from dragoman.store.columns import from_json, to_json
from dragoman.store.copies import DatabaseCopy, TableCopy, read_copy, write_copy
from dragoman.store.location import DatabaseLocation
from dragoman.vault import Key, KeyRing, KeySupply
from dragoman.vault.sealed_files import SealedFileWriter, read_sealed

FORMAT = 1
SHORTEST_PASSPHRASE = 8


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """When it was made, by which version, and how many rows each table has."""

    made_at: str
    version: str
    rows: Mapping[str, int]
    kept: Path | None = None
    """Where what was in the home before is now."""


def back_up(settings: Settings, file: Path, passphrase: str) -> BackupSummary:
    """As everything is at this moment; who works meanwhile is not held up. A file there is replaced."""
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise InvalidConfig(
            f"a passphrase has {SHORTEST_PASSPHRASE} characters or more",
            hint="who has the file can try as many as they like: several words are good",
        )
    _check_there(settings)
    ring = asyncio.run(_supply(settings).ring(needed=frozenset({"all"})))
    facts: dict[str, Any] = {
        "format": FORMAT,
        "version": version("dragoman"),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "keys": [b64encode(key.material).decode() for key in (ring.current, *ring.older)],
        "token": settings.token_file.read_text() if settings.token_file.exists() else None,
    }
    counts: dict[str, int] = {}
    with _private_draft(file) as draft, read_copy(settings.store_url) as copy:
        writer = _CompressedLines(SealedFileWriter(draft, passphrase))
        writer.write({**facts, "schema": copy.schema, "sealed_with": sorted(copy.sealed_with)})
        for table in copy.tables:
            writer.write({"table": table.name, "columns": table.columns})
            counts[table.name] = sum(1 for row in table.rows if writer.write(row))
        writer.write({"end": counts})
        writer.close()
    return BackupSummary(facts["made_at"], facts["version"], counts)


def restore(settings: Settings, file: Path, passphrase: str, *, replace: bool = False) -> BackupSummary:
    """Puts a backup where nothing is, or with `replace` in the place of what is there.

    Files that were there are kept in a folder beside it. Nothing is changed before all of it was read.
    """
    make_private_directory(settings.home)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(settings.server_lock))
        except OSError:
            raise Conflict(f"a service runs for {settings.home}", hint="stop it first") from None
        there = _files_there(settings)
        if there and not replace:
            raise Conflict(
                f"there is a Dragoman in {settings.home} already: {', '.join(one.name for one in there)}",
                hint="set DRAGOMAN_HOME to an empty folder, or --replace what is there",
            )
        try:
            source = stack.enter_context(file.open("rb"))
        except OSError as error:
            raise InvalidConfig(f"{file} cannot be read: {error.strerror}") from None
        lines = _lines(read_sealed(source, passphrase))
        facts = _facts(lines)
        keys = [Key(b64decode(one)) for one in facts["keys"]]
        _check_keys(settings, keys, facts["sealed_with"])
        counts: dict[str, int] = {}
        copy = DatabaseCopy(facts["schema"], _tables(lines, counts), frozenset(facts["sealed_with"]))
        kept = _put_database(settings, copy, there, replace)
        if _supply(settings).is_file:
            _write_keys(settings.key_file, KeyRing(keys[0], tuple(keys[1:])))
        if facts["token"] and not settings.operator_token:
            write_whole(settings.token_file, facts["token"].encode())
        return BackupSummary(facts["made_at"], facts["version"], counts, kept)


# What is there


def _supply(settings: Settings) -> KeySupply:
    return KeySupply(settings.key_file, settings.key, settings.key_command)


def _sqlite_file(settings: Settings) -> Path | None:
    location = DatabaseLocation.of(settings.store_url)
    return Path(location.url.database or "") if location.is_sqlite else None


def _check_there(settings: Settings) -> None:
    if (file := _sqlite_file(settings)) and not file.exists():
        raise InvalidConfig(f"there is nothing to back up in {settings.home}", hint="check DRAGOMAN_HOME")


def _files_there(settings: Settings) -> list[Path]:
    """What a restore would put its own in the place of."""
    database = _sqlite_file(settings)
    beside = [database.with_name(database.name + end) for end in ("", "-wal", "-shm")] if database else []
    keys = sorted(settings.home.glob(f"{settings.key_file.name}*"))
    return [one for one in (*beside, *keys, settings.token_file) if one.exists()]


def _check_keys(settings: Settings, keys: list[Key], sealed_with: Iterable[str]) -> None:
    """A key that is given from outside must open what is restored; a file is written anew."""
    if not keys:
        raise _unreadable()
    supply = _supply(settings)
    if supply.is_file:
        return
    ring = asyncio.run(supply.ring())
    if missing := {*sealed_with} - ring.ids:
        raise KeyFault(
            f"the secrets of this backup need the master key {', '.join(sorted(missing))},"
            f" not {ring.current.id}",
            hint="leave out DRAGOMAN_KEY and DRAGOMAN_KEY_COMMAND: the backup has its own key",
        )


def _put_database(settings: Settings, copy: DatabaseCopy, there: list[Path], replace: bool) -> Path | None:
    """Returns where what was there is kept."""
    file = _sqlite_file(settings)
    if file is None:
        write_copy(settings.store_url, copy, replace=replace)
        return _moved_away(settings.home, there)
    make_private_directory(file.parent)
    draft = file.with_name(f".{file.name}.{token_hex(8)}")
    try:
        write_copy(f"sqlite:///{draft}", copy)
        kept = _moved_away(settings.home, there)
        draft.replace(file)
    finally:
        for end in ("", "-wal", "-shm"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)
    return kept


def _moved_away(home: Path, there: list[Path]) -> Path | None:
    if not there:
        return None
    folder = home / f"before-restore-{datetime.now(UTC):%Y%m%d-%H%M%S}-{token_hex(2)}"
    make_private_directory(folder)
    for one in there:
        one.replace(folder / one.name)
    return folder


def _write_keys(file: Path, ring: KeyRing) -> None:
    for key in ring.older:
        write_whole(file.with_name(f"{file.name}.{key.id}"), key.material)
    write_whole(file, ring.current.material)


# Its form: compressed lines of JSON. The first says what it is, a table's name stands before its rows.


class _CompressedLines:
    def __init__(self, file: SealedFileWriter) -> None:
        self._file = file
        self._squeeze = zlib.compressobj(6)

    def write(self, value: Any) -> bool:
        self._file.write(self._squeeze.compress(to_json(value).encode() + b"\n"))
        return True

    def close(self) -> None:
        self._file.write(self._squeeze.flush())
        self._file.close()


def _lines(pieces: Iterable[bytes]) -> Iterator[Any]:
    squeezed = zlib.decompressobj()
    rest = b""
    try:
        for piece in pieces:
            *lines, rest = (rest + squeezed.decompress(piece)).split(b"\n")
            yield from map(from_json, lines)
    except (zlib.error, ValueError):
        raise _unreadable() from None


def _facts(lines: Iterator[Any]) -> dict[str, Any]:
    facts = next(lines, None)
    if not isinstance(facts, dict) or cast("dict[str, Any]", facts).get("format") != FORMAT:
        raise InvalidConfig(
            "this backup was made by another version of Dragoman, which this one does not understand",
            hint="install the version that made it, or a newer one",
        )
    return cast("dict[str, Any]", facts)


def _tables(lines: Iterator[Any], counts: dict[str, int]) -> Iterator[TableCopy]:
    """One after the other; at the end the rows that came are those that were written."""
    line: Any = next(lines, None)

    def rows(name: str) -> Iterator[list[Any]]:
        nonlocal line
        for line in lines:  # the one after the last row is the next table, or the end
            if not isinstance(line, list):
                return
            counts[name] += 1
            yield cast("list[Any]", line)

    while isinstance(line, dict) and "table" in line:
        head = cast("dict[str, Any]", line)
        counts[head["table"]] = 0
        columns = tuple((str(name), str(kind)) for name, kind in head["columns"])
        yield TableCopy(head["table"], columns, rows(head["table"]))
    if line != {"end": counts}:
        raise _unreadable()


def _unreadable() -> InvalidConfig:
    return InvalidConfig(
        "the backup is damaged: what is inside cannot be read", hint="take another copy of it"
    )


@contextmanager
def _private_draft(file: Path) -> Generator[Any]:
    """A file of its owner alone that takes its place once it is whole."""
    draft = file.with_name(f".{file.name}.{token_hex(8)}")
    try:
        with open(open_private(draft, os.O_WRONLY | os.O_EXCL), "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
    except OSError as error:
        raise InvalidConfig(f"{file} cannot be written: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)
