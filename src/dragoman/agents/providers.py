"""The model providers that Dragoman finds by a key in the environment, best known first.

A table and what follows from it. Any other provider of pydantic-ai works too, once a model string names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec


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
    name = _PROTOCOLS.get(prefix, prefix)
    return next((provider for provider in PROVIDERS if provider.name == name), None)


def default_model(provider: Provider, environment: Mapping[str, str]) -> str:
    """What its key alone gets. Servers that only resemble OpenAI's know its older protocol, not the newer."""
    if provider.name == "openai" and provider.has_own_address(environment):
        return provider.model.replace("openai:", "openai-chat:", 1)
    return provider.model
