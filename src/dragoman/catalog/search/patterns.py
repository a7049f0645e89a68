"""Search by a regular expression. RE2 runs it: its time grows with the text and never explodes.

That is why look-around and back-references are refused: they are what RE2 gives up for it.
"""

from collections.abc import Iterable
from heapq import nsmallest
from typing import Any

import re2  # pyright: ignore[reportMissingTypeStubs]

from dragoman.catalog.search.documents import document_of
from dragoman.catalog.search.query import SearchHit
from dragoman.errors import InvalidArguments
from dragoman.tool import Tool

# A hit in the name says more than one in the small print.
_NAME, _PUBLIC_NAME, _DESCRIPTION, _PARAMETERS = 1.0, 0.5, 0.4, 0.2
_MOST_MEMORY = 1 << 22


class Pattern:
    def __init__(self, text: str) -> None:
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
