"""Which language model answers: the one asked for, or the best that this machine can use.

Imports no pydantic-ai until a model is opened. `Models` owns the connections of the models it opened.
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from copy import copy
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio.to_thread

from dragoman import extras
from dragoman.agents import preload
from dragoman.agents.model_clients import ModelClients, unknown_model
from dragoman.agents.providers import (
    DEFAULT_URL,
    PROVIDERS,
    GivenProvider,
    LocalModel,
    Ollama,
    Provider,
    default_model,
    find_provider,
    named_by,
    ollama_url,
)
from dragoman.connections.addresses import Network
from dragoman.errors import InvalidConfig, InvalidName, NotInstalled

if TYPE_CHECKING:
    from pydantic_ai.models import Model

OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """`names`: the model string, then those that step in when it fails. `reason` completes "because …"."""

    names: tuple[str, ...]
    reason: str
    is_offline: bool = False

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModel:
    """One line of `dragoman models`: `model` is None where nothing of this provider can be named."""

    provider: str
    model: str | None
    is_usable: bool
    why: str
    is_default: bool = False


class Models:
    """Chooses and opens models; leave its `async with` and the connections are closed.

    A model string is pydantic-ai's ("openai:gpt-5"), a registered name, or `offline`; several with commas
    between them are the model and its fallbacks. `fallbacks` belong to the configured model and to the one
    found, never to one that was wanted by name: who asks for a local model does not mean someone's cloud.
    `ollama` is its address; without one the environment says it, and "" is none at all.
    """

    def __init__(
        self,
        configured: str | None = None,
        fallbacks: Sequence[str] = (),
        *,
        environment: Mapping[str, str],
        ollama: str | None = None,
        timeout: float = 300.0,
        allowed_networks: Sequence[Network] = (),
    ) -> None:
        self._default: tuple[str, ...] = ()
        self._given: Mapping[str, GivenProvider] = {}
        self._configured = _split(configured or "")
        self._fallbacks = tuple(fallbacks)
        self._environment = environment
        self._ollama = Ollama(ollama_url(ollama, environment))
        self._clients = ModelClients(environment, self._ollama.url or DEFAULT_URL, timeout, allowed_networks)
        self._registered: dict[str, Model] = {}
        self._lifetime = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._lifetime.enter_async_context(self._clients)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._lifetime.aclose()

    def within(self, given: Sequence[GivenProvider], default: str | None = None) -> "Models":
        """The same with providers that somebody gave, and the model they chose: as a workspace has it.

        Where two go by one name the first counts. Connections are shared, and the first `Models` owns them.
        """
        seen = copy(self)
        seen._given = {one.name: one for one in reversed(given)}
        seen._given = {one.name: seen._given[one.name] for one in given}
        seen._default = _split(default or "")
        return seen

    def register(self, name: str, model: "Model") -> None:
        """From now on `name` is a model string that opens `model`, which its owner keeps and closes."""
        if not name.strip() or "," in name or name == OFFLINE:
            raise InvalidName(
                f"a model cannot be registered as {name!r}", hint="choose a name without commas"
            )
        self._registered[name] = model

    async def choose(self, wanted: str | None = None, fallbacks: Sequence[str] = ()) -> ModelChoice:
        """The first of: `wanted`, the workspace's, the configured one, a provider that was given, one whose
        key the environment has, a local Ollama, `offline`.

        `fallbacks` help whichever it is; where there is none but `offline`, they are the models.
        """
        choice = await self._choose(wanted)
        if not fallbacks:
            return choice
        return _chosen((*(() if choice.is_offline else choice.names), *fallbacks), choice.reason)

    async def _choose(self, wanted: str | None) -> ModelChoice:
        if asked := _split(wanted or ""):
            return _chosen(asked, "it was asked for")
        if self._default:
            return _chosen(self._default, "the workspace chose it")
        if self._configured:
            return _chosen((*self._configured, *self._fallbacks), "it is configured")
        for given in self._given.values():
            if given.default and _is_installed(given):
                return _chosen((given.default, *self._fallbacks), f"the key of {given.title} is kept here")
        for provider in PROVIDERS:
            if (variable := provider.key_variable(self._environment)) and provider.is_installed:
                name = default_model(provider, self._environment)
                return _chosen((name, *self._fallbacks), f"{variable} is set")
        if local := await self._find_local():
            reason = f"Ollama answers at {self._ollama.url}"
            return _chosen((f"ollama:{local.name}", *self._fallbacks), reason)
        return _chosen((OFFLINE,), "no model is configured, no key is set and no Ollama answers")

    def open(self, choice: ModelChoice) -> "Model":
        """The first that it names; `InvalidConfig` says what is wrong or missing."""
        return self.open_all(choice)[0]

    def open_all(self, choice: ModelChoice) -> "tuple[Model, ...]":
        """The model and those that step in for it, in their order."""
        preload.load()
        opened = [self._open(name) for name in choice.names]
        if choice.is_offline:
            return tuple(opened)
        from dragoman.agents.fenced_model import FencedModel

        return tuple(map(FencedModel, opened))

    def check(self, names: str) -> None:
        """`InvalidConfig` when a model string cannot be opened. Asks no provider whether it has the model."""
        self.open(_chosen(_split(names), "it is checked"))

    async def verify(self, model: str | None, fallbacks: Sequence[str] = ()) -> None:
        """The same for what somebody is about to write down; no model at all is none that is wrong."""
        if names := ",".join(filter(None, (model, *fallbacks))):
            # In a thread: the first look at a model string imports pydantic-ai.
            await anyio.to_thread.run_sync(self.check, names)

    async def list(self) -> Sequence[FoundModel]:
        """All that was looked at, in the order of choice, with the reason for each.

        Without the extra none can be used, and each says so.
        """
        default = (await self.choose()).name
        # In a thread: the first look at a model string imports pydantic-ai.
        lines = [
            *await anyio.to_thread.run_sync(self._configured_models),
            *map(self._model_given, self._given.values()),
            *(self._model_of(one) for one in PROVIDERS if one.name not in self._given),
            *(() if "ollama" in self._given else await self._ollama_models()),
            *self._registered_models(),
        ]
        why = "plain matching, no language model"
        lines.append(FoundModel(provider="built in", model=OFFLINE, is_usable=True, why=why))
        if missing := extras.find_missing("agents"):
            why = f"{missing.message}: {missing.command_hint}"
            return [replace(line, is_usable=False, why=why) for line in lines]
        first = next((at for at, line in enumerate(lines) if line.model == default), None)
        return [replace(line, is_default=at == first) for at, line in enumerate(lines)]

    def _open(self, name: str) -> "Model":
        if name in self._registered:
            return self._registered[name]
        if name == OFFLINE:
            from dragoman.agents.offline.model import OfflineModel

            return OfflineModel()
        if ":" not in name:
            raise unknown_model(name, [*self._registered, OFFLINE])
        return self._clients.get(name, self._given.get(named_by(name.partition(":")[0])))

    async def _find_local(self) -> LocalModel | None:
        return next((model for model in await self._ollama.find() or () if model.calls_tools), None)

    def _configured_models(self) -> Sequence[FoundModel]:
        lines: list[FoundModel] = []
        chosen = dict.fromkeys(self._default, "chosen for the workspace")
        if self._configured:
            chosen = dict.fromkeys((*self._configured, *self._fallbacks), "configured") | chosen
        for name in dict.fromkeys((*self._default, *chosen)):
            known, why = find_provider(name.partition(":")[0]), chosen[name]
            line = FoundModel(
                provider=known.title if known else "configured", model=name, is_usable=True, why=why
            )
            try:
                self.check(name)
            except (InvalidConfig, NotInstalled) as flaw:
                line = replace(line, is_usable=False, why=f"{why}, but {flaw.message}")
            lines.append(line)
        return lines

    def _model_given(self, given: GivenProvider) -> FoundModel:
        line = FoundModel(
            provider=given.title, model=given.default, is_usable=True, why=f"set for {given.whose}"
        )
        if given.default is None:
            return replace(line, is_usable=False, why=f"{line.why}, without a model")
        known = find_provider(given.kind)
        if known is not None and not known.is_installed:
            why = f"{line.why}, but the package {known.package} is missing; {known.remedy}"
            return replace(line, is_usable=False, why=why)
        return line

    def _model_of(self, provider: Provider) -> FoundModel:
        variable = provider.key_variable(self._environment)
        if variable is None:
            why = f"{' or '.join(provider.keys)} is not set"
            return FoundModel(provider=provider.title, model=None, is_usable=False, why=why)
        model = default_model(provider, self._environment)
        if not provider.is_installed:
            why = f"{variable} is set, but the package {provider.package} is missing; {provider.remedy}"
            return FoundModel(provider=provider.title, model=model, is_usable=False, why=why)
        return FoundModel(provider=provider.title, model=model, is_usable=True, why=f"{variable} is set")

    async def _ollama_models(self) -> Sequence[FoundModel]:
        found = await self._ollama.find()
        if found:
            return [
                FoundModel(
                    provider="Ollama",
                    model=f"ollama:{model.name}",
                    is_usable=model.calls_tools,
                    why="installed" if model.calls_tools else "installed, but it cannot call tools",
                )
                for model in found
            ]
        why = "it is switched off" if not self._ollama.url else f"nobody answers at {self._ollama.url}"
        why = why if found is None else "it has no model yet: ollama pull"
        return [FoundModel(provider="Ollama", model=None, is_usable=False, why=why)]

    def _registered_models(self) -> Sequence[FoundModel]:
        return [
            FoundModel(provider="registered", model=name, is_usable=True, why="registered by the program")
            for name in sorted(self._registered)
        ]


def _is_installed(given: GivenProvider) -> bool:
    known = find_provider(given.kind) or find_provider("openai")
    return known is not None and known.is_installed


def _split(names: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in names.split(",") if part.strip())


def _chosen(names: tuple[str, ...], reason: str) -> ModelChoice:
    names = tuple(dict.fromkeys(names))
    if names == (OFFLINE,):
        return ModelChoice(names, reason, is_offline=True)
    if not names:
        raise InvalidConfig("no model is named", hint="a model is named provider:model, as in openai:gpt-5")
    if OFFLINE in names:
        raise InvalidConfig(
            f"{OFFLINE} cannot step in for a model that failed, nor another for it",
            hint=f"name {OFFLINE} alone, or other models only",
        )
    return ModelChoice(names, reason)
