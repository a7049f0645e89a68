"""Search as the hub sees it: one index per workspace, built at the first question, then kept up.

Building and asking happen on a worker thread, so that no call waits for them. Nothing heavy (numpy,
the table of vectors) is imported before the first question. Without numpy, the extra `vectors`, words alone
rank, and the answer says so.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from dragoman import extras
from dragoman.catalog.connector_tools import ListKey
from dragoman.catalog.search.documents import document_of
from dragoman.catalog.search.query import SearchHit, SearchQuery, SearchResults
from dragoman.errors import InvalidArguments
from dragoman.scope import Caller
from dragoman.tool import Tool

if TYPE_CHECKING:
    from dragoman.catalog.search.embeddings import Embeddings, Vectors
    from dragoman.catalog.search.meaning import RowMeanings
    from dragoman.catalog.search.vectors import WordVectors
    from dragoman.catalog.search.workspace import WorkspaceSearch


# A hit in the name says more than one in the small print.
_NAME, _PUBLIC_NAME, _DESCRIPTION, _PARAMETERS = 1.0, 0.5, 0.4, 0.2
_MOST_MEMORY = 1 << 22
# Of the terms that two texts share, and of the angle between their vectors: jobs that differ in their values
# have 0.45 and more, other jobs of the same connector mostly less than 0.4.
_NEARLY_THE_SAME = 0.45


class Pattern:
    def __init__(self, text: str) -> None:
        import re2  # pyright: ignore[reportMissingTypeStubs] - loaded by the first pattern

        engine: Any = re2
        options = engine.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = _MOST_MEMORY
        try:
            self._pattern = engine.compile(text, options)
        except engine.error as error:
            said = error.args[0].decode("utf-8", "replace")
            raise InvalidArguments(
                f"the pattern is no regular expression that can be searched with: {said[:200]}",
                hint="look-around and back-references are not known; put \\ before a sign that stands for"
                " itself; for plain words use the strategy hybrid",
            ) from None

    def ranked(self, tools: Iterable[Tool], limit: int) -> list[SearchHit]:
        """The tools that match, the best first: by where it matches, then by how much of the text."""
        hits = [SearchHit(tool, round(score, 4)) for tool in tools if (score := self._score(tool)) > 0]
        return nsmallest(limit, hits, key=lambda hit: -hit.score)

    def _score(self, tool: Tool) -> float:
        document = document_of(tool)
        score = 0.0
        for text, worth in (
            (document.name, _NAME),
            (tool.name, _PUBLIC_NAME),
            (document.description, _DESCRIPTION),
            (document.parameters, _PARAMETERS),
        ):
            if found := self._pattern.search(text):
                share = (found.end() - found.start()) / max(len(text), 1)
                score += worth * (1 + share) / 2
        return score


class Searchable(Protocol):
    """The catalog, as far as search knows it: lists that are replaced whole, under a version."""

    @property
    def version(self) -> int: ...
    def lists(self, workspace: str) -> Mapping[ListKey, tuple[Tool, ...]]: ...
    def readable(self, caller: Caller, connector_id: str | None = None) -> Sequence[ListKey]: ...
    def find(self, name: str, caller: Caller) -> Tool | None: ...


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """What one question needs of the catalog, taken at one moment."""

    version: int
    lists: Mapping[ListKey, tuple[Tool, ...]]
    readable: Sequence[ListKey]
    named: Tool | None


class Search:
    def __init__(self, catalog: Searchable, embeddings: "Embeddings | None" = None) -> None:
        self._catalog = catalog
        self._embeddings = embeddings
        # One thread at a time: others that wait here take none from the pool that all share. A question
        # that is given up leaves its thread at work, hence the second lock.
        self._turn = asyncio.Lock()
        self._lock = Lock()
        self._words: WordVectors | None = None
        self._workspaces: dict[str, WorkspaceSearch] = {}

    async def find(
        self, question: SearchQuery, caller: Caller, connector_id: str | None = None
    ) -> SearchResults:
        """What the caller may see and call, the best first."""
        if question.strategy == "semantic":
            extras.require("vectors")
        catalog = self._catalog
        # What the caller reads first: a bundle that nobody has read before is a list only then.
        readable = catalog.readable(caller, connector_id)
        moment = CatalogSnapshot(
            version=catalog.version,
            lists=catalog.lists(caller.workspace),
            readable=readable,
            named=catalog.find(question.text.strip(), caller),
        )
        if question.strategy == "regex":
            async with self._turn:
                found = await asyncio.to_thread(self._by_pattern, question, moment, caller)
        else:
            asked = await self._asked(question)
            async with self._turn:
                loop = asyncio.get_running_loop()
                found = await asyncio.to_thread(self._by_index, question, moment, caller, asked, loop)
        return found if len(caller.bundles) < 2 else self._without_rivals(found, caller)

    def _without_rivals(self, found: SearchResults, caller: Caller) -> SearchResults:
        """Each tool once, and none that cannot be called because two bundles show it in two ways."""
        hits: dict[str, SearchHit] = {}
        for hit in found.hits:
            if hit.tool.bundled is None or self._catalog.find(hit.tool.name, caller) is not None:
                hits.setdefault(hit.tool.name, hit)
        return replace(found, hits=tuple(hits.values()))

    async def nearest(self, question: str, texts: Sequence[str], limit: int) -> list[int]:
        """Which of a few texts say nearly the same as the question, by their places, the nearest first."""
        async with self._turn:
            return await asyncio.to_thread(self._nearest, question, texts, limit)

    def _nearest(self, question: str, texts: Sequence[str], limit: int) -> list[int]:
        from dragoman.catalog.search.words import likeness

        scores = [likeness(question, text) for text in texts]
        with self._lock:
            if meanings := self._meanings():
                asked = meanings.words.of(question)
                near = (float(asked @ meanings.words.of(text)) for text in texts)
                scores = [max(pair) for pair in zip(scores, near, strict=True)]
        enough = [place for place, score in enumerate(scores) if score >= _NEARLY_THE_SAME]
        return nsmallest(limit, enough, key=lambda place: -scores[place])

    async def _asked(self, question: SearchQuery) -> "Mapping[str, Vectors] | None":
        """The question and its steps as the embedder reads them; None without one."""
        if self._embeddings is None or question.strategy == "bm25":
            return None
        from dragoman.catalog.search.words import clauses

        return await self._embeddings.asked([question.spoken, *clauses(question.spoken)])

    def _by_pattern(self, question: SearchQuery, moment: CatalogSnapshot, caller: Caller) -> SearchResults:
        from dragoman.catalog.search.search import Pattern
        from dragoman.catalog.search.view import is_callable

        pattern = Pattern(question.text)
        lists = (moment.lists.get(key, ()) for key in moment.readable)
        tools = [tool for tools in lists for tool in tools if is_callable(tool, caller)]
        return SearchResults(question, tuple(pattern.ranked(tools, question.limit)), len(tools))

    def _by_index(
        self,
        question: SearchQuery,
        moment: CatalogSnapshot,
        caller: Caller,
        asked: "Mapping[str, Vectors] | None",
        loop: asyncio.AbstractEventLoop,
    ) -> SearchResults:
        from dragoman.catalog.search.workspace import WorkspaceSearch

        with self._lock:
            workspace = self._workspaces.get(caller.workspace)
            if workspace is None:
                workspace = self._workspaces[caller.workspace] = WorkspaceSearch(self._meanings())
            found = workspace.find(question, moment, caller, asked)
            if self._embeddings and workspace.to_embed:
                # From here and not after the answer: who asked may have gone by then.
                loop.call_soon_threadsafe(self._embeddings.want, workspace.to_embed)
                workspace.to_embed = {}
            return found

    def _meanings(self) -> "RowMeanings | None":
        """For a new index; None where only words can be compared."""
        if not extras.is_installed("vectors"):
            return None
        from dragoman.catalog.search.meaning import RowMeanings
        from dragoman.catalog.search.vectors import WordVectors

        self._words = self._words or WordVectors.load()
        return RowMeanings(self._words, self._embeddings)
