"""A configured source of tools: what people write, checked, and the stored record of it.

A configuration holds no secret: tokens, secret headers and secret variables live in the vault under
the names listed in `secrets`. `Configuration.split` takes them apart at the door.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from dragoman.errors import InvalidConfig
from dragoman.scope import Isolation

Kind = Literal["mcp", "openapi", "native"]
Transport = Literal["stdio", "sse", "http"]
Pin = Literal["off", "warn", "block"]
Era = Literal["2025", "2026"]
Policy = Literal["never", "default", "always"]
Origin = Literal["files", "operator", "people"]

_SECRET_NAME = re.compile(
    r"token|secret|passw|api[-_]?key|private|credential|authorization|cookie", re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class RetryPolicy(_Frozen):
    """For one call, and only for what is safe to repeat. Reconnecting has a backoff of its own."""

    tries: int = Field(default=3, ge=1, le=10)
    delay: float = Field(default=1.0, ge=0, le=300)
    factor: float = Field(default=2.0, ge=1, le=10)
    cap: float = Field(default=30.0, ge=0, le=600)


class Auth(_Frozen):
    """How a remote server knows us. The token itself is in the vault as `auth`, OAuth's tokens as `oauth`.

    OAuth finds out by itself what it needs; a client, an issuer and scopes can be given where it cannot.
    A client's secret is in the vault as `oauth_client`.
    """

    kind: Literal["none", "bearer", "apikey", "basic", "oauth"] = "none"
    header: str = Field(default="X-API-Key", pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
    place: Literal["header", "query", "cookie"] = "header"
    flow: Literal["code", "client_credentials"] = "code"
    client_id: str | None = Field(default=None, max_length=2000)
    issuer: str | None = Field(
        default=None, max_length=2000, description="who gives the tokens, if not found"
    )
    scopes: tuple[str, ...] = ()


class Selection(_Frozen):
    """Which operations of an OpenAPI document become tools. Empty means all; `exclude` wins.

    Paths and names are patterns with `*`, as in file names.
    """

    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Configuration(_Frozen):
    """How to reach a source and how to treat it. Times are seconds."""

    kind: Kind = "mcp"
    transport: Transport | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    auth: Auth = Auth()
    openapi: str | None = Field(default=None, description="base URL, URL of a document, or a file")
    server: str | None = Field(default=None, description="where an OpenAPI service is, if not where it says")
    select: Selection = Selection()
    document_ttl: float = Field(default=300.0, ge=0, le=86400, description="how long a document is fresh")
    secrets: tuple[str, ...] = ()
    personal: tuple[str, ...] = Field(
        default=(), description="secrets that each user brings: `auth`, `env:NAME` or `header:NAME`"
    )
    connect_timeout: float = Field(default=60.0, gt=0, le=3600)
    request_timeout: float = Field(default=60.0, gt=0, le=86400)
    retry: RetryPolicy = RetryPolicy()
    idle_ttl: float = Field(default=600.0, ge=0, le=86400, description="0 keeps an idle connection open")
    max_servers: int | None = Field(
        default=None, ge=1, description="most connections of this connector at once"
    )
    max_concurrency: int = Field(default=32, ge=1, le=10000)
    shared_concurrency: int | None = Field(
        default=None, ge=1, le=10000, description="most calls at once over all processes; more are refused"
    )
    calls_per_minute: int | None = Field(default=None, ge=1, description="of everybody together")
    approval: Policy | None = Field(
        default=None, description="when a person must say yes; else the workspace's"
    )
    deferred: bool | None = Field(
        default=None, description="whether a model has to search for its tools; else as the app has it"
    )
    auto_reconnect: bool = True
    eager: bool = False
    auto_discover: bool = Field(default=True, description="list its tools by itself when none are known")
    health_interval: float = Field(default=30.0, ge=0, le=3600, description="0 turns health checks off")
    isolation: Isolation = "user"
    pin: Pin = "warn"
    cache_ttl: float = Field(
        default=0.0, ge=0, le=86400, description="result cache of read-only tools; 0 is off"
    )
    max_result_bytes: int = Field(default=256 * 1024, ge=1024)
    max_message_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)

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
    def wire(self) -> Transport:
        """The transport in force: a command speaks stdio, a url http unless it ends in /sse."""
        if self.transport:
            return self.transport
        if self.command:
            return "stdio"
        return "sse" if self.url and urlsplit(self.url).path.rstrip("/").endswith("/sse") else "http"

    @classmethod
    def checked(cls, facts: Mapping[str, Any]) -> "Configuration":
        """A configuration from what a person wrote, or `InvalidConfig` that names each field at fault."""
        try:
            return cls.model_validate(dict(facts))
        except ValidationError as error:
            problems = "; ".join(
                _problem(item) for item in error.errors(include_url=False, include_input=False)
            )
            raise InvalidConfig(
                f"the configuration is not valid: {problems}", hint=_hint_for(problems)
            ) from None


def split_secrets(
    env: Mapping[str, str], headers: Mapping[str, str], marked: frozenset[str] = frozenset()
) -> tuple[dict[str, str], dict[str, str], dict[str, SecretStr]]:
    """Open variables, open headers, and what must go to the vault as `env:NAME` or `header:NAME`.

    A value is secret when its name sounds like one or the person marked it. A value that only refers
    to the environment (`${TOKEN}`) is no secret.
    """
    secrets: dict[str, SecretStr] = {}

    def opened(values: Mapping[str, str], prefix: str) -> dict[str, str]:
        rest: dict[str, str] = {}
        for name, value in values.items():
            is_reference = (
                bool(_REFERENCE.search(value))
                and not _REFERENCE.sub("", value).removeprefix("Bearer ").strip()
            )
            if (f"{prefix}:{name}" in marked or _SECRET_NAME.search(name)) and not is_reference:
                secrets[f"{prefix}:{name}"] = SecretStr(value)
            else:
                rest[name] = value
        return rest

    return opened(env, "env"), opened(headers, "header"), secrets


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
    description: str = ""
    aliases: tuple[str, ...] = ()
    enabled: bool = True
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
