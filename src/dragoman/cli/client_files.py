"""The file of an MCP client with one more server in it. Nothing else is lost; the old text is kept."""

import difflib
import json
import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any, cast

from dragoman.cli.mcp_clients import NAME, ClientProgram
from dragoman.errors import Conflict, InvalidConfig


def fragment(client: ClientProgram, entry: dict[str, Any]) -> str:
    """What a person pastes."""
    if client.form == "toml":
        return _toml(client.table, entry)
    return json.dumps({client.table: {NAME: entry}}, indent=2, ensure_ascii=False) + "\n"


def merged(client: ClientProgram, before: str, entry: dict[str, Any]) -> str:
    """The text of the file with this server in it, in the place of an older one of the same name."""
    if client.form == "toml":
        return _merged_toml(client, before, entry)
    document = _read_json(client, before)
    servers = document.setdefault(client.table, {})
    if not isinstance(servers, dict):
        raise InvalidConfig(
            f"{client.table!r} in {client.file} is no object", hint="mend the file by hand first"
        )
    servers[NAME] = entry
    return json.dumps(document, indent=_indent(before), ensure_ascii=False) + "\n"


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
    """Atomic. Returns where the old text is kept; None when there was none."""
    target = file.resolve()  # a link stays a link
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = None
    mode = 0o600  # it may hold a key
    if target.exists():
        mode = target.stat().st_mode & 0o777
        if read(target) != before:
            raise Conflict(f"{file} changed while this command looked at it", hint="run it again")
        backup = target.with_name(f"{target.name}.before-dragoman")
        _replace(backup, before, mode)
    _replace(target, after, mode)
    return backup


def _replace(file: Path, text: str, mode: int) -> None:
    handle, fresh = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(fresh, mode)
        os.replace(fresh, file)
    except BaseException:
        os.unlink(fresh)
        raise


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


def _merged_toml(client: ClientProgram, before: str, entry: dict[str, Any]) -> str:
    try:
        document = tomllib.loads(before)
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(
            f"{client.file} is no TOML: {error}", hint="mend the file by hand first"
        ) from None
    if NAME in document.get(client.table, {}):
        raise Conflict(
            f"{client.file} has a server {NAME!r} already",
            hint="take that table out by hand, or leave out --write and paste what is printed",
        )
    gap = "" if not before or before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"
    after = before + gap + _toml(client.table, entry)
    tomllib.loads(after)
    return after


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
