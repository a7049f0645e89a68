"""Opens a model by its string, over connections that are shared by all models of a provider.

`ModelClients` owns one HTTP client per provider and closes it. Keys and addresses come from a provider that
was given, or else from the environment, never from both, and are told to nobody. pydantic-ai is imported on
first use: it takes seconds.
"""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from difflib import get_close_matches
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from dragoman.agents.providers import COMPATIBLE, OLLAMA, PROVIDERS, GivenProvider, Provider, find_provider
from dragoman.connections.addresses import Network
from dragoman.errors import InvalidConfig
from dragoman.remote_data import BodyTooLarge

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider as ProviderClient

SURVEY = "`dragoman models` shows what can be used; DRAGOMAN_MODEL chooses one"
_CONNECT_WITHIN = 5.0
_LARGEST = 32 * 1024 * 1024  # bytes of one answer, after decompression
# Their SDKs want another kind of client than ours, and make one for themselves.
_WITH_CLIENTS_OF_THEIR_OWN = frozenset({"google", "groq", "mistral", "xai"})


class ModelClients:
    """`allowed` are networks around that guarded requests may reach all the same."""

    def __init__(
        self, environment: Mapping[str, str], ollama: str, timeout: float, allowed: Sequence[Network] = ()
    ) -> None:
        self._environment = environment
        self._ollama = ollama
        self._timeout = timeout
        self._allowed = allowed
        self._providers: dict[tuple[str, GivenProvider | None], ProviderClient[Any]] = {}
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._providers.clear()
        await self._opened.aclose()

    def get(self, name: str, given: GivenProvider | None = None) -> "Model":
        """The model of this string, by the provider that was `given`; `InvalidConfig` says what is wrong or
        missing. Asks no provider.
        """
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model

        prefix, _, model = name.partition(":")
        # pydantic-ai's own "test" calls every tool it is given: nobody's tools may meet it by accident.
        if not prefix.strip() or not model.strip():
            raise unknown_model(name)
        try:
            if prefix == "openai-chat" or (given is not None and given.kind == COMPATIBLE):
                return self._chat_model(model, given)
            return infer_model(name, provider_factory=partial(self._get_provider, given=given))
        except ImportError:
            raise _missing_package(name, find_provider(prefix)) from None
        except UserError as error:
            raise InvalidConfig(
                f"the model {name} cannot be used: {_first_sentence(error)}", hint=SURVEY
            ) from None

    def _chat_model(self, model: str, given: GivenProvider | None) -> "Model":
        """Chat completions say why they end: a stream that does not is broken, whoever passed it on."""
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.profiles.openai import OpenAIModelProfile

        whole = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
        return OpenAIChatModel(model, provider=self._get_provider("openai-chat", given), profile=whole)

    def _get_provider(self, prefix: str, given: GivenProvider | None) -> "ProviderClient[Any]":
        key = (prefix, given)
        if key not in self._providers:
            opened = self._providers[key] = self._connected(prefix, given)
            self._opened.push_async_callback(_close, opened)
        return self._providers[key]

    def _connected(self, prefix: str, given: GivenProvider | None) -> "ProviderClient[Any]":
        from pydantic_ai.providers import infer_provider, infer_provider_class

        try:
            kind = infer_provider_class(prefix)
        except ValueError:
            raise _unknown_provider(prefix) from None
        if given is not None:
            return self._with_client(kind, prefix, _options(given), is_guarded=given.is_guarded)
        if prefix == OLLAMA:
            key = self._environment.get("OLLAMA_API_KEY")
            return self._with_client(kind, prefix, {"base_url": f"{self._ollama}/v1", "api_key": key})
        known = find_provider(prefix)
        if known is None:
            return infer_provider(prefix)
        options = {"api_key": self._key(known), "base_url": known.address(self._environment)}
        return self._with_client(kind, prefix, {name: value for name, value in options.items() if value})

    def _key(self, provider: Provider) -> str:
        if key := provider.key(self._environment):
            return key
        if provider.name == "openai" and provider.has_own_address(self._environment):
            return "none"  # a server of one's own that resembles OpenAI's often wants no key
        variable = " or ".join(provider.keys)
        raise InvalidConfig(
            f"{provider.title} needs a key, and {variable} is not set",
            hint=f"dragoman models add {provider.name}; or set {variable} where Dragoman runs",
        )

    def _with_client(
        self,
        kind: "type[ProviderClient[Any]]",
        prefix: str,
        options: dict[str, Any],
        *,
        is_guarded: bool = False,
    ) -> "ProviderClient[Any]":
        import httpx2
        from pydantic_ai.models import create_async_httpx2_client

        make = cast(Any, kind)
        if prefix in _WITH_CLIENTS_OF_THEIR_OWN:
            return make(**options)
        transport = None
        if is_guarded:
            from dragoman.agents.guarded_transport import GuardedTransport

            transport = GuardedTransport(self._allowed)
        timeout = httpx2.Timeout(self._timeout, connect=_CONNECT_WITHIN)
        client = create_async_httpx2_client(timeout=timeout, transport=transport)
        client.event_hooks["response"].append(_limit_body)
        self._opened.push_async_callback(client.aclose)
        return make(**options, http_client=client)


def _options(given: GivenProvider) -> dict[str, Any]:
    """All that the client is told: what is left out, an SDK takes from the environment."""
    known = find_provider(given.kind)
    address = given.url or (known.base_url if known else None)
    if given.kind == OLLAMA:
        address = f"{(given.url or '').rstrip('/').removesuffix('/v1')}/v1"
    key = given.key.get_secret_value() if given.key else "none"
    return {"api_key": key, **({"base_url": address} if address else {})}


async def _limit_body(response: "httpx2.Response") -> None:
    """Whoever reads a body, as a whole or as events, does so by `aiter_bytes`: a megabyte at most at once."""
    import httpx2

    unlimited = response.aiter_bytes

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncGenerator[bytes]:
        size = 0
        async with aclosing(unlimited(chunk_size)) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > _LARGEST:
                    raise httpx2.ReadError("the answer is too large") from BodyTooLarge.beyond(_LARGEST)
                yield piece

    response.aiter_bytes = aiter_bytes


def unknown_model(name: str, others: Collection[str] = ()) -> InvalidConfig:
    """`name` means nothing here; says what may have been meant."""
    from pydantic_ai.models import known_model_names

    known = [*others, *known_model_names()]
    # "gpt-5" is meant as "openai:gpt-5": the best known provider that has exactly this model.
    owners = [f"{provider.name}:{name}" for provider in PROVIDERS if f"{provider.name}:{name}" in known]
    close = [*owners, *get_close_matches(name, known, 1)]
    hint = f"did you mean {close[0]}? " if close else "a model is named provider:model, as in openai:gpt-5. "
    return InvalidConfig(f"there is no model {name!r}", hint=hint + SURVEY)


def _unknown_provider(prefix: str) -> InvalidConfig:
    close = get_close_matches(prefix, [provider.name for provider in PROVIDERS], 1)
    hint = f"did you mean {close[0]}? " if close else "a model is named provider:model, as in openai:gpt-5. "
    return InvalidConfig(f"there is no provider {prefix!r}", hint=hint + SURVEY)


def _missing_package(name: str, known: Provider | None) -> InvalidConfig:
    prefix = name.partition(":")[0]
    remedy = known.remedy if known else f'install it: pip install "pydantic-ai-slim[{prefix}]"'
    package = f"the package {known.package}" if known else "a package"
    return InvalidConfig(f"the model {name} needs {package}, which is not installed", hint=remedy)


def _first_sentence(error: Exception) -> str:
    """What pydantic-ai says of it, without its advice on testing."""
    return str(error).partition(" To try Pydantic AI")[0].partition(". ")[0].rstrip(".")[:300]


async def _close(provider: "ProviderClient[Any]") -> None:
    """Entering and leaving closes a client that the provider made for itself; one that it was given stays."""
    async with provider:
        pass
