"""What one caller can find: the tools of the lists that this caller reads, and their rows in the index.

Put together from whole lists, so that a change in one costs nothing for the others.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from dragoman.scope import Caller, Way
from dragoman.tool import Tool


class ListedTools:
    """One list of the catalog, and the row of each of its tools."""

    def __init__(self, tools: Sequence[Tool], rows: Sequence[int]) -> None:
        self.tools = tools
        self.rows = array("q", rows)
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
        return ListedTools([self.tools[place] for place in places], [self.rows[place] for place in places])


class SearchView:
    """Its places count through all lists, in the order in which they were given."""

    def __init__(self, lists: Sequence[ListedTools]) -> None:
        self._lists = lists
        self.sizes = [len(one.tools) for one in lists]
        """How many places each list has."""
        self._starts = [0, *accumulate(self.sizes)]
        self.rows = array("q")
        for one in lists:
            self.rows += one.rows

    def __len__(self) -> int:
        return len(self.rows)

    def list_numbers(self, places: Iterable[int]) -> list[int]:
        """In which list each of these places is."""
        return [bisect_right(self._starts, place) - 1 for place in places]

    def tool_at(self, place: int) -> Tool:
        number = bisect_right(self._starts, place) - 1
        return self._lists[number].tools[place - self._starts[number]]

    def places_of(self, rows: Sequence[int]) -> list[int]:
        """Where these rows stand here; those that the caller may not see stand nowhere."""
        if not rows:
            return []
        wanted = {*rows}
        return [place for place, row in enumerate(self.rows) if row in wanted]


def is_callable(tool: Tool, caller: Caller) -> bool:
    """What cannot be called is not worth finding."""
    if not tool.enabled or not tool.is_open_to(caller.way):
        return False
    return not caller.grants or tool.may_be_used_by(caller)
