"""How this process runs: where its files are and how much it may use. Nothing below may import it.

Every setting is an environment variable of the same name with `DRAGOMAN_` in front.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from platformdirs import user_data_path

from dragoman.errors import InvalidConfig
from dragoman.scope import LOCAL_WORKSPACE, Deferral

PREFIX = "DRAGOMAN_"
USE_AGENTS = "USE_MCP_AGENTS"
Discovery = Literal["off", "manual", "automatic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`home` holds every file that Dragoman keeps; `database_url` moves the facts to PostgreSQL.

    `configuration` (a dragoman.toml), `action_servers` (a file) and `agent_configs` (a folder) are the app's
    configuration: read at every start and watched. `discovery` says who may search the registry of MCP
    servers at `registry_url`: nobody, people, or agents too.

    `multi_user` opens the service to many: each comes with an API key, or with a JWT of `oidc_issuer` for
    `oidc_audience` (its users belong to `oidc_workspace`, or to the one that `oidc_workspace_claim` names).
    With `oidc_client_id`, people sign in to the console there; its `oidc_client_secret`, where it has one.
    What people add then reaches public addresses only, and those in `allowed_networks`. `public_url` is how
    browsers reach this service. `programmatic_calling` lets code call what only reads, unless a tool says
    otherwise. The master key is in the home's file, in `key`, or printed by `key_command`.

    `model` is what agents think with where they name none of their own ("openai:gpt-5"; with commas: the
    model and those that step in); without one, a provider's key in the environment or a local Ollama decides.

    `defer_tools` says whether a model gets a tool only once it was found and loaded; `auto`: as soon as all
    tools together take more than `tool_budget` tokens. A connector can say otherwise of its own.
    `search_embedder` (`openai:text-embedding-3-small`, `ollama:…`, `sentence-transformers:…`) tells search
    what texts mean in place of the vectors that come along; it is sent what tools say of themselves, and
    the questions.

    `rollout_share` percent of all users, and those of `rollout_workspaces` and `rollout_users`, reach
    connectors through the agents of connectors, the others directly; `USE_MCP_AGENTS` (true, false or a
    percentage) says the same in one word. What the operator sets at run time wins. The runs of the last
    `rollout_hours` are compared, at least `rollout_sample` of each.
    """

    home: Path = field(default_factory=lambda: user_data_path("dragoman", appauthor=False))
    database_url: str | None = field(default=None, repr=False)
    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ()
    multi_user: bool = False
    public_url: str | None = None
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_client_id: str | None = None
    oidc_client_secret: str | None = field(default=None, repr=False)
    oidc_workspace: str = LOCAL_WORKSPACE
    oidc_workspace_claim: str | None = None
    allowed_networks: tuple[str, ...] = ()
    key: str | None = field(default=None, repr=False)
    key_command: str | None = None
    model: str | None = None
    model_fallbacks: tuple[str, ...] = ()
    programmatic_calling: bool = True
    defer_tools: Deferral = "auto"
    tool_budget: int = 10_000
    search_embedder: str | None = None
    rollout_share: float = 0.0
    rollout_workspaces: tuple[str, ...] = ()
    rollout_users: tuple[str, ...] = ()
    rollout_sample: int = 20
    rollout_hours: float = 24.0
    approval_wait: float = 120.0
    keep_audit_days: float = 365.0
    max_servers: int = 64
    max_spawns: int = 4
    keep_results_days: float = 7.0
    keep_calls_days: float = 30.0
    native_tools: tuple[str, ...] = ()
    tools_root: Path | None = None
    configuration: Path | None = None
    action_servers: Path | None = None
    agent_configs: Path | None = None
    discovery: Discovery = "manual"
    registry_url: str = "https://registry.modelcontextprotocol.io"
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

    @property
    def server_lock(self) -> Path:
        """Held by a running service for as long as its process lives."""
        return self.home / "server.lock"

    @classmethod
    def load(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """The defaults with what the environment sets; `InvalidConfig` names a variable that is wrong."""
        kinds = get_type_hints(cls)
        given: dict[str, Any] = {}
        for item in fields(cls):
            variable = PREFIX + item.name.upper()
            if value := environment.get(variable):
                given[item.name] = _read(variable, value, kinds[item.name])
        if use := environment.get(USE_AGENTS, "").strip():
            given = _rollout(use) | given
        _check_share(PREFIX + "ROLLOUT_SHARE", given.get("rollout_share", 0.0))
        return cls(**given)


def _rollout(use: str) -> dict[str, Any]:
    """What `USE_MCP_AGENTS` says; `DRAGOMAN_ROLLOUT_…` says more."""
    share = {"true": 100.0, "yes": 100.0, "on": 100.0, "false": 0.0, "no": 0.0, "off": 0.0}.get(use.lower())
    if share is None:
        try:
            share = float(use.removesuffix("%"))
        except ValueError:
            share = -1.0
        _check_share(USE_AGENTS, share)
    return {"rollout_share": share}


def _check_share(variable: str, share: float) -> None:
    if not 0 <= share <= 100:  # nan is not
        raise InvalidConfig(
            f"{variable} must be a percentage between 0 and 100",
            hint=f"25 is a quarter of all users; {USE_AGENTS} takes true and false too",
        )


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
    if (choices := get_args(kind)) and all(isinstance(choice, str) for choice in choices):
        if value not in choices:
            raise InvalidConfig(f"{variable} must be one of {', '.join(choices)}, not {value!r}")
        return value
    if kind == tuple[str, ...]:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return Path(value).expanduser() if "Path" in str(kind) else value
