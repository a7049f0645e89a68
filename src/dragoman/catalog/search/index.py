"""The tools of one workspace as search holds them: a row each, and three legs that score rows.

Follows the catalog list by list; only what changed is read again. Knows no caller: who asks brings
the lists that may be seen. Not for two threads at once.
"""

import time
from array import array
from collections.abc import Iterable, Mapping

from dragoman.catalog.connector_tools import ListKey
from dragoman.catalog.search.documents import document_of
from dragoman.catalog.search.embedded_rows import EmbeddedRows
from dragoman.catalog.search.embeddings import Embeddings
from dragoman.catalog.search.fusion import Scores
from dragoman.catalog.search.postings import Postings
from dragoman.catalog.search.vectors import WIDTH, VectorRows, WordVectors
from dragoman.catalog.search.view import ListedTools, Rows, SearchView
from dragoman.catalog.search.words import name_key, parts, terms
from dragoman.scope import Caller
from dragoman.tool import Tool

ToolLists = Mapping[ListKey, tuple[Tool, ...]]
_SLICE = 0.002  # seconds of work before other threads get a turn


class SearchIndex:
    def __init__(self, words: WordVectors, embeddings: Embeddings | None = None) -> None:
        self.words = words
        self.embedded = EmbeddedRows(embeddings) if embeddings else None
        self.postings = Postings()
        self._descriptions = VectorRows(WIDTH)
        # Half the width says as much of connector and parameters, and spares a quarter of time and memory.
        self._parameters = VectorRows(WIDTH // 2)
        self._lists: dict[ListKey, ListedTools] = {}
        self._names: dict[str, tuple[int, ...]] = {}
        self._free = array("q")
        self._end = 0

    def follow(self, lists: ToolLists) -> None:
        """Makes the index what the catalog is. Lists are compared by identity: they never change inside."""
        for key in self._lists.keys() - lists.keys():
            self._replace(key, ())
        for key, tools in lists.items():
            known = self._lists.get(key)
            if known is None or known.tools is not tools:
                self._replace(key, tools)

    def view(self, keys: Iterable[ListKey], caller: Caller) -> SearchView:
        """What this caller can call, of these lists."""
        return SearchView([self._lists[key].callable_by(caller) for key in keys if key in self._lists])

    def named(self, name: str) -> tuple[int, ...]:
        """The rows of all tools whose own name this is, however it is spelled."""
        return self._names.get(name_key(name), ())

    def lexical(self, text: str) -> Scores:
        return self.postings.scores(terms(text), self._end)

    def semantic(self, text: str) -> tuple[Scores, Scores]:
        """How near the text is to name and description, and to connector and parameters."""
        vector = self.words.of(text)
        return self._descriptions.scores(vector, self._end), self._parameters.scores(vector, self._end)

    def semantic_of(self, text: str, rows: Rows) -> tuple[Scores, Scores]:
        """The same for a few rows."""
        vector = self.words.of(text)
        return self._descriptions.some(vector, rows), self._parameters.some(vector, rows)

    def _replace(self, key: ListKey, tools: tuple[Tool, ...]) -> None:
        known = self._lists.pop(key, None) or ListedTools((), ())
        pairs = zip(known.tools, known.rows.tolist(), strict=True)
        before = {tool.original_name: (tool, row) for tool, row in pairs}
        kept: dict[str, int] = {}
        for tool in tools:
            old, row = before.get(tool.original_name, (None, -1))
            if old is not None and (old is tool or old.fingerprint == tool.fingerprint != ""):
                kept[tool.original_name] = row
        for name, (tool, row) in before.items():
            if name not in kept:
                self._remove(tool, row)
        if tools:
            rows = [kept.get(tool.original_name, -1) for tool in tools]
            self._lists[key] = ListedTools(tools, [*self._added(tools, rows)])

    def _added(self, tools: Iterable[Tool], rows: Iterable[int]) -> Iterable[int]:
        since = time.perf_counter()
        for tool, row in zip(tools, rows, strict=True):
            yield row if row >= 0 else self._add(tool)
            if row < 0 and time.perf_counter() - since > _SLICE:
                time.sleep(0)
                since = time.perf_counter()

    def _add(self, tool: Tool) -> int:
        if self._free:
            row = self._free.pop()
        else:
            row, self._end = self._end, self._end + 1
        document = document_of(tool)
        self.postings.add(row, document)
        name, connector = " ".join(parts(document.name)), " ".join(parts(document.connector))
        description, parameters = f"{name}. {document.description}", f"{connector}. {document.parameters}"
        self._descriptions.put(row, self.words.of(description))
        self._parameters.put(row, self.words.of(parameters))
        if self.embedded:
            self.embedded.add(row, description, parameters)
        key = name_key(tool.original_name)
        self._names[key] = (*self._names.get(key, ()), row)
        return row

    def _remove(self, tool: Tool, row: int) -> None:
        self.postings.remove(row, document_of(tool))
        if self.embedded:
            self.embedded.remove(row)
        key = name_key(tool.original_name)
        left = tuple(other for other in self._names[key] if other != row)
        if left:
            self._names[key] = left
        else:
            del self._names[key]
        self._free.append(row)
