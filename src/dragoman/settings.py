"""How this process runs: where its files are and how much it may use. Nothing below may import it.

Every setting is an environment variable of the same name with `DRAGOMAN_` in front.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from platformdirs import user_data_path

from dragoman.errors import InvalidConfig

PREFIX = "DRAGOMAN_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`home` holds every file that Dragoman keeps; `database_url` moves the facts to PostgreSQL."""

    home: Path = field(default_factory=lambda: user_data_path("dragoman", appauthor=False))
    database_url: str | None = field(default=None, repr=False)
    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ()
    max_servers: int = 64
    max_spawns: int = 4
    keep_results_days: float = 7.0
    keep_calls_days: float = 30.0
    native_tools: tuple[str, ...] = ()
    tools_root: Path | None = None
    log_level: str = "warning"
    log_json: bool = False

    @property
    def store_url(self) -> str:
        return self.database_url or f"sqlite:///{self.home / 'dragoman.db'}"

    @property
    def key_file(self) -> Path:
        return self.home / "key"

    @property
    def token_file(self) -> Path:
        return self.home / "token"

    @property
    def server_file(self) -> Path:
        """Where a running service says how to reach it, so that the command talks to it."""
        return self.home / "server.json"

    @classmethod
    def load(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """The defaults with what the environment sets; `InvalidConfig` names a variable that is wrong."""
        kinds = get_type_hints(cls)
        given: dict[str, Any] = {}
        for item in fields(cls):
            variable = PREFIX + item.name.upper()
            if value := environment.get(variable):
                given[item.name] = _read(variable, value, kinds[item.name])
        return cls(**given)


def _read(variable: str, value: str, kind: Any) -> Any:
    try:
        if kind is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
                value.lower()
            ]
        if kind in (int, float):
            return kind(value)
    except (KeyError, ValueError):
        raise InvalidConfig(f"{variable} must be a {kind.__name__}, not {value!r}") from None
    if kind == tuple[str, ...]:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return Path(value).expanduser() if "Path" in str(kind) else value
