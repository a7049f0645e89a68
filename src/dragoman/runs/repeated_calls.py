"""Calls that bring nothing new: the same tool with the same arguments, and twice the same result. Pure.

Decided by the replies in the journal alone, so whoever takes a run up again decides alike. A result that
changes is none of it; nor is a call after something new was done, such as tests that are run after each edit.
A circle of calls is found by its members: each of them repeats itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dragoman.agents.offers import OVER_LIMIT, REPEATED, ToolReply
from dragoman.errors import LimitReached

_SAME_RESULTS = 2  # that a model gets; whoever asks once more is told that they have it
_MOST_TOLD = 3  # times that a run is told so; asking once more ends it


@dataclass(frozen=True, slots=True)
class Repetition:
    """`result` is what the model has already, `key` the call that brought it last.

    `asked`: how often it was called so far; `told`: how often the model was told that it has the result.
    """

    result: ToolReply
    key: str
    asked: int
    told: int

    @property
    def handle(self) -> str:
        return self.result.call_id or self.key

    def reply(self, made: ToolReply | None = None) -> ToolReply:
        """In place of the result: of the call that was `made` and brought the same, or without making it.

        `LimitReached` where the run was told often enough.
        """
        tool = self.result.tool
        if self.told >= _MOST_TOLD:
            raise LimitReached(
                f"the agent called {tool} {self.asked + 1} times with the same arguments, and had the result"
                f" ({self.handle}) after the first",
                hint="say more precisely what you want, or choose a stronger model",
            )
        text = (
            f"You already have this result: {tool} was called with the same arguments before, and brought the"
            f" same each time (result {self.handle}). Use what you have, call something else, or answer."
        )
        return replace(made or ToolReply(content="", ok=False), content=text, code=REPEATED, contexts=())


def find_repetition(tool: str, asked: str, finished: Mapping[str, ToolReply]) -> Repetition | None:
    """What is known of a call that is about to be made; None where it may bring something new.

    `asked` is the digest of its arguments, `finished` are all calls of the run in the order of their ends.
    """
    results: list[tuple[str, ToolReply]] = []
    told = 0
    has_news = False
    known: set[tuple[str | None, str | None, str | None]] = set()
    for key, reply in finished.items():
        mark = (reply.tool, reply.asked, reply.digest)
        if reply.code == OVER_LIMIT and reply.is_refused:
            continue
        if (reply.tool, reply.asked) != (tool, asked):
            has_news |= reply.has_changed and reply.code != REPEATED and mark not in known
        elif reply.code == REPEATED:
            told, has_news = told + 1, False
        else:
            results.append((key, reply))
            told, has_news = 0, False
        known.add(mark)
    last = [reply.digest for _, reply in results[-_SAME_RESULTS:]]
    if has_news or len(last) < _SAME_RESULTS or len({*last}) > 1 or last[0] is None:
        return None
    key, result = results[-1]
    return Repetition(result, key, len(results) + told, told)
