"""Agents that were imported, kept for the agents to come: one JSON file in the home.

`{"agents": {NAME: {description, instructions, model, connectors, auto_discover}}}`
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex

from dragoman.errors import DragomanError, InvalidConfig
from dragoman.formats import FoundAgent
from dragoman.formats.documents import read_document, table
from dragoman.formats.own import read_kept_agent, written_agent

FILE = "agents-imported.json"


class KeptAgents:
    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def list(self) -> list[FoundAgent]:
        """By name. A file that cannot be read raises: what is in it must not be overwritten."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        try:
            agents = table(table(read_document(text, str(self._path))).get("agents"))
            return [read_kept_agent(name, table(agents[name])) for name in sorted(agents)]
        except DragomanError as error:
            raise InvalidConfig(error.message, hint=f"mend {self._path} or take it away") from None

    def put(self, agents: Iterable[FoundAgent]) -> None:
        """Each in the place of the one that had its name."""
        known = {agent.name: agent for agent in self.list()}
        known |= {agent.name: agent for agent in agents}
        document = {"agents": {name: written_agent(known[name]) for name in sorted(known)}}
        write_whole(self._path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


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
