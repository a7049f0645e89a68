"""What `hub.connectors.add` and `update` take, for type checkers and for completion.

Made by `scripts/settings_page.py` from `Configuration` and `GivenCredentials`; a test keeps it so.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from pydantic import SecretStr


class BoxLimitsSettings(TypedDict, total=False):
    """What a program and all that it starts may use together. Sizes are megabytes."""

    memory: int | None
    """Most megabytes of memory; a program over it is ended."""

    cpu: float | None
    """Most seconds of processor time from start to end; a program over it is ended."""

    processes: int | None
    """Most processes at once; a program over it is ended."""

    files: int | None
    """Most files that one process has open."""

    disk: int | None
    """Most megabytes in its home; a program over it is ended."""


class AuthSettings(TypedDict, total=False):
    """How a remote server knows us. The token itself is in the vault as `auth`, OAuth's tokens as `oauth`."""

    kind: Literal["none", "bearer", "apikey", "basic", "oauth"] | None
    """How the server knows us; a token, a key or an option of OAuth says it too."""

    header: str | None
    """Name of the header, parameter or cookie that an API key travels in."""

    place: Literal["header", "query", "cookie"] | None
    """Where an OpenAPI service wants its API key."""

    flow: Literal["code", "client_credentials"] | None
    """Who authorises: each user in a browser, or the client with rights of its own."""

    client_id: str | None
    """A client that the issuer knows."""

    issuer: str | None
    """Who gives the tokens, if not found."""

    scopes: list[str] | tuple[str, ...] | None
    """A right to ask for."""


class SelectionSettings(TypedDict, total=False):
    """Which operations of an OpenAPI document become tools. Empty means all; `exclude` wins."""

    tags: list[str] | tuple[str, ...] | None
    """Only operations with this tag."""

    paths: list[str] | tuple[str, ...] | None
    """Only paths like /orders/*."""

    methods: list[str] | tuple[str, ...] | None
    """Only this method."""

    include: list[str] | tuple[str, ...] | None
    """Only operations so named."""

    exclude: list[str] | tuple[str, ...] | None
    """No operation so named."""


class ReconnectPolicySettings(TypedDict, total=False):
    """How often, and after which waits, a lost connection is tried again. A call tries at once."""

    attempts: int | None
    """Most failed attempts in a row, after which only a call tries again."""

    delay: float | None
    """Seconds before the second attempt; the first is at once."""

    factor: float | None
    """By how much that wait grows with each attempt."""

    cap: float | None
    """Seconds that the wait between attempts has at most."""


class RetryPolicySettings(TypedDict, total=False):
    """For one call, and only for what is safe to repeat. Reconnecting has a backoff of its own."""

    tries: int | None
    """How often a call that is safe to repeat is tried."""

    delay: float | None
    """Seconds before the second try."""

    factor: float | None
    """By how much the wait grows with each try."""

    cap: float | None
    """Seconds that a wait between tries has at most."""


class ConnectorSettings(TypedDict, total=False):
    """The settings of a connector, and the credentials that are given beside them; None sets back."""

    kind: Literal["mcp", "openapi", "native"] | None
    """What it is; openapi follows from a document."""

    transport: Literal["stdio", "sse", "http"] | None
    """How it is spoken to, where the address does not tell."""

    command: str | None
    """The program that is the server."""

    args: list[str] | tuple[str, ...] | None
    """Its arguments."""

    env: Mapping[str, str | None] | None
    """A variable for the program; ${NAME} takes it from Dragoman's own environment."""

    cwd: str | None
    """Where the program runs."""

    sandbox: Literal["auto", "none", "bubblewrap", "landlock", "container"] | None
    """What keeps the program to what is its own; auto is the strongest that works on this machine."""

    mounts: list[str] | tuple[str, ...] | None
    """A path of this machine that the program sees; read-only unless :rw follows."""

    network: list[str] | tuple[str, ...] | None
    """What the program reaches: full, none, or each HOST:PORT."""

    limits: BoxLimitsSettings | None

    url: str | None
    """The address of a remote server."""

    openapi: str | None
    """An OpenAPI service: its URL, its document, or a file."""

    server: str | None
    """Where the OpenAPI service is, if not where it says."""

    headers: Mapping[str, str | None] | None
    """Sent with every request."""

    auth: AuthSettings | None

    personal: list[str] | tuple[str, ...] | None
    """A secret that each user brings: auth, env:NAME or header:NAME."""

    select: SelectionSettings | None

    document_ttl: float | None
    """Seconds that a document is fresh."""

    approval: Literal["never", "default", "always"] | None
    """When a person must say yes; else as the workspace has it."""

    pin: Literal["off", "warn", "block"] | None
    """What happens when a tool's definition changes."""

    deferred: bool | None
    """Whether models search for its tools or always have them in view; else as the app has it."""

    hooks: list[str] | tuple[str, ...] | None
    """What looks at its calls, results and lists, after the app's and the workspace's hooks."""

    auto_discover: bool | None
    """List its tools by itself when none are known."""

    isolation: Literal["shared", "user", "thread"] | None
    """Who has one connection together."""

    eager: bool | None
    """Connect when Dragoman starts, or when needed."""

    auto_reconnect: bool | None
    """Try again in the background."""

    reconnect: ReconnectPolicySettings | None

    connect_timeout: float | None
    """Seconds to connect; 300 for the first time that npx or uvx installs, unless changed."""

    idle_ttl: float | None
    """Seconds until an idle connection closes; 0 never."""

    health_interval: float | None
    """Seconds between health checks; 0 turns them off."""

    max_servers: int | None
    """Most connections of this connector at once."""

    client_capabilities: Sequence[Literal["elicitation", "sampling", "roots"]] | None
    """What its server may ask for during a call: elicitation, sampling, roots."""

    request_timeout: float | None
    """Seconds that a call may take without progress; else as the app has it."""

    max_request_time: float | None
    """Seconds that a call may take in all, however much progress it makes."""

    max_concurrency: int | None
    """Most calls at once."""

    shared_concurrency: int | None
    """Most calls at once over all processes; more are refused."""

    calls_per_minute: int | None
    """Most calls a minute, of everybody together."""

    retry: RetryPolicySettings | None

    cache_ttl: float | None
    """Seconds that results of read-only tools are kept; 0 is off."""

    output_check: Literal["off", "warn", "strict"] | None
    """What happens to a structured result that does not fit the tool's output schema."""

    max_result_bytes: int | None
    """Most bytes of a result that a model is shown at once."""

    max_message_bytes: int | None
    """Most bytes of one message of the server."""

    max_tools: int | None
    """Most tools that are taken from it; the rest are left out, which its view says."""

    max_messages_per_second: int | None
    """Most messages a second that the server may send unasked; a connection over it is closed."""

    max_bytes_per_second: int | None
    """Most bytes a second that the server may send unasked; a connection over it is closed."""

    bearer: SecretStr | str | None
    """A token for `Authorization: Bearer`; encrypted."""

    api_key: SecretStr | str | None
    """A key for the header `api_key_header`; encrypted."""

    api_key_header: str | None
    """The same as `auth.header`: X-API-Key unless said otherwise."""

    api_key_in: Literal["header", "query", "cookie"] | None
    """The same as `auth.place`: where an OpenAPI service wants its key."""

    basic: SecretStr | str | None
    """user:password for an OpenAPI service; encrypted."""

    oauth_client_secret: SecretStr | str | None
    """The secret of the client that `auth` names; encrypted. A private key signs, and is not sent."""

    secret: list[str] | tuple[str, ...] | None
    """Names such as `env:TOKEN` or `header:X-Key` whose values must be encrypted."""
