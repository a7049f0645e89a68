"""Search as the hub sees it: one index per workspace, built at the first question, then kept up.

Building and asking happen on a worker thread, so that no call waits for them. Nothing heavy (numpy,
the table of vectors) is imported before the first question.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from dragoman.catalog.search.answers import Found, Question
from dragoman.catalog.shelf import ListKey
from dragoman.scope import Caller
from dragoman.tool import Tool

if TYPE_CHECKING:
    from dragoman.catalog.search.vectors import WordVectors
    from dragoman.catalog.search.workspace import WorkspaceSearch


class Searchable(Protocol):
    """The catalog, as far as search knows it: lists that are replaced whole, under a version."""

    @property
    def version(self) -> int: ...
    def lists(self, workspace: str) -> Mapping[ListKey, tuple[Tool, ...]]: ...
    def readable(self, caller: Caller, connector_id: str | None = None) -> Sequence[ListKey]: ...
    def find(self, name: str, caller: Caller) -> Tool | None: ...


@dataclass(frozen=True, slots=True)
class Moment:
    """What one question needs of the catalog, taken at one moment."""

    version: int
    lists: Mapping[ListKey, tuple[Tool, ...]]
    readable: Sequence[ListKey]
    named: Tool | None


class Search:
    def __init__(self, catalog: Searchable) -> None:
        self._catalog = catalog
        # One thread at a time: others that wait here take none from the pool that all share. A question
        # that is given up leaves its thread at work, hence the second lock.
        self._turn = asyncio.Lock()
        self._lock = Lock()
        self._words: WordVectors | None = None
        self._workspaces: dict[str, WorkspaceSearch] = {}

    async def find(self, question: Question, caller: Caller, connector_id: str | None = None) -> Found:
        """What the caller may see and call, the best first."""
        catalog = self._catalog
        moment = Moment(
            version=catalog.version,
            lists=catalog.lists(caller.workspace),
            readable=catalog.readable(caller, connector_id),
            named=catalog.find(question.text.strip(), caller),
        )
        search = self._by_pattern if question.strategy == "regex" else self._by_index
        async with self._turn:
            return await asyncio.to_thread(search, question, moment, caller)

    def _by_pattern(self, question: Question, moment: Moment, caller: Caller) -> Found:
        from dragoman.catalog.search.patterns import Pattern
        from dragoman.catalog.search.view import is_callable

        pattern = Pattern(question.text)
        lists = (moment.lists.get(key, ()) for key in moment.readable)
        tools = [tool for tools in lists for tool in tools if is_callable(tool, caller)]
        return Found(question, tuple(pattern.ranked(tools, question.limit)), len(tools))

    def _by_index(self, question: Question, moment: Moment, caller: Caller) -> Found:
        from dragoman.catalog.search.vectors import WordVectors
        from dragoman.catalog.search.workspace import WorkspaceSearch

        with self._lock:
            words = self._words = self._words or WordVectors.load()
            workspace = self._workspaces.get(caller.workspace)
            if workspace is None:
                workspace = self._workspaces[caller.workspace] = WorkspaceSearch(words)
            return workspace.find(question, moment, caller)
