"""The tools of one workspace as search holds them: a row each, the words in it, and what it means.

Follows the catalog list by list; only what changed is read again. Knows no caller: who asks brings
the lists that may be seen. Not for two threads at once.
"""

import time
from array import array
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dragoman.catalog.connector_tools import ListKey
from dragoman.catalog.search.documents import document_of
from dragoman.catalog.search.finders import Finders
from dragoman.catalog.search.postings import Postings
from dragoman.catalog.search.view import ListedTools, SearchView
from dragoman.catalog.search.words import name_key, parts
from dragoman.scope import Caller
from dragoman.tool import Tool

if TYPE_CHECKING:
    from dragoman.catalog.search.meaning import RowMeanings

ToolLists = Mapping[ListKey, tuple[Tool, ...]]
_SLICE = 0.002  # seconds of work before other threads get a turn


class SearchIndex:
    """`meanings` is None where the extra for vectors is not installed: words are all that it has then.

    `end` is beyond the last row.
    """

    def __init__(self, meanings: "RowMeanings | None") -> None:
        self.meanings = meanings
        self.postings = Postings()
        self.finders = Finders()
        self.end = 0
        self._lists: dict[ListKey, ListedTools] = {}
        self._names: dict[str, tuple[int, ...]] = {}
        self._free = array("q")

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

    def _replace(self, key: ListKey, tools: tuple[Tool, ...]) -> None:
        known = self._lists.pop(key, None) or ListedTools((), ())
        pairs = zip(known.tools, known.rows, strict=True)
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
            row, self.end = self.end, self.end + 1
        document = document_of(tool)
        self.postings.add(row, document)
        self.finders.add(row, tool)
        if self.meanings:
            name, connector = " ".join(parts(document.name)), " ".join(parts(document.connector))
            self.meanings.add(row, f"{name}. {document.description}", f"{connector}. {document.parameters}")
        key = name_key(tool.original_name)
        self._names[key] = (*self._names.get(key, ()), row)
        return row

    def _remove(self, tool: Tool, row: int) -> None:
        self.postings.remove(row, document_of(tool))
        self.finders.remove(row, tool)
        if self.meanings:
            self.meanings.remove(row)
        key = name_key(tool.original_name)
        left = tuple(other for other in self._names[key] if other != row)
        if left:
            self._names[key] = left
        else:
            del self._names[key]
        self._free.append(row)
