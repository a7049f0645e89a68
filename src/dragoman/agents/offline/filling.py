"""The arguments of a call, out of a clause: named and typed values first, then what is left over.

What the clause does not say stays empty. The same clause and tool give the same arguments.
"""

from dragoman.agents.offline.draft import Draft, Filled
from dragoman.agents.offline.grammar import QUERY_NAMES, REQUEST_NAMES
from dragoman.agents.offline.named import take_listed, take_named, take_pairs
from dragoman.agents.offline.texts import take_phrases, take_quoted, take_rest
from dragoman.agents.offline.typed import take_choices, take_switches, take_typed

_WAYS = (
    take_pairs,
    take_listed,
    take_named,
    take_choices,
    take_switches,
    take_typed,
    take_quoted,
    take_phrases,
    take_rest,
)


def fill(draft: Draft) -> Filled:
    """The surest way first: what one has used, the next does not see."""
    for name, value in (draft.tool.given or {}).items():
        draft.found[(name,)] = value
    _take_requests(draft)
    for take in _WAYS:
        take(draft)
    return draft.filled()


def _take_requests(draft: Draft) -> None:
    """A tool that passes a request on gets all of it."""
    passes_on = draft.tool.given is not None or draft.tool.finds_tools
    for one in draft.open():
        asks = one.name.lower() in REQUEST_NAMES and one.takes_text and one.required
        if asks and (passes_on or one.name.lower() not in QUERY_NAMES):
            draft.found[one.path] = draft.whole or draft.sentence.text.strip()
            if passes_on:
                draft.sentence.use(0, len(draft.sentence.text))
