"""A configured source of tools: what people write, checked, and the stored record of it.

A configuration holds no secret: tokens, secret headers and secret variables live in the vault under
the names listed in `secrets`; `split_secrets` takes them apart at the door.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from dragoman.errors import InvalidConfig
from dragoman.hook_rule import HookRules
from dragoman.scope import Isolation
from dragoman.secret_recognition import (
    Masking,
    holds_secret,
    is_reference,
    is_secret_name,
    names_in,
    unmasked,
)
from dragoman.setting import Setting, settings_of

Kind = Literal["mcp", "openapi", "native"]
Transport = Literal["stdio", "sse", "http"]
Pin = Literal["off", "warn", "block"]
Era = Literal["2025", "2026"]
Policy = Literal["never", "default", "always"]
OutputCheck = Literal["off", "warn", "strict"]
Sandbox = Literal["auto", "none", "bubblewrap", "landlock", "container"]
ClientCapability = Literal["elicitation", "sampling", "roots"]
Origin = Literal["files", "operator", "people"]

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PLACE = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[1-9][0-9]{0,4}")
_PACKAGE_RUNNERS = frozenset({"npx", "uvx", "pnpx", "bunx", "pipx"})
_CONNECT_TIMEOUT = 60.0
_FIRST_INSTALL = 300.0


# The groups of settings, as forms and help show them, in this order.
WHERE = "Server"
SIGN_IN = "Sign-in"
TOOLS = "Tools"
CONNECTION = "Connection"
LIMITS = "Limits"
RESULTS = "Results"
BOX = "Box"
_PROGRAM, _SERVICE, _REMOTE = ("command",), ("openapi",), ("url", "openapi")
_SPOKEN = ("command", "url")
_ALL_WAYS = ("command", "url", "openapi")
_ADDRESSES = ("url", "openapi", "server")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _one_or_many(value: Any) -> Any:
    """A word alone, or several; none at all is `none`."""
    return (value,) if isinstance(value, str) else value or ("none",)


class RetryPolicy(_Frozen):
    """For one call, and only for what is safe to repeat. Reconnecting has a backoff of its own."""

    tries: Annotated[
        int,
        Setting(
            "How often a call that is safe to repeat is tried.", LIMITS, "owner", label="Tries of a call"
        ),
    ] = Field(default=3, ge=1, le=10)
    delay: Annotated[
        float,
        Setting("Seconds before the second try.", LIMITS, "owner", label="Wait before a second try, seconds"),
    ] = Field(default=1.0, ge=0, le=300)
    factor: Annotated[
        float,
        Setting("By how much the wait grows with each try.", LIMITS, "owner", label="Growth of the wait"),
    ] = Field(default=2.0, ge=1, le=10)
    cap: Annotated[
        float,
        Setting(
            "Seconds that a wait between tries has at most.", LIMITS, "owner", label="Longest wait, seconds"
        ),
    ] = Field(default=30.0, ge=0, le=600)


class ReconnectPolicy(_Frozen):
    """How often, and after which waits, a lost connection is tried again. A call tries at once."""

    attempts: Annotated[
        int | None,
        Setting(
            "Most failed attempts in a row, after which only a call tries again.",
            CONNECTION,
            "owner",
            label="Attempts to reconnect",
            example="no limit",
        ),
    ] = Field(default=None, ge=1)
    delay: Annotated[
        float,
        Setting(
            "Seconds before the second attempt; the first is at once.",
            CONNECTION,
            "owner",
            label="Wait before a second attempt, seconds",
        ),
    ] = Field(default=1.0, ge=0.1, le=3600)
    factor: Annotated[
        float,
        Setting(
            "By how much that wait grows with each attempt.",
            CONNECTION,
            "owner",
            label="Growth of that wait",
        ),
    ] = Field(default=2.0, ge=1, le=10)
    cap: Annotated[
        float,
        Setting(
            "Seconds that the wait between attempts has at most.",
            CONNECTION,
            "owner",
            label="Longest wait between attempts, seconds",
        ),
    ] = Field(default=30.0, ge=0.1, le=86400)


class BoxLimits(_Frozen):
    """What a program and all that it starts may use together. Sizes are megabytes."""

    memory: Annotated[
        int,
        Setting(
            "Most megabytes of memory; a program over it is ended.",
            BOX,
            "operator",
            label="Memory, MB",
            advanced=True,
            ways=_PROGRAM,
        ),
    ] = Field(default=4096, ge=16, le=1024 * 1024)
    cpu: Annotated[
        float | None,
        Setting(
            "Most seconds of processor time from start to end; a program over it is ended.",
            BOX,
            "operator",
            label="Processor time, seconds",
            advanced=True,
            example="no limit",
            ways=_PROGRAM,
        ),
    ] = Field(default=None, gt=0)
    processes: Annotated[
        int,
        Setting(
            "Most processes at once; a program over it is ended.",
            BOX,
            "operator",
            label="Processes",
            advanced=True,
            ways=_PROGRAM,
        ),
    ] = Field(default=256, ge=1, le=100_000)
    files: Annotated[
        int,
        Setting(
            "Most files that one process has open.",
            BOX,
            "operator",
            label="Open files",
            advanced=True,
            ways=_PROGRAM,
        ),
    ] = Field(default=4096, ge=16, le=1_000_000)
    disk: Annotated[
        int,
        Setting(
            "Most megabytes in its home; a program over it is ended.",
            BOX,
            "operator",
            label="Disk of its home, MB",
            advanced=True,
            ways=_PROGRAM,
        ),
    ] = Field(default=4096, ge=1, le=10 * 1024 * 1024)


class Auth(_Frozen):
    """How a remote server knows us. The token itself is in the vault as `auth`, OAuth's tokens as `oauth`.

    OAuth finds out by itself what it needs; a client, an issuer and scopes can be given where it cannot.
    A client's secret is in the vault as `oauth_client`.
    """

    kind: Annotated[
        Literal["none", "bearer", "apikey", "basic", "oauth"],
        Setting(
            "How the server knows us; a token, a key or an option of OAuth says it too.",
            SIGN_IN,
            "owner",
            label="Authentication",
            flag="--auth",
            leads=True,
            ways=_REMOTE,
            words={
                "none": "nothing",
                "bearer": "a bearer token",
                "apikey": "an API key",
                "basic": "user and password",
                "oauth": "OAuth: each user authorises",
            },
        ),
    ] = "none"
    header: Annotated[
        str,
        Setting(
            "Name of the header, parameter or cookie that an API key travels in.",
            SIGN_IN,
            "owner",
            label="Name of the header or parameter",
            flag="--api-key-header",
            when=("apikey",),
            leads=True,
            ways=_REMOTE,
        ),
    ] = Field(default="X-API-Key", pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
    place: Annotated[
        Literal["header", "query", "cookie"],
        Setting(
            "Where an OpenAPI service wants its API key.",
            SIGN_IN,
            "owner",
            label="An API key travels in",
            flag="--api-key-in",
            when=("apikey",),
            leads=True,
            ways=_REMOTE,
            words={"header": "a header", "query": "the query", "cookie": "a cookie"},
        ),
    ] = "header"
    flow: Annotated[
        Literal["code", "client_credentials"],
        Setting(
            "Who authorises: each user in a browser, or the client with rights of its own.",
            SIGN_IN,
            "owner",
            label="OAuth flow",
            flag="--oauth-flow",
            when=("oauth",),
            leads=True,
            ways=_REMOTE,
            words={
                "code": "each user authorises",
                "client_credentials": "the client itself (client credentials)",
            },
        ),
    ] = "code"
    client_id: Annotated[
        str | None,
        Setting(
            "A client that the issuer knows.",
            SIGN_IN,
            "owner",
            label="OAuth client id",
            flag="--oauth-client-id",
            when=("oauth",),
            metavar="ID",
            leads=True,
            ways=_REMOTE,
        ),
    ] = Field(default=None, max_length=2000)
    issuer: Annotated[
        str | None,
        Setting(
            "Who gives the tokens, if not found.",
            SIGN_IN,
            "owner",
            label="OAuth issuer",
            flag="--oauth-issuer",
            when=("oauth",),
            metavar="URL",
            example="https://login.example.com",
            leads=True,
            ways=_REMOTE,
        ),
    ] = Field(default=None, max_length=2000)
    scopes: Annotated[
        tuple[str, ...],
        Setting(
            "A right to ask for.",
            SIGN_IN,
            "owner",
            label="OAuth scopes",
            flag="--oauth-scope",
            when=("oauth",),
            leads=True,
            ways=_REMOTE,
        ),
    ] = ()


class Selection(_Frozen):
    """Which operations of an OpenAPI document become tools. Empty means all; `exclude` wins.

    Paths and names are patterns with `*`, as in file names.
    """

    tags: Annotated[
        tuple[str, ...],
        Setting("Only operations with this tag.", TOOLS, "owner", label="Tags", flag="--tag", ways=_SERVICE),
    ] = ()
    paths: Annotated[
        tuple[str, ...],
        Setting(
            "Only paths like /orders/*.",
            TOOLS,
            "owner",
            label="Paths",
            flag="--path",
            example="/v1/issues*",
            ways=_SERVICE,
        ),
    ] = ()
    methods: Annotated[
        tuple[str, ...],
        Setting(
            "Only this method.",
            TOOLS,
            "owner",
            label="Methods",
            flag="--method",
            example="get post",
            ways=_SERVICE,
        ),
    ] = ()
    include: Annotated[
        tuple[str, ...],
        Setting(
            "Only operations so named.",
            TOOLS,
            "owner",
            label="Operations to take",
            flag="--include",
            ways=_SERVICE,
        ),
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        Setting(
            "No operation so named.",
            TOOLS,
            "owner",
            label="Operations to leave out",
            flag="--exclude",
            ways=_SERVICE,
        ),
    ] = ()


class Configuration(_Frozen):
    """How to reach a source and how to treat it. Times are seconds."""

    # All that doors, files, rights and the documentation know of a setting stands here, with its field.
    kind: Annotated[
        Kind,
        Setting("What it is; openapi follows from a document.", WHERE, "owner", leads=True, ways=_ALL_WAYS),
    ] = "mcp"
    transport: Annotated[
        Transport | None,
        Setting(
            "How it is spoken to, where the address does not tell.",
            WHERE,
            "owner",
            advanced=True,
            leads=True,
            ways=("url",),
            words={
                "": "as the URL suggests",
                "http": "streamable HTTP",
                "sse": "SSE",
                "stdio": "stdio, for a command",
            },
        ),
    ] = None
    command: Annotated[
        str | None,
        Setting(
            "The program that is the server.",
            WHERE,
            "owner",
            label="Command with its arguments",
            flag="--",
            example="uvx mcp-server-time --local-timezone UTC",
            leads=True,
            ways=_PROGRAM,
        ),
    ] = None
    args: Annotated[
        tuple[str, ...], Setting("Its arguments.", WHERE, "owner", flag="--", leads=True, ways=_PROGRAM)
    ] = ()
    env: Annotated[
        dict[str, str],
        Setting(
            "A variable for the program; ${NAME} takes it from Dragoman's own environment.",
            WHERE,
            "owner",
            label="Environment",
            example="LOG_LEVEL=info",
            leads=True,
            ways=_PROGRAM,
        ),
    ] = Field(default_factory=dict)
    cwd: Annotated[
        str | None,
        Setting(
            "Where the program runs.",
            WHERE,
            "owner",
            label="Working directory",
            advanced=True,
            example="where it is started, if not here",
            leads=True,
            ways=_PROGRAM,
        ),
    ] = None
    sandbox: Annotated[
        Sandbox,
        Setting(
            "What keeps the program to what is its own; auto is the strongest that works on this machine.",
            BOX,
            "owner",
            label="Box",
            advanced=True,
            reserved=("none",),
            ways=_PROGRAM,
            words={
                "auto": "the strongest that works here",
                "none": "none, with the same access as Dragoman itself",
                "bubblewrap": "bubblewrap",
                "landlock": "landlock",
                "container": "a container of podman or docker",
            },
        ),
    ] = "auto"
    mounts: Annotated[
        tuple[str, ...],
        Setting(
            "A path of this machine that the program sees; read-only unless :rw follows.",
            BOX,
            "operator",
            label="Paths that it sees",
            flag="--mount",
            metavar="PATH[:rw]",
            example="~/Documents:ro",
            ways=_PROGRAM,
        ),
    ] = ()
    network: Annotated[
        tuple[str, ...],
        Setting(
            "What the program reaches: full, none, or each HOST:PORT.",
            BOX,
            "owner",
            label="Network",
            metavar="full|none|HOST:PORT",
            example="api.github.com:443",
            ways=_PROGRAM,
        ),
        BeforeValidator(_one_or_many),
    ] = ("full",)
    limits: BoxLimits = BoxLimits()
    url: Annotated[
        str | None,
        Setting(
            "The address of a remote server.",
            WHERE,
            "owner",
            label="URL",
            example="https://mcp.example.com/mcp",
            leads=True,
            ways=("url",),
        ),
    ] = None
    openapi: Annotated[
        str | None,
        Setting(
            "An OpenAPI service: its URL, its document, or a file.",
            WHERE,
            "owner",
            label="Document or service",
            metavar="WHERE",
            example="https://api.example.com/openapi.json",
            leads=True,
            ways=_SERVICE,
        ),
    ] = None
    server: Annotated[
        str | None,
        Setting(
            "Where the OpenAPI service is, if not where it says.",
            WHERE,
            "owner",
            example="https://api.example.com/v1",
            leads=True,
            ways=_SERVICE,
        ),
    ] = None
    headers: Annotated[
        dict[str, str],
        Setting(
            "Sent with every request.",
            WHERE,
            "owner",
            flag="--header",
            example="X-Team: platform",
            advanced=True,
            leads=True,
            ways=_REMOTE,
        ),
    ] = Field(default_factory=dict)
    auth: Auth = Auth()
    personal: Annotated[
        tuple[str, ...],
        Setting(
            "A secret that each user brings: auth, env:NAME or header:NAME.",
            SIGN_IN,
            "owner",
            label="What each user brings",
            advanced=True,
            metavar="NAME",
        ),
    ] = ()
    secrets: Annotated[
        tuple[str, ...], Setting("Names of what is in the vault.", SIGN_IN, "owner", derived=True)
    ] = ()
    select: Selection = Selection()
    document_ttl: Annotated[
        float,
        Setting(
            "Seconds that a document is fresh.",
            TOOLS,
            "owner",
            label="Read the document again after, seconds",
            ways=_SERVICE,
        ),
    ] = Field(default=300.0, ge=0, le=86400)
    approval: Annotated[
        Policy | None,
        Setting(
            "When a person must say yes; else as the workspace has it.",
            TOOLS,
            "narrow",
            strictness=("never", "default", "always"),
            label="Must a person say yes?",
            words={
                "": "same as the workspace",
                "never": "never",
                "default": "when a tool may change something",
                "always": "always, each time",
            },
        ),
    ] = None
    pin: Annotated[
        Pin,
        Setting(
            "What happens when a tool's definition changes.",
            TOOLS,
            "narrow",
            strictness=("off", "warn", "block"),
            label="When a tool changes",
            words={"off": "do nothing", "warn": "say so", "block": "wait for a person"},
        ),
    ] = "warn"
    deferred: Annotated[
        bool | None,
        Setting(
            "Whether models search for its tools or always have them in view; else as the app has it.",
            TOOLS,
            "owner",
            label="Must models search for its tools?",
            flag="--deferred/--in-view",
            words={"": "as the app has it", "yes": "yes: deferred", "no": "no: always in view"},
        ),
    ] = None
    hooks: Annotated[
        HookRules,
        Setting(
            "What looks at its calls, results and lists, after the app's and the workspace's hooks.",
            TOOLS,
            "owner",
            label="Hooks",
            flag="--hook",
            rows=2,
            example="secrets mask",
        ),
    ] = ()
    auto_discover: Annotated[
        bool,
        Setting(
            "List its tools by itself when none are known.", TOOLS, "owner", label="List its tools by itself"
        ),
    ] = True
    isolation: Annotated[
        Isolation,
        Setting(
            "Who has one connection together.",
            CONNECTION,
            "owner",
            label="Connections",
            words={"shared": "one for all", "user": "one for each user", "thread": "one for each thread"},
        ),
    ] = "user"
    eager: Annotated[
        bool,
        Setting(
            "Connect when Dragoman starts, or when needed.",
            CONNECTION,
            "owner",
            label="Connect when Dragoman starts",
            flag="--eager/--lazy",
        ),
    ] = False
    auto_reconnect: Annotated[
        bool, Setting("Try again in the background.", CONNECTION, "owner", label="Reconnect by itself")
    ] = True
    reconnect: ReconnectPolicy = ReconnectPolicy()
    connect_timeout: Annotated[
        float,
        Setting(
            "Seconds to connect; 300 for the first time that npx or uvx installs, unless changed.",
            CONNECTION,
            "narrow",
            label="Time to connect, seconds",
        ),
    ] = Field(default=_CONNECT_TIMEOUT, gt=0, le=3600)
    idle_ttl: Annotated[
        float,
        Setting(
            "Seconds until an idle connection closes; 0 never.",
            CONNECTION,
            "owner",
            label="Close after idle seconds",
        ),
    ] = Field(default=600.0, ge=0, le=86400)
    health_interval: Annotated[
        float,
        Setting(
            "Seconds between health checks; 0 turns them off.",
            CONNECTION,
            "owner",
            label="Health check every, seconds",
        ),
    ] = Field(default=30.0, ge=0, le=3600)
    max_servers: Annotated[
        int | None,
        Setting(
            "Most connections of this connector at once.",
            CONNECTION,
            "narrow",
            label="Connections at once",
            example="no limit",
        ),
    ] = Field(default=None, ge=1)
    client_capabilities: Annotated[
        tuple[ClientCapability, ...],
        Setting(
            "What its server may ask for during a call: elicitation, sampling, roots.",
            CONNECTION,
            "owner",
            label="The server may ask for",
            flag="--client-capability",
            ways=("command", "url"),
        ),
    ] = ("elicitation", "sampling", "roots")
    request_timeout: Annotated[
        float | None,
        Setting(
            "Seconds that a call may take without progress; else as the app has it.",
            LIMITS,
            "narrow",
            inherited=True,
            label="Time of a call, seconds",
            example="as the app has it",
        ),
    ] = Field(default=None, gt=0, le=86400)
    max_request_time: Annotated[
        float,
        Setting(
            "Seconds that a call may take in all, however much progress it makes.",
            LIMITS,
            "narrow",
            label="Time of a call with progress, seconds",
        ),
    ] = Field(default=600.0, gt=0, le=86400)
    max_concurrency: Annotated[
        int, Setting("Most calls at once.", LIMITS, "narrow", label="Calls at once")
    ] = Field(default=32, ge=1, le=10000)
    shared_concurrency: Annotated[
        int | None,
        Setting(
            "Most calls at once over all processes; more are refused.",
            LIMITS,
            "narrow",
            label="Calls at once over all processes",
            example="no limit",
        ),
    ] = Field(default=None, ge=1, le=10000)
    calls_per_minute: Annotated[
        int | None,
        Setting(
            "Most calls a minute, of everybody together.",
            LIMITS,
            "narrow",
            label="Calls a minute",
            example="no limit",
        ),
    ] = Field(default=None, ge=1)
    retry: RetryPolicy = RetryPolicy()
    cache_ttl: Annotated[
        float,
        Setting(
            "Seconds that results of read-only tools are kept; 0 is off.",
            RESULTS,
            "owner",
            label="Keep results of reading tools, seconds",
        ),
    ] = Field(default=0.0, ge=0, le=86400)
    output_check: Annotated[
        OutputCheck,
        Setting(
            "What happens to a structured result that does not fit the tool's output schema.",
            RESULTS,
            "narrow",
            strictness=("off", "warn", "strict"),
            label="When a result does not fit its schema",
            words={"off": "do nothing", "warn": "give it with a warning", "strict": "refuse it"},
        ),
    ] = "warn"
    max_result_bytes: Annotated[
        int,
        Setting(
            "Most bytes of a result that a model is shown at once.",
            RESULTS,
            "narrow",
            label="Bytes of a result",
        ),
    ] = Field(default=256 * 1024, ge=1024)
    max_message_bytes: Annotated[
        int,
        Setting("Most bytes of one message of the server.", RESULTS, "narrow", label="Bytes of a message"),
    ] = Field(default=16 * 1024 * 1024, ge=1024)
    max_tools: Annotated[
        int,
        Setting(
            "Most tools that are taken from it; the rest are left out, which its view says.",
            LIMITS,
            "narrow",
            label="Tools",
        ),
    ] = Field(default=10_000, ge=1)
    max_messages_per_second: Annotated[
        int,
        Setting(
            "Most messages a second that the server may send unasked; a connection over it is closed.",
            LIMITS,
            "narrow",
            label="Unasked messages a second",
            advanced=True,
            ways=_SPOKEN,
        ),
    ] = Field(default=1000, ge=1)
    max_bytes_per_second: Annotated[
        int,
        Setting(
            "Most bytes a second that the server may send unasked; a connection over it is closed.",
            LIMITS,
            "narrow",
            label="Unasked bytes a second",
            advanced=True,
            ways=_SPOKEN,
        ),
    ] = Field(default=1024 * 1024, ge=1024)

    @model_validator(mode="after")
    def _is_complete(self) -> "Configuration":
        if self.kind == "openapi" or self.openapi:
            return self._is_complete_service()
        if self.kind != "mcp":
            return self
        if bool(self.command) == bool(self.url):
            raise ValueError(
                "give either a command (a local server) or a url (a remote one)"
                + (", not both" if self.command else "")
            )
        if self.command and self.transport not in (None, "stdio"):
            raise ValueError(f"a command speaks stdio, not {self.transport}")
        if self.url:
            if self.transport == "stdio":
                raise ValueError("a url speaks http or sse, not stdio")
            parts = urlsplit(self.url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("the url must begin with http:// or https:// and name a host")
            if parts.username or parts.password:
                raise ValueError("the url must not hold a user or password: use --bearer or a header")
            if self.auth.place != "header":
                raise ValueError("an MCP server takes its key in a header")
            if self.env or self.args or self.cwd:
                raise ValueError("args, env and cwd belong to a command, not to a url")
        elif self.headers or self.auth.kind != "none":
            raise ValueError("headers and auth belong to a url; give a command its secrets by env")
        return self

    def _is_complete_service(self) -> "Configuration":
        if not self.openapi or self.kind != "openapi":
            raise ValueError("an OpenAPI service has kind openapi and says where its document is")
        if self.command or self.url or self.args or self.env or self.cwd or self.transport:
            raise ValueError("an OpenAPI service has no command, args, env, cwd, url or transport")
        return self

    @model_validator(mode="after")
    def _box_is_possible(self) -> "Configuration":
        if not self.command:
            if (
                self.sandbox != "auto"
                or self.mounts
                or self.network != ("full",)
                or self.limits != BoxLimits()
            ):
                raise ValueError("sandbox, mounts, network and limits belong to a command")
            return self
        if not all(self.mounts):
            raise ValueError("a mount names a path")
        if self.network in (("full",), ("none",)):
            return self
        for place in self.network:
            if place != "full" and not _PLACE.fullmatch(place):
                raise ValueError("network is full, none, or a list of HOST:PORT")
        return self

    @model_validator(mode="after")
    def _personal_is_possible(self) -> "Configuration":
        for name in self.personal:
            kind, _, word = name.partition(":")
            if name != "auth" and (kind not in ("env", "header") or not _WORD.fullmatch(word)):
                raise ValueError("what users bring is named auth, env:NAME or header:NAME")
            if (kind == "env") != bool(self.command):
                raise ValueError("a command takes env:NAME of its users, a url auth or header:NAME")
        if "auth" in self.personal and self.auth.kind == "oauth":
            raise ValueError("with OAuth nobody brings a token: each user authorises")
        if self.personal_secrets and self.isolation == "shared":
            raise ValueError("users with credentials of their own cannot share one connection")
        if self.auth.kind == "oauth" and self.auth.flow == "client_credentials" and not self.auth.client_id:
            raise ValueError("client credentials need a client: auth.client_id")
        return self

    @property
    def personal_secrets(self) -> tuple[str, ...]:
        """What each user must bring before the connector works for them."""
        is_given_by_person = self.auth.kind == "oauth" and self.auth.flow == "code"
        return (*self.personal, "oauth") if is_given_by_person else self.personal

    @property
    def installs_first(self) -> bool:
        """Whether its command may have to fetch what it runs."""
        return self.command is not None and PurePath(self.command).name in _PACKAGE_RUNNERS

    @property
    def wire(self) -> Transport:
        """The transport in force: a command speaks stdio, a url http unless it ends in /sse."""
        if self.transport:
            return self.transport
        if self.command:
            return "stdio"
        return "sse" if self.url and urlsplit(self.url).path.rstrip("/").endswith("/sse") else "http"

    @property
    def wanted_secrets(self) -> frozenset[str]:
        """Names of those that stand as `${secret:NAME}` in the arguments or the address."""
        return names_in(self._texts())

    def unmasked(self, secrets: Mapping[str, SecretStr]) -> "Configuration":
        """With every secret in its place: only where the process is started or the request is made."""
        if not self.wanted_secrets:
            return self
        texts: dict[str, Any] = {"args": tuple(unmasked(word, secrets) for word in self.args)}
        texts |= {name: unmasked(getattr(self, name) or "", secrets) or None for name in _ADDRESSES}
        return self.changed(texts)

    def changed(self, fields: Mapping[str, Any]) -> "Configuration":
        """The same with other values, not checked again; what does not differ stays as unset as it was."""
        different = {name: value for name, value in fields.items() if value != getattr(self, name)}
        return self.model_copy(update=different) if different else self

    def _texts(self) -> tuple[str, ...]:
        return (*self.args, *(getattr(self, name) or "" for name in _ADDRESSES))

    def leads_elsewhere(self, other: "Configuration") -> bool:
        """Whether another program or host may get the secrets there than here."""
        return any(one.setting.leads and one.of(self) != one.of(other) for one in settings_of(Configuration))

    @classmethod
    def checked(cls, facts: Mapping[str, Any]) -> "Configuration":
        """A configuration from what a person wrote, or `InvalidConfig` that names each field at fault."""
        return cls._validated(facts, "forbid")

    @classmethod
    def stored(cls, facts: Mapping[str, Any]) -> "Configuration":
        """One from the store, where a later version may have written fields that are not known here."""
        return cls._validated(facts, "ignore")

    @classmethod
    def _validated(cls, facts: Mapping[str, Any], extra: Literal["ignore", "forbid"]) -> "Configuration":
        try:
            return cls.model_validate(dict(facts), extra=extra)
        except ValidationError as error:
            problems = "; ".join(
                _problem(item) for item in error.errors(include_url=False, include_input=False)
            )
            raise InvalidConfig(
                f"the configuration is not valid: {problems}", hint=_hint_for(problems)
            ) from None


class GivenCredentials(_Frozen):
    """What is given beside a configuration: it goes to the vault, or says how what goes there is sent."""

    bearer: Annotated[
        SecretStr | None,
        Setting("A token for `Authorization: Bearer`; encrypted.", SIGN_IN, "owner", secret=True),
    ] = None
    api_key: Annotated[
        SecretStr | None,
        Setting("A key for the header `api_key_header`; encrypted.", SIGN_IN, "owner", secret=True),
    ] = None
    api_key_header: Annotated[
        str | None, Setting("The same as `auth.header`: X-API-Key unless said otherwise.", SIGN_IN, "owner")
    ] = None
    api_key_in: Annotated[
        Literal["header", "query", "cookie"] | None,
        Setting("The same as `auth.place`: where an OpenAPI service wants its key.", SIGN_IN, "owner"),
    ] = None
    basic: Annotated[
        SecretStr | None,
        Setting("user:password for an OpenAPI service; encrypted.", SIGN_IN, "owner", secret=True),
    ] = None
    oauth_client_secret: Annotated[
        SecretStr | None,
        Setting(
            "The secret of the client that `auth` names; encrypted. A private key signs, and is not sent.",
            SIGN_IN,
            "owner",
            secret=True,
        ),
    ] = None
    secret: Annotated[
        list[str],
        Setting(
            "Names such as `env:TOKEN` or `header:X-Key` whose values must be encrypted.", SIGN_IN, "owner"
        ),
    ] = Field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class SplitConfiguration:
    """A configuration that everybody may read, and what was in it for the vault only, by name.

    `told` says of each that was found where nobody called it a secret that it is kept as one.
    """

    configuration: Configuration
    secrets: dict[str, SecretStr]
    told: tuple[str, ...] = field(default=(), compare=False)


def split_secrets(configuration: Configuration, marked: frozenset[str] = frozenset()) -> SplitConfiguration:
    """The one place where secrets leave a configuration, whichever door it came by.

    A variable or header is secret, as `env:NAME` or `header:NAME`, when its name sounds so, when its value
    holds a secret (a password in an address, a token of a known shape) or when the person marked it. In
    arguments and addresses `${secret:NAME}` stands for what was found. A value that only refers to the
    environment (`${TOKEN}`) is no secret.
    """
    secrets: dict[str, SecretStr] = {}
    told: list[str] = []

    def opened(values: Mapping[str, str], prefix: str, kind: str) -> dict[str, str]:
        rest: dict[str, str] = {}
        for name, value in values.items():
            is_named = f"{prefix}:{name}" in marked or is_secret_name(name)
            if is_reference(value) or not (is_named or holds_secret(value, name)):
                rest[name] = value
                continue
            secrets[f"{prefix}:{name}"] = SecretStr(value)
            if not is_named:
                told.append(f"The {kind} {name} holds a secret and is kept as one")
        return rest

    masking = Masking(taken=configuration.wanted_secrets)
    after: dict[str, Any] = {
        "env": opened(configuration.env, "env", "variable"),
        "headers": opened(configuration.headers, "header", "header"),
        "args": masking.words(configuration.args),
        **{name: masking.text(getattr(configuration, name) or "", "the URL") or None for name in _ADDRESSES},
    }
    secrets |= masking.secrets
    return SplitConfiguration(configuration.changed(after), secrets, (*told, *masking.told))


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """One stored connector. `owner` is a user, or empty for one that belongs to the whole workspace.

    `origin` says who answers for its configuration: the app's files, the operator, or people by a door.
    `revision` grows with every change of the configuration or its secrets: a connection opened for an
    older one is replaced. `era`, `instructions` and `server` are what the last connection learned.
    """

    id: str
    workspace: str
    owner: str
    slug: str
    configuration: Configuration
    description: Annotated[str, Setting("What it is for.", WHERE, "narrow", strictness="any")] = ""
    aliases: Annotated[tuple[str, ...], Setting("Other names that it goes by.", WHERE, "owner")] = ()
    enabled: Annotated[
        bool, Setting("Whether its tools can be called.", WHERE, "narrow", strictness=(True, False))
    ] = True
    origin: Origin = "operator"
    revision: int = 1
    era: Era | None = None
    instructions: str | None = None
    server: Mapping[str, Any] | None = None
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def kind(self) -> Kind:
        return self.configuration.kind

    @property
    def connect_limit(self) -> float:
        """Seconds that an attempt to connect may take. A first one may install; afterwards it is there."""
        limit = self.configuration.connect_timeout
        is_first = self.era is None and self.configuration.installs_first
        return _FIRST_INSTALL if is_first and limit == _CONNECT_TIMEOUT else limit

    @property
    def lists_per_user(self) -> bool:
        """Whether users may be shown different tools, so that no list is another's."""
        return not self.owner and bool(self.configuration.personal_secrets)


def _problem(item: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in item["loc"])
    what = str(item["msg"]).removeprefix("Value error, ")
    return f"{where}: {what}" if where else what


def _hint_for(problems: str) -> str | None:
    if "command" in problems and "url" in problems:
        return "for example: dragoman connectors add time -- uvx mcp-server-time"
    return None
