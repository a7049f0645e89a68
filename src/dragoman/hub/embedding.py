"""An embedder of the app's choice for search, through pydantic-ai: `openai:text-embedding-3-small`.

pydantic-ai and the model are loaded at the first use, on a thread. `open_embeddings` owns the embedder,
its HTTP client and the task that computes the vectors of tools.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from dragoman import extras
from dragoman.agents import preload
from dragoman.background_tasks import Supervisor
from dragoman.errors import InvalidConfig

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel

    from dragoman.catalog.search.embeddings import Embeddings

# What the embedders of a provider need that Dragoman does not bring: the module, and the extra that has it.
_NEEDED: dict[str, tuple[str, str]] = {
    "sentence-transformers": ("sentence_transformers", "sentence-transformers"),
    "cohere": ("cohere", "cohere"),
    "voyageai": ("voyageai", "voyageai"),
    "google": ("google.genai", "google"),
    "google-cloud": ("google.genai", "google"),
    "bedrock": ("boto3", "bedrock"),
}


class PydanticEmbedder:
    """Fills `Embedder`. `InvalidConfig` says at once what can be known without loading anything."""

    def __init__(self, name: str) -> None:
        provider, colon, model = name.partition(":")
        if not (provider and colon and model):
            raise InvalidConfig(
                f"{name[:100]!r} is no embedder: it must name a provider and a model",
                hint="openai:text-embedding-3-small, ollama:nomic-embed-text,"
                " sentence-transformers:all-MiniLM-L6-v2",
            )
        module, extra = _NEEDED.get(provider, ("pydantic_ai", ""))
        if not extras.has_module(module):
            raise InvalidConfig(
                f"the embedder {name[:100]!r} needs the package {module}, which is not installed",
                hint=f"pip install 'pydantic-ai-slim[{extra}]'",
            )
        self._name = name
        self._model: EmbeddingModel | None = None
        self._loading = asyncio.Lock()
        self._stack = AsyncExitStack()

    @property
    def name(self) -> str:
        return self._name

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await self._embed(texts, "document")

    async def queries(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await self._embed(texts, "query")

    async def _embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Any:
        async with self._loading:
            model = self._model = self._model or await self._load()
        return (await model.embed([*texts], input_type=kind)).embeddings

    async def _load(self) -> "EmbeddingModel":
        # Seconds of importing. Who stops waiting leaves the thread at work: the next one finds it done.
        model, providers = await asyncio.to_thread(_made, self._name)
        for provider in providers:
            await self._stack.enter_async_context(provider)
        return model


@asynccontextmanager
async def open_embeddings(
    name: str | None, home: Path, supervisor: Supervisor
) -> "AsyncGenerator[Embeddings | None]":
    """None when the app names no embedder."""
    if name is None:
        yield None
        return
    extras.require("agents")
    # Imported here: numpy is for those who search.
    from dragoman.catalog.search.embeddings import Embeddings
    from dragoman.catalog.search.vector_cache import VectorCache

    async with PydanticEmbedder(name) as embedder:
        embeddings = Embeddings(embedder, VectorCache(home / "embeddings", name))
        async with supervisor.keeping(embeddings.work, "embed tools"):
            yield embeddings


def _made(name: str) -> "tuple[EmbeddingModel, list[Any]]":
    """The model, and the provider that it got: what an HTTP client belongs to."""
    preload.load()
    from pydantic_ai.embeddings import infer_embedding_model
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.providers import infer_provider

    providers: list[Any] = []

    def provider_of(word: str) -> Any:
        providers.append(infer_provider(word))
        return providers[-1]

    try:
        return infer_embedding_model(name, provider_factory=provider_of), providers
    except (UserError, ValueError, ImportError) as error:
        raise InvalidConfig(
            f"the embedder {name[:100]!r} cannot be used: {error}",
            hint="set the provider's key and address in the environment, or choose another embedder:"
            " DRAGOMAN_SEARCH_EMBEDDER",
        ) from error
