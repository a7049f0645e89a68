"""What one caller can find: the tools of the lists that this caller reads, and their rows in the index.

Put together from whole lists, so that a change in one costs nothing for the others.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dragoman.scope import Caller, Way
from dragoman.tool import Tool

Rows = NDArray[np.intp]


class ListedTools:
    """One list of the catalog, and the row of each of its tools."""

    def __init__(self, tools: tuple[Tool, ...], rows: Sequence[int]) -> None:
        self.tools = tools
        self.rows = np.array(rows, np.intp)
        self._ways: dict[Way, ListedTools] = {}

    def callable_by(self, caller: Caller) -> "ListedTools":
        """The part that this caller can call; often that is all of it."""
        if caller.grants:
            return self._part(caller)
        if caller.way not in self._ways:
            self._ways[caller.way] = self._part(caller)
        return self._ways[caller.way]

    def _part(self, caller: Caller) -> "ListedTools":
        places = [place for place, tool in enumerate(self.tools) if is_callable(tool, caller)]
        if len(places) == len(self.tools):
            return self
        return ListedTools(tuple(self.tools[place] for place in places), self.rows[places].tolist())


class SearchView:
    """Its places count through all lists, in the order in which they were given."""

    def __init__(self, lists: Sequence[ListedTools]) -> None:
        self._lists = lists
        self._starts = [0, *accumulate(len(one.tools) for one in lists)]
        self.rows: Rows = np.concatenate([one.rows for one in lists]) if lists else np.zeros(0, np.intp)

    def __len__(self) -> int:
        return len(self.rows)

    def tool_at(self, place: int) -> Tool:
        number = bisect_right(self._starts, place) - 1
        return self._lists[number].tools[place - self._starts[number]]

    def places_of(self, rows: Sequence[int]) -> list[int]:
        """Where these rows stand here; those that the caller may not see stand nowhere."""
        return np.flatnonzero(np.isin(self.rows, rows)).tolist() if rows else []


def is_callable(tool: Tool, caller: Caller) -> bool:
    """What cannot be called is not worth finding."""
    if not tool.enabled or not tool.is_open_to(caller.way):
        return False
    return not caller.grants or caller.may_use(tool.slug, tool.name, tool.required_capabilities)
