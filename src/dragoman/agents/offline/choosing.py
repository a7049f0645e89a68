"""The tool for one clause: the best match that fits, also when half of its words are values for the tool."""

from collections.abc import Sequence
from datetime import date

from dragoman.agents.offline.draft import Draft
from dragoman.agents.offline.filling import fill
from dragoman.agents.offline.grammar import is_search
from dragoman.agents.offline.matching import ENOUGH_WORDS, LITERAL, Match, Request, named, ranked
from dragoman.agents.offline.sentence import Sentence
from dragoman.agents.offline.tools import Candidate, Listed, Reader
from dragoman.catalog.search.words import stem, telling_words

_LOOKED_AT = 4
_SHORT = 2  # words beside the verb that make a command
_SOMETHING = 0.05  # of what is spoken of must be the tool's own word
_CLOSE = 0.15  # below the best, by how much another may still be what is meant
_MISSING, _UNUSED = -0.08, -0.1


def chosen(
    clause: str, candidates: Sequence[Candidate], reader: Reader, known: Sequence[Listed], today: date
) -> Match | None:
    """None when nothing fits. A tool that is called by its name is meant; a search for tools comes last."""
    request = Request.of(clause)
    plain = [one for one in candidates if not one.finds_tools]
    by_name = named(request, plain)
    if by_name is not None:
        return Match(by_name, 1.0, 1.0, 1.0)
    order = ranked(request, plain, reader.words)[:_LOOKED_AT]
    order = [match for match in order if match.score >= order[0].score - _CLOSE]
    fits: list[tuple[float, Match]] = []
    for match in order:
        draft = Draft(match.candidate, Sentence.of(clause), today, known)
        filled = fill(draft)
        if match.fits or _explains(match, draft):
            unused = len([value for value in draft.sentence.free_values() if value.kind in LITERAL])
            fits.append((match.score + _MISSING * len(filled.missing) + _UNUSED * unused, match))
    if fits:
        best = max(fits, key=lambda pair: pair[0])[1]
        # What is missing may speak for another tool that reads, never for another that changes something.
        return best if best is fits[0][1] or best.candidate.deeds <= {"read"} else fits[0][1]
    if (command := _command(request, plain, known, today)) is not None:
        return command
    finder = next((one for one in candidates if one.finds_tools), None)
    return Match(finder, 0.0, 0.0, 0.0) if finder is not None and telling_words(clause) else None


def _command(
    request: Request, candidates: Sequence[Candidate], known: Sequence[Listed], today: date
) -> Match | None:
    """`stop mailer`: a verb that one tool alone has, and a name for what that tool needs."""
    same = [one for one in candidates if request.verb and one.verb == stem(request.verb)]
    if len(same) != 1 or not 0 < len(request.nouns) <= _SHORT or len(request.text.split()) > _SHORT + 2:
        return None
    draft = Draft(same[0], Sentence.of(request.text), today, known)
    filled = fill(draft)
    sentence = draft.sentence
    used = {stem(word.low) for word in sentence.words if sentence.is_used(word.start, word.end)}
    is_whole = not filled.missing and request.nouns.keys() <= used
    return Match(same[0], 0.0, 0.0, 0.0) if is_whole else None


def _explains(match: Match, draft: Draft) -> bool:
    """Whether enough is the tool's own once the words that are values of its parameters do not count."""
    if match.words < _SOMETHING:
        return False
    sentence, own = draft.sentence, match.candidate.weights
    # What is left over explains nothing, unless it is what a search is to look for.
    left_over = set[int]() if is_search(sentence.verb) else draft.left_over
    used = {
        stem(word.low)
        for word in sentence.words
        if sentence.is_used(word.start, word.end) and word.start not in left_over
    }
    left = sum(weight for term, weight in match.rarity.items() if term not in used or term in own)
    return left > 0 and match.words * sum(match.rarity.values()) / left >= ENOUGH_WORDS
