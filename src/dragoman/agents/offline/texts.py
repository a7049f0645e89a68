"""Texts: what is quoted, what a preposition announces, and what nothing else claimed."""

from dragoman.agents.offline.draft import Draft, is_one
from dragoman.agents.offline.grammar import QUERY_NAMES, ROLES, TEXT_NAMES, TITLE_NAMES, is_search, roles_of
from dragoman.agents.offline.kinds import given
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.sentence import Phrase
from dragoman.agents.offline.values import Value
from dragoman.catalog.search.words import parts, stem

_MOST_WORDS = 4  # that a name, a place or a code has


def take_quoted(draft: Draft) -> None:
    """Quoted text by the word before it, else to what is required, else to what holds text."""
    for value in [one for one in draft.sentence.free_values() if one.kind == "quoted"]:
        options = [one for one in draft.open() if one.takes_text and not one.format]
        if not options:
            return
        best = max(options, key=lambda one: _suits_quoted(draft, one, value))
        draft.take(best, given(best, [value], draft.today), value.start, value.end)


def _suits_quoted(draft: Draft, parameter: Parameter, value: Value) -> float:
    words = draft.sentence.before(value.start, 3)
    near = {stem(word) for word in words}
    score = 2.0 if near & set(parameter.core) else 0.0
    score += next((1.0 for word in words[:2] if word in ROLES and roles_of(parameter.words, word)), 0.0)
    score += 0.8 * parameter.required - 0.6 * parameter.is_identifier
    score += 0.3 * bool(set(parameter.words) & (TEXT_NAMES | TITLE_NAMES | QUERY_NAMES))
    long = len(str(value.value).split()) > 8
    return score + 0.3 * bool(set(parameter.words) & (TEXT_NAMES if long else TITLE_NAMES | QUERY_NAMES))


def take_phrases(draft: Draft) -> None:
    """What a preposition announces, to the parameter whose part that is."""
    while True:
        pairs = [
            (_suits_phrase(draft, one, phrase), -phrase.start, one, phrase)
            for phrase in draft.sentence.phrases()
            for one in draft.open()
            if one.takes_text and not one.format
        ]
        pairs = [pair for pair in pairs if pair[0] >= (0.5 if pair[2].required else 0.6)]
        if not pairs:
            return
        _, _, parameter, phrase = max(pairs, key=lambda pair: pair[:2])
        if not draft.take(
            parameter, draft.said(parameter, _bare(draft, parameter, phrase)), phrase.start, phrase.end
        ):
            draft.sentence.use(phrase.start, phrase.end)


def _suits_phrase(draft: Draft, parameter: Parameter, phrase: Phrase) -> float:
    stems = [stem(word) for word in parts(phrase.text)]
    known = draft.tool.noun_stems
    if not _bare(draft, parameter, phrase) or all(one in known or len(one) < 2 for one in stems):
        return 0.0
    score = 0.35 * parameter.required
    if phrase.preposition in parameter.words:
        score += 0.8
    elif roles_of(parameter.words, phrase.preposition) or (
        any(is_one(one, core) for one in stems for core in parameter.core) and len(stems) > 1
    ):
        score += 0.6
    elif {*ROLES[phrase.preposition]} & {word for word in parameter.hints if len(word) > 3}:
        score += 0.2
    is_query = set(parameter.words) & QUERY_NAMES and is_search(draft.sentence.verb)
    score += 0.2 if is_query and phrase.preposition in ("for", "about", "on", "with") else 0.0
    if parameter.is_identifier and " " in phrase.text:
        score -= 0.3
    return score


def _bare(draft: Draft, parameter: Parameter, phrase: Phrase) -> str:
    """Without the name of the parameter where it stands beside its value: `the xyne project`."""
    words = phrase.text.split()
    if len(words) > 1 and any(is_one(stem(words[-1].lower()), core) for core in parameter.core):
        words = words[:-1]
    elif len(words) > 1 and any(is_one(stem(words[0].lower()), core) for core in parameter.core):
        words = words[1:]
    return " ".join(words)


def take_rest(draft: Draft) -> None:
    """What nothing claimed: to the texts that are required, or to what a search looks for."""
    required = [one for one in draft.open() if one.required and one.takes_text and not one.format]
    searched = [
        one
        for one in draft.open()
        if one.takes_text and set(one.words) & QUERY_NAMES and is_search(draft.sentence.verb)
    ]
    wanted = required or searched[:1]
    if not wanted:
        return
    rest = draft.sentence.residue(_own_words(draft))
    if len(wanted) > 1 and len(rest) == 1:
        rest = _cut(draft, rest[0], len(wanted)) or rest
    for parameter, phrase in zip(wanted, rest, strict=False):
        held = phrase if _is_wordy(draft, parameter) else _name_in(draft, phrase)
        if _is_wordy(draft, parameter) or len(held.text.split()) <= _MOST_WORDS:
            draft.take(parameter, draft.said(parameter, held.text), held.start, held.end)
            draft.left_over |= {
                word.start for word in draft.sentence.words if held.start <= word.start < held.end
            }


def _own_words(draft: Draft) -> frozenset[str]:
    """Words that speak of the tool and not of its values."""
    words = set(draft.tool.name_stems) | draft.tool.noun_stems
    words |= {core for one in draft.tool.parameters for core in one.core}
    return frozenset(words | {stem(draft.sentence.verb)})


def _cut(draft: Draft, phrase: Phrase, count: int) -> list[Phrase]:
    """As many words as there are places for them: each word is one value."""
    known = _own_words(draft) | {stem(word) for word in parts(draft.tool.summary)}
    words = [word for word in draft.sentence.words if phrase.start <= word.start < phrase.end]
    words = [word for word in words if stem(word.low) not in known and word.low not in ROLES]
    return [Phrase("", word.text, word.start, word.end) for word in words] if len(words) == count else []


def _is_wordy(draft: Draft, parameter: Parameter) -> bool:
    words = set(parameter.words)
    return not parameter.is_identifier and bool(words & (TEXT_NAMES | TITLE_NAMES | QUERY_NAMES))


def _name_in(draft: Draft, phrase: Phrase) -> Phrase:
    """The name or code in it, if there is one."""
    for value in draft.sentence.free_values():
        if value.kind in ("name", "code") and phrase.start <= value.start and value.end <= phrase.end:
            return Phrase("", str(value.value), value.start, value.end)
    return phrase
