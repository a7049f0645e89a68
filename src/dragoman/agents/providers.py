"""The model providers that Dragoman finds by a key in the environment, best known first, or is given.

A table and what follows from it. Any other provider of pydantic-ai works too, once a model string names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio
from pydantic import SecretStr

from dragoman.loading import LateModule, ready
from dragoman.remote_data import parse_json, read_body

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LateModule("aiohttp")

DEFAULT_URL = "http://127.0.0.1:11434"
# One that is there takes a connection at once; on a busy machine its answer may take longer.
_PATIENCE = {"total": 1.0, "sock_connect": 0.3}  # seconds
_REMEMBERED = 10.0
_MOST_MODELS = 30
_LARGEST = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LocalModel:
    name: str
    calls_tools: bool


class Ollama:
    """One Ollama at `url`; an empty `url` is none. A machine that does not answer has no models."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = anyio.Lock()
        self._asked_at: float | None = None
        self._found: tuple[LocalModel, ...] | None = None

    async def find(self) -> tuple[LocalModel, ...] | None:
        """Its models, the last used or pulled first; None when nobody answers."""
        async with self._lock:
            if self._asked_at is None or monotonic() - self._asked_at > _REMEMBERED:
                self._found = await self._ask() if self.url else None
                self._asked_at = monotonic()
            return self._found

    async def _ask(self) -> tuple[LocalModel, ...] | None:
        await ready("aiohttp")
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(**_PATIENCE)) as session:
                async with session.get(f"{self.url}/api/tags") as answer:
                    names = _names(await _table(answer)) if answer.status == 200 else None
                return None if names is None else await self._described(session, names[:_MOST_MODELS])
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError):
            return None

    async def _described(self, session: "aiohttp.ClientSession", names: list[str]) -> tuple[LocalModel, ...]:
        able: dict[str, bool] = {}

        async def describe(name: str) -> None:
            try:
                async with session.post(f"{self.url}/api/show", json={"model": name}) as answer:
                    told = await _table(answer)
            except (aiohttp.ClientError, TimeoutError, ValueError):
                return
            able[name] = _calls_tools(told)

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(describe, name)
        return tuple(LocalModel(name, able.get(name, False)) for name in names)


def ollama_url(given: str | None, environment: Mapping[str, str]) -> str:
    """Where Ollama is: `given`, else what OLLAMA_BASE_URL or OLLAMA_HOST say in any of their spellings."""
    if given == "":
        return ""
    url = given or environment.get("OLLAMA_BASE_URL") or environment.get("OLLAMA_HOST") or DEFAULT_URL
    url = url if "://" in url else f"http://{url}"
    parts = urlsplit(url)
    host = parts.hostname or "127.0.0.1"
    # What a server listens on is not where a client connects to.
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    port = _port(parts.netloc) or (443 if parts.scheme == "https" else 11434)
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/').removesuffix('/v1')}"


def _port(netloc: str) -> int | None:
    _, _, port = netloc.rpartition(":")
    return int(port) if port.isdigit() else None


async def _table(answer: "aiohttp.ClientResponse") -> Any:
    return parse_json(await read_body(answer, _LARGEST))


def _names(told: Any) -> list[str] | None:
    """None when this is no Ollama."""
    if not isinstance(told, dict):
        return None
    models = cast(dict[str, Any], told).get("models")
    if not isinstance(models, list):
        return None
    entries = [cast(dict[str, Any], entry) for entry in cast(list[Any], models) if isinstance(entry, dict)]
    return [name for entry in entries if isinstance(name := entry.get("model") or entry.get("name"), str)]


def _calls_tools(told: Any) -> bool:
    """By what it states; an older Ollama states nothing, but its template speaks of tools or does not."""
    if not isinstance(told, dict):
        return False
    facts = cast(dict[str, Any], told)
    if isinstance(capabilities := facts.get("capabilities"), list):
        return "tools" in capabilities
    return ".Tools" in str(facts.get("template", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """`model` is what a key alone gets; `package` must be installed, by the extra of that name if it is not.

    `base_url` goes with `base_url_variable`: where requests go unless the variable says otherwise.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    model: str
    package: str = "openai"
    extra: str = "openai"
    base_url_variable: str | None = None
    base_url: str | None = None

    def key(self, environment: Mapping[str, str]) -> str | None:
        return next((environment[name] for name in self.keys if environment.get(name)), None)

    def key_variable(self, environment: Mapping[str, str]) -> str | None:
        return next((name for name in self.keys if environment.get(name)), None)

    def address(self, environment: Mapping[str, str]) -> str | None:
        given = environment.get(self.base_url_variable) if self.base_url_variable else None
        return given or self.base_url

    def has_own_address(self, environment: Mapping[str, str]) -> bool:
        return bool(self.base_url_variable and environment.get(self.base_url_variable))

    @property
    def is_installed(self) -> bool:
        try:
            return find_spec(self.package) is not None
        except ModuleNotFoundError:  # the parent of a dotted name is missing
            return False

    @property
    def remedy(self) -> str:
        return f'install it: pip install "pydantic-ai-slim[{self.extra}]"'


PROVIDERS = (
    Provider(
        name="openai",
        title="OpenAI",
        keys=("OPENAI_API_KEY",),
        model="openai:gpt-6.1-terra",
        base_url_variable="OPENAI_BASE_URL",
        base_url="https://api.openai.com/v1",
    ),
    Provider(
        name="anthropic",
        title="Anthropic",
        keys=("ANTHROPIC_API_KEY",),
        model="anthropic:claude-sonnet-5-5",
        package="anthropic",
        extra="anthropic",
        base_url_variable="ANTHROPIC_BASE_URL",
        base_url="https://api.anthropic.com",
    ),
    Provider(
        name="google",
        title="Google",
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        model="google:gemini-flash-latest",
        package="google.genai",
        extra="google",
    ),
    Provider(
        name="openrouter",
        title="OpenRouter",
        keys=("OPENROUTER_API_KEY",),
        model="openrouter:anthropic/claude-sonnet-5.5",
    ),
    Provider(
        name="groq",
        title="Groq",
        keys=("GROQ_API_KEY",),
        model="groq:openai/gpt-oss-120b",
        package="groq",
        extra="groq",
    ),
    Provider(
        name="mistral",
        title="Mistral",
        keys=("MISTRAL_API_KEY",),
        model="mistral:mistral-large-latest",
        package="mistralai",
        extra="mistral",
    ),
    Provider(name="deepseek", title="DeepSeek", keys=("DEEPSEEK_API_KEY",), model="deepseek:deepseek-v4-pro"),
    Provider(
        name="xai",
        title="xAI",
        keys=("XAI_API_KEY",),
        model="xai:grok-4.7",
        package="xai_sdk",
        extra="xai",
    ),
    Provider(
        name="moonshotai", title="Moonshot AI", keys=("MOONSHOTAI_API_KEY",), model="moonshotai:kimi-k3"
    ),
    Provider(name="cerebras", title="Cerebras", keys=("CEREBRAS_API_KEY",), model="cerebras:gpt-oss-120b"),
)
# Two names for one provider: which of its protocols to speak.
_PROTOCOLS = {"openai-chat": "openai", "openai-responses": "openai"}


def find_provider(prefix: str) -> Provider | None:
    """The provider of a model string's first part."""
    name = named_by(prefix)
    return next((provider for provider in PROVIDERS if provider.name == name), None)


def default_model(provider: Provider, environment: Mapping[str, str]) -> str:
    """What its key alone gets. Servers that only resemble OpenAI's know its older protocol, not the newer."""
    if provider.name == "openai" and provider.has_own_address(environment):
        return provider.model.replace("openai:", "openai-chat:", 1)
    return provider.model


OLLAMA, COMPATIBLE = "ollama", "openai-compatible"
# Requests to an address that somebody gives go through a client of ours, which these take.
_AT_ANY_ADDRESS = frozenset({"openai", "anthropic", OLLAMA, COMPATIBLE})


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """What can be set of a provider: `needs_url` where it is nowhere by itself, `takes_url` where it may be
    elsewhere. `model` is what is asked where none is named.
    """

    name: str
    title: str
    takes_url: bool
    needs_url: bool
    needs_key: bool
    model: str | None


KINDS: Mapping[str, ProviderKind] = {
    kind.name: kind
    for kind in (
        *(
            ProviderKind(
                one.name, one.title, one.name in _AT_ANY_ADDRESS, False, True, one.model.partition(":")[2]
            )
            for one in PROVIDERS
        ),
        ProviderKind(OLLAMA, "Ollama", True, True, False, None),
        ProviderKind(COMPATIBLE, "OpenAI-compatible", True, True, False, None),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenProvider:
    """A provider with the key that somebody gave for it; nothing of it comes from the environment.

    `is_guarded`: requests may not lead into the network around. `whose` completes "its key is kept …".
    """

    name: str
    kind: str
    url: str | None
    key: SecretStr | None
    model: str | None
    is_guarded: bool
    whose: str

    @property
    def title(self) -> str:
        kind = KINDS[self.kind]
        return kind.title if self.name == self.kind else f"{self.name} ({kind.title})"

    @property
    def default(self) -> str | None:
        """The model string that this provider alone gets."""
        model = self.model or KINDS[self.kind].model
        if model is None:
            return None
        # What only resembles OpenAI's knows its older protocol, not the newer.
        return f"openai-chat:{model}" if self.kind == "openai" and self.url else f"{self.name}:{model}"


def named_by(prefix: str) -> str:
    """The provider that the first part of a model string names."""
    return _PROTOCOLS.get(prefix, prefix)
