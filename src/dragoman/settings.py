"""How this process runs: where its files are and how much it may use. Nothing below may import it.

Every setting is an environment variable of the same name with `DRAGOMAN_` in front.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from platformdirs import user_data_path

from dragoman import extras
from dragoman.cluster import ROLES, Role
from dragoman.errors import InvalidConfig
from dragoman.scope import LOCAL_WORKSPACE, Deferral
from dragoman.setting import Setting

PREFIX = "DRAGOMAN_"
USE_AGENTS = "USE_MCP_AGENTS"
OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""What OpenTelemetry itself calls a collector. Without the extra it is meant for others of the machine."""
Discovery = Literal["off", "manual", "automatic"]
BoxedPrograms = Literal["people", "all"]
ClientLogin = Literal["dragoman", "issuer", "off"]
_SERVICE = "Service"
_USERS = "Users and keys"
_AGENTS = "Agents and search"
_ROLLOUT = "Rollout of agents"
_RESOURCES = "Times and sizes"
_TOOLS = "Tools of this machine"
_FILES = "Files and discovery"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each says of itself what it means. What the operator sets of the rollout at run time wins."""

    home: Annotated[Path, Setting("Every file that Dragoman keeps.", _SERVICE)] = field(
        default_factory=lambda: user_data_path("dragoman", appauthor=False)
    )
    database_url: Annotated[
        str | None, Setting("`postgresql://…` for PostgreSQL in place of SQLite in the home.", _SERVICE)
    ] = field(default=None, repr=False)
    cluster_url: Annotated[
        tuple[str, ...],
        Setting(
            "`nats://…` or `tls://…`: several processes share the PostgreSQL database. Several servers with"
            " commas; a user and password, or a token, before an `@`.",
            _SERVICE,
        ),
    ] = field(default=(), repr=False)
    cluster_credentials: Annotated[
        str | None, Setting("The .creds file by which NATS knows this installation.", _SERVICE)
    ] = None
    cluster_ca: Annotated[
        str | None,
        Setting("Certificates, in PEM, of who may have signed those of NATS; nobody else then.", _SERVICE),
    ] = None
    cluster_certificate: Annotated[
        str | None,
        Setting("Our own certificate with its key, in PEM, where NATS asks for one.", _SERVICE),
    ] = None
    cluster_prefix: Annotated[
        str, Setting("What the names of this installation begin with in NATS.", _SERVICE)
    ] = "dragoman"
    roles: Annotated[
        tuple[Role, ...],
        Setting(
            "What this process does: `doors` answers HTTP, `work` executes runs, `hold` may hold connections"
            " with state.",
            _SERVICE,
        ),
    ] = ROLES
    drain_wait: Annotated[
        float,
        Setting(
            "Seconds that a node of a cluster which was told to stop still answers, while `/ready` says no:"
            " balancers send requests elsewhere meanwhile.",
            _SERVICE,
        ),
    ] = 5.0
    host: Annotated[str, Setting("Where the service listens.", _SERVICE)] = "127.0.0.1"
    port: Annotated[int, Setting("The port it listens on.", _SERVICE)] = 8765
    allowed_hosts: Annotated[
        tuple[str, ...],
        Setting("Host names by which requests may come, beside those of this machine.", _SERVICE),
    ] = ()
    max_connections: Annotated[
        int,
        Setting("Most HTTP connections at once; fewer where the system allows fewer open files.", _SERVICE),
    ] = 10_000
    max_streams_per_user: Annotated[
        int, Setting("Most streams of `/mcp`, of events and of chats that one user may have open.", _SERVICE)
    ] = 500
    header_timeout: Annotated[
        float, Setting("Seconds within which the head of an HTTP request must have come.", _SERVICE)
    ] = 15.0
    body_timeout: Annotated[
        float, Setting("Seconds within which the body of an HTTP request must have come.", _SERVICE)
    ] = 60.0
    send_timeout: Annotated[float, Setting("Seconds that a client may leave an answer unread.", _SERVICE)] = (
        60.0
    )
    multi_user: Annotated[
        bool, Setting("Open to many: each comes with an API key, or with a JWT of the issuer.", _USERS)
    ] = False
    public_url: Annotated[str | None, Setting("How browsers reach this service.", _USERS)] = None
    client_login: Annotated[
        ClientLogin,
        Setting(
            "Where MCP clients that have no key log in: at `dragoman` itself, at the `issuer` whose JWTs are"
            " let in, or nowhere (`off`).",
            _USERS,
        ),
    ] = "dragoman"
    oidc_issuer: Annotated[str | None, Setting("Whose JWTs are let in.", _USERS)] = None
    oidc_audience: Annotated[str | None, Setting("For whom those JWTs must be made.", _USERS)] = None
    oidc_client_id: Annotated[str | None, Setting("As whom the console signs people in there.", _USERS)] = (
        None
    )
    oidc_client_secret: Annotated[str | None, Setting("That client's secret, where it has one.", _USERS)] = (
        field(default=None, repr=False)
    )
    oidc_workspace: Annotated[str, Setting("The workspace of the issuer's users.", _USERS)] = LOCAL_WORKSPACE
    oidc_workspace_claim: Annotated[
        str | None, Setting("The claim that names their workspace instead.", _USERS)
    ] = None
    oidc_groups: Annotated[
        str | None,
        Setting(
            'Which of the issuer\'s groups are let in and what each gives, as JSON: `{"sales": {"workspace":'
            ' "acme", "role": "member", "capabilities": ["mcp_crm"]}}`. Each token decides anew; who is in'
            " none of them is refused.",
            _USERS,
        ),
    ] = None
    oidc_groups_claim: Annotated[
        str, Setting("The claim that names a person's groups; a dot leads into an object.", _USERS)
    ] = "groups"
    allowed_networks: Annotated[
        tuple[str, ...],
        Setting("Inside addresses that people's connectors may reach (CIDR), beside public ones.", _USERS),
    ] = ()
    box_programs: Annotated[
        BoxedPrograms,
        Setting(
            "Which commands that say nothing of a box run in one: `all`, or only those of `people` whom the"
            " operator does not answer for.",
            _USERS,
        ),
    ] = "all"
    allow_unboxed: Annotated[
        bool,
        Setting(
            "Whether commands are started for others where this machine has nothing to box them with.", _USERS
        ),
    ] = False
    box_paths: Annotated[
        tuple[str, ...],
        Setting(
            "Paths that every boxed program sees, read-only: where servers are installed beside the system.",
            _USERS,
        ),
    ] = ()
    key: Annotated[
        str | None, Setting("The master key itself, in place of the file in the home.", _USERS)
    ] = field(default=None, repr=False)
    key_command: Annotated[str | None, Setting("A command that prints the master key.", _USERS)] = None
    operator_token: Annotated[
        tuple[str, ...],
        Setting(
            "The operator's bearer token in place of the file in the home, the same for every process of an"
            " installation; with commas: and those that still count while it is changed.",
            _USERS,
        ),
    ] = field(default=(), repr=False)
    model: Annotated[
        str | None,
        Setting("What agents think with where they name none; with commas: and those that step in.", _AGENTS),
    ] = None
    model_fallbacks: Annotated[
        tuple[str, ...], Setting("Models that step in when the first fails.", _AGENTS)
    ] = ()
    model_first_token: Annotated[
        float,
        Setting(
            "Seconds in which a model must begin to answer; then the next steps in, or the run fails.",
            _AGENTS,
        ),
    ] = 45.0
    model_stall: Annotated[
        float, Setting("Seconds that it may pause in the middle of its answer.", _AGENTS)
    ] = 30.0
    run_tokens: Annotated[
        int, Setting("Tokens that one run may use, the runs under it included.", _AGENTS)
    ] = 200_000
    run_calls: Annotated[int, Setting("Calls that one run may make.", _AGENTS)] = 50
    run_minutes: Annotated[
        float, Setting("Minutes that one run may work; waiting for a person does not count.", _AGENTS)
    ] = 15.0
    programmatic_calling: Annotated[
        bool, Setting("Code may call what only reads, unless a tool says otherwise.", _AGENTS)
    ] = True
    defer_tools: Annotated[
        Deferral,
        Setting("Whether a model gets a tool only once it was found; auto: beyond the tool budget.", _AGENTS),
    ] = "auto"
    tool_budget: Annotated[
        int, Setting("Tokens that all tools together may take before they are deferred.", _AGENTS)
    ] = 10_000
    search_embedder: Annotated[
        str | None,
        Setting(
            "What search compares meanings with (`openai:text-embedding-3-small`); it is sent tools' texts.",
            _AGENTS,
        ),
    ] = None
    rollout_share: Annotated[
        float | None,
        Setting(
            "Percent of users who reach connectors through their agents, compared with all others; unset, all"
            " do. `USE_MCP_AGENTS` says it in a word.",
            _ROLLOUT,
        ),
    ] = None
    rollout_workspaces: Annotated[tuple[str, ...], Setting("Workspaces that do in any case.", _ROLLOUT)] = ()
    rollout_users: Annotated[tuple[str, ...], Setting("Users who do in any case.", _ROLLOUT)] = ()
    rollout_sample: Annotated[int, Setting("Fewest runs of each way that are compared.", _ROLLOUT)] = 20
    rollout_hours: Annotated[float, Setting("Hours whose runs are compared.", _ROLLOUT)] = 24.0
    request_timeout: Annotated[
        float, Setting("Seconds that a call may take where its connector says nothing else.", _RESOURCES)
    ] = 60.0
    approval_wait: Annotated[
        float,
        Setting(
            "Seconds that a call waits for a person; by MCP at most 45, unless its client asks.", _RESOURCES
        ),
    ] = 120.0
    client_approvals: Annotated[
        bool,
        Setting(
            "Whether MCP clients that can ask their person (elicitation) ask them for approval.", _RESOURCES
        ),
    ] = True
    hooks: Annotated[
        tuple[str, ...],
        Setting(
            "What looks at every call, result and list, with commas: `secrets, injection, size 65536`.",
            _RESOURCES,
        ),
    ] = ()
    hook_secret: Annotated[str | None, Setting("What requests to webhooks are signed with.", _RESOURCES)] = (
        field(default=None, repr=False)
    )
    keep_audit_days: Annotated[float, Setting("Days that the audit trail is kept.", _RESOURCES)] = 365.0
    max_servers: Annotated[int, Setting("Most open connections at once.", _RESOURCES)] = 64
    max_spawns: Annotated[int, Setting("Most programs that start at once.", _RESOURCES)] = 4
    keep_results_days: Annotated[float, Setting("Days that results are kept.", _RESOURCES)] = 7.0
    keep_calls_days: Annotated[float, Setting("Days that the records of calls are kept.", _RESOURCES)] = 30.0
    native_tools: Annotated[
        tuple[str, ...],
        Setting("Tools of this machine to turn on: read_file, write_file, grep, terminal.", _TOOLS),
    ] = ()
    tools_root: Annotated[Path | None, Setting("The directory that those tools see.", _TOOLS)] = None
    configuration: Annotated[
        Path | None, Setting("A `dragoman.toml`, read at every start and watched.", _FILES)
    ] = None
    action_servers: Annotated[
        Path | None, Setting("An `action_servers.json`, read at every start and watched.", _FILES)
    ] = None
    agent_configs: Annotated[
        Path | None, Setting("A folder of agents, read at every start and watched.", _FILES)
    ] = None
    discovery: Annotated[
        Discovery,
        Setting("Who may search the registry of MCP servers: nobody, people, or agents too.", _FILES),
    ] = "manual"
    registry_url: Annotated[str, Setting("Which registry is asked.", _FILES)] = (
        "https://registry.modelcontextprotocol.io"
    )
    registry_follow: Annotated[
        tuple[str, ...],
        Setting(
            "Namespaces of the registry, where discovery is automatic: their servers appear as connectors"
            " that are disabled; after `io.github.acme enable` they are not.",
            _FILES,
        ),
    ] = ()
    otlp_endpoint: Annotated[
        str | None,
        Setting(
            "A collector that spans are sent to by OTLP over HTTP: `http://127.0.0.1:4318`. With the extra"
            " `otel` also by `OTEL_EXPORTER_OTLP_ENDPOINT`.",
            _RESOURCES,
        ),
    ] = None
    log_level: Annotated[str, Setting("What is logged on stderr.", _RESOURCES)] = "warning"
    log_json: Annotated[bool, Setting("Whether each line of the log is JSON.", _RESOURCES)] = False

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
        if (collector := environment.get(OTLP_ENDPOINT)) and extras.is_installed("otel"):
            given.setdefault("otlp_endpoint", collector)
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
    kind = float if kind == float | None else kind
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
    if get_origin(kind) is tuple:
        words = tuple(part.strip() for part in value.split(",") if part.strip())
        known = get_args(get_args(kind)[0])
        if known and (not words or not set(words) <= set(known)):
            raise InvalidConfig(f"{variable} must be some of {', '.join(known)}, not {value!r}")
        return tuple(one for one in known if one in words) if known else words
    return Path(value).expanduser() if "Path" in str(kind) else value
