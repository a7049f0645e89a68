"""The file of an MCP client with Dragoman in it. Nothing is lost but what was named; the old text is kept."""

import difflib
import json
import tomllib
from collections.abc import Collection
from itertools import chain, count
from pathlib import Path
from typing import Any, cast

from dragoman.cli.mcp_clients import NAME, ClientProgram
from dragoman.errors import Conflict, InvalidConfig
from dragoman.private_files import make_private_directory, mode_of, write_whole


def fragment(client: ClientProgram, entry: dict[str, Any]) -> str:
    """What a person pastes."""
    if client.form == "toml":
        return _toml(client.table, entry)
    return json.dumps({client.table: {NAME: entry}}, indent=2, ensure_ascii=False) + "\n"


def merged(
    client: ClientProgram, before: str, entry: dict[str, Any], instead_of: Collection[str] = ()
) -> str:
    """The text of the file with this server in it, in the place of an older one and of those named."""
    if client.form == "toml":
        return _merged_toml(client, before, entry, {NAME, *instead_of})
    document = _read_json(client, before)
    servers = document.setdefault(client.table, {})
    if not isinstance(servers, dict):
        raise InvalidConfig(
            f"{client.table!r} in {client.file} is no object", hint="mend the file by hand first"
        )
    kept = {name: one for name, one in cast("dict[str, Any]", servers).items() if name not in instead_of}
    document[client.table] = {**kept, NAME: entry}
    return json.dumps(document, indent=_indent(before), ensure_ascii=False) + "\n"


def names_in(client: ClientProgram, text: str) -> set[str]:
    """The servers in the client's own table: those that `merged` can put something in the place of."""
    document: dict[str, Any] = tomllib.loads(text) if client.form == "toml" else _read_json(client, text)
    servers: Any = document.get(client.table)
    return {*cast("dict[str, Any]", servers)} if isinstance(servers, dict) else set()


def differences(file: Path, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(file), f"{file} (new)", n=2, lineterm=""
    )
    return "\n".join(lines)


def read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{file} cannot be read: {error!s:.200}") from None


def write(file: Path, before: str, after: str) -> Path | None:
    """Atomic. Returns where the old text is kept, beside those of other times; None when there was none."""
    target = file.resolve()  # a link stays a link
    make_private_directory(target.parent)
    backup = None
    mode = mode_of(target)  # it may hold a key
    if target.exists():
        if read(target) != before:
            raise Conflict(f"{file} changed while this command looked at it", hint="run it again")
        backup = _free(target.with_name(f"{target.name}.before-dragoman"))
        write_whole(backup, before.encode(), mode)
    write_whole(target, after.encode(), mode)
    return backup


def _free(file: Path) -> Path:
    """The file, or the first with a number behind its name that is not there yet."""
    numbered = (file.with_name(f"{file.name}-{number}") for number in count(2))
    return next(one for one in chain([file], numbered) if not one.exists())


def _read_json(client: ClientProgram, text: str) -> dict[str, Any]:
    try:
        document: Any = json.loads(text or "{}")
    except ValueError as error:
        raise InvalidConfig(
            f"{client.file} is no plain JSON: {error}",
            hint="comments would be lost; leave out --write and paste what is printed",
        ) from None
    if not isinstance(document, dict):
        raise InvalidConfig(f"{client.file} holds no object", hint="mend the file by hand first")
    return cast("dict[str, Any]", document)


def _indent(text: str) -> int | str:
    for line in text.splitlines():
        if (space := line[: len(line) - len(line.lstrip())]) and line.strip():
            return "\t" if space.startswith("\t") else len(space)
    return 2


def _merged_toml(client: ClientProgram, before: str, entry: dict[str, Any], gone: set[str]) -> str:
    try:
        document = tomllib.loads(before)
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(
            f"{client.file} is no TOML: {error}", hint="mend the file by hand first"
        ) from None
    servers: dict[str, Any] = document.get(client.table, {})
    if servers.get(NAME) == entry and not gone & (servers.keys() - {NAME}):
        return before
    rest = _without_tables(before, client.table, gone)
    gap = "" if not rest or rest.endswith("\n\n") else "\n" if rest.endswith("\n") else "\n\n"
    after = rest + gap + _toml(client.table, entry)
    kept = {name: one for name, one in servers.items() if name not in gone}
    if not _says(after, {**document, client.table: {**kept, NAME: entry}}):
        names = ", ".join(sorted(gone & servers.keys()))
        raise Conflict(
            f"{client.file} has {names} where it cannot be taken out",
            hint="take that out by hand, or leave out --write and paste what is printed",
        )
    return after


def _says(text: str, document: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == document
    except tomllib.TOMLDecodeError:
        return False


def _without_tables(text: str, table: str, names: Collection[str]) -> str:
    """The text without `[table.NAME]` and what is below it; comments above the next table stay."""
    kept: list[str] = []
    beside: list[str] = []  # lines of a table that goes, which may belong to the next
    is_gone = False
    for line in text.splitlines(keepends=True):
        if (path := _header(line)) is not None:
            is_gone = len(path) > 1 and path[0] == table and path[1] in names
            kept += beside
            beside = []
        if not is_gone:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            beside.append(line)
        else:
            beside.clear()
    return "".join([*kept, *beside])


def _header(line: str) -> list[str] | None:
    """The names of a table's header; None for any other line."""
    if not line.lstrip().startswith("["):
        return None
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    path: list[str] = []
    while isinstance(found, dict) and found:
        [(name, found)] = cast("dict[str, Any]", found).items()
        path.append(name)
    return path


def _toml(table: str, entry: dict[str, Any]) -> str:
    lines = [f"[{table}.{NAME}]"]
    for name, value in entry.items():
        if isinstance(value, dict):
            pairs = cast("dict[str, str]", value).items()
            inner = ", ".join(f"{json.dumps(key)} = {json.dumps(one)}" for key, one in pairs)
            lines.append(f"{name} = {{ {inner} }}")
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"
