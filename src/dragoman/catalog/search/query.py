"""What search is asked and what it answers: frozen values, and the checks that need no index."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from dragoman.errors import InvalidArguments
from dragoman.names import did_you_mean
from dragoman.tool import Tool

Strategy = Literal["hybrid", "bm25", "semantic", "regex"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
MOST_HITS = 100
_LONGEST = 4_000
_LONGEST_PATTERN = 500
_FOLDERS = re.compile(r"(?<![\w/:.~\\-])(?:[A-Za-z]:)?[~.]*[/\\](?:[^\s/\\{}<>]+[/\\]){2,}(?=[^\s/\\])")


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What somebody looks for among the tools."""

    text: str
    strategy: Strategy = "hybrid"
    limit: int = 10

    @property
    def spoken(self) -> str:
        """What of it is compared with texts: of a path only the name, as where a file lies says nothing of
        what is to be done.
        """
        return _FOLDERS.sub("", self.text)

    @classmethod
    def checked(cls, text: str, strategy: str, limit: int) -> "SearchQuery":
        """The question, or `InvalidArguments` that says how to ask instead."""
        if strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            near = did_you_mean(strategy[:100], [*STRATEGIES])
            raise InvalidArguments(
                f"there is no search strategy {strategy[:100]!r}",
                hint=f"{near} known: {known}" if near else f"use one of: {known}",
            )
        if not text.strip():
            raise InvalidArguments(
                "the query is empty", hint="say in a few words what the tool should do: send an email"
            )
        most = _LONGEST_PATTERN if strategy == "regex" else _LONGEST
        if len(text) > most:
            raise InvalidArguments(
                f"a query may have at most {most:,} characters, this one has {len(text):,}",
                hint="say in one sentence what the tool should do; search once per step of a longer task",
            )
        if not 1 <= limit <= MOST_HITS:
            raise InvalidArguments(
                f"limit must be between 1 and {MOST_HITS}, not {limit}", hint="10 is usually enough"
            )
        return cls(text.encode("utf-8", "replace").decode(), strategy, limit)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """`score` orders the hits of one answer; it means nothing beside that of another."""

    tool: Tool
    score: float


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The best first. `total` is how many tools were searched: all that the caller could call.

    The `question` has the strategy that was used: `bm25` in place of `hybrid` where the extra `vectors` is
    not installed.

    `embedder` is whose vectors told what the texts mean; None: those that come with Dragoman, or none.
    """

    question: SearchQuery
    hits: tuple[SearchHit, ...]
    total: int
    embedder: str | None = None

    @property
    def summary(self) -> str:
        return f"{len(self.hits):,} of {self.total:,}"
