"""Agents that were imported, kept for the agents to come: one JSON file in the home for each user.

`{"agents": {NAME: {description, instructions, model, connectors, auto_discover}}}`
"""

import json
import os
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from dragoman.errors import DragomanError, InvalidConfig
from dragoman.formats import FoundAgent
from dragoman.formats.documents import read_document, table
from dragoman.formats.own import read_kept_agent, written_agent
from dragoman.scope import LOCAL_USER, LOCAL_WORKSPACE, Caller

FILE = "agents-imported.json"
FOLDER = "agents-imported"


class KeptAgents:
    """Each caller has their own; the local owner's file lies in the home itself."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def list(self, caller: Caller) -> list[FoundAgent]:
        """By name. A file that cannot be read raises: what is in it must not be overwritten."""
        path = self._path(caller.workspace, caller.user)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        try:
            agents = table(table(read_document(text, str(path))).get("agents"))
            return [read_kept_agent(name, table(agents[name])) for name in sorted(agents)]
        except DragomanError as error:
            raise InvalidConfig(error.message, hint=f"mend {path} or take it away") from None

    def put(self, agents: Iterable[FoundAgent], caller: Caller) -> None:
        """Each in the place of the one that had its name."""
        known = {agent.name: agent for agent in self.list(caller)}
        known |= {agent.name: agent for agent in agents}
        document = {"agents": {name: written_agent(known[name]) for name in sorted(known)}}
        path = self._path(caller.workspace, caller.user)
        write_whole(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def forget(self, workspace: str, user: str | None = None) -> None:
        """A user is gone, or a whole workspace."""
        if user is not None:
            self._path(workspace, user).unlink(missing_ok=True)
        else:
            shutil.rmtree(self._home / FOLDER / _word(workspace), ignore_errors=True)

    def _path(self, workspace: str, user: str) -> Path:
        if (workspace, user) == (LOCAL_WORKSPACE, LOCAL_USER):
            return self._home / FILE
        return self._home / FOLDER / _word(workspace) / f"{_word(user)}.json"


def _word(name: str) -> str:
    """A name that any file system takes and no other name leads to."""
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def write_whole(path: Path, text: str) -> None:
    """A reader sees the old text or the new one; a crash leaves one of them. The file's mode is kept."""
    target = path.resolve()
    fresh = target.with_name(f".{target.name}.{token_hex(4)}")
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with os.fdopen(
            os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(mode)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
