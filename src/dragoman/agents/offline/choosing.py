"""The tool for one clause: the best match that fits, also when half of its words are values for the tool."""

from collections.abc import Sequence
from datetime import date

from dragoman.agents.offline.filling import Filling
from dragoman.agents.offline.matching import ENOUGH_WORDS, LITERAL, Match, Request, named, ranked
from dragoman.agents.offline.sentence import Sentence
from dragoman.agents.offline.tools import Candidate, Listed, Reader
from dragoman.catalog.search.words import stem, telling_words

_LOOKED_AT = 4
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
        filling = Filling(match.candidate, Sentence.of(clause), today, known)
        filled = filling.fill()
        if match.fits or _explains(match, filling):
            unused = len([value for value in filling.sentence.free_values() if value.kind in LITERAL])
            fits.append((match.score + _MISSING * len(filled.missing) + _UNUSED * unused, match))
    if fits:
        best = max(fits, key=lambda pair: pair[0])[1]
        # What is missing may speak for another tool that reads, never for another that changes something.
        return best if best is fits[0][1] or best.candidate.deeds <= {"read"} else fits[0][1]
    finder = next((one for one in candidates if one.finds_tools), None)
    return Match(finder, 0.0, 0.0, 0.0) if finder is not None and telling_words(clause) else None


def _explains(match: Match, filling: Filling) -> bool:
    """Whether enough is the tool's own once the words that are values of its parameters do not count."""
    if match.words < _SOMETHING:
        return False
    sentence, own = filling.sentence, match.candidate.weights
    used = {stem(word.low) for word in sentence.words if sentence.is_used(word.start, word.end)}
    left = sum(weight for term, weight in match.rarity.items() if term not in used or term in own)
    return left > 0 and match.words * sum(match.rarity.values()) / left >= ENOUGH_WORDS
