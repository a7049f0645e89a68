"""Which tool a request means, by words, by meaning and by what its verb does; or that none fits.

Basic matching: arithmetic over words, no language model. When in doubt, what only reads wins.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np

from dragoman.agents.offline.grammar import (
    CHANGES,
    PRONOUNS,
    RECENT,
    ROLES,
    Deed,
    deeds_of,
    opening,
    word_set,
)
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.tools import Candidate, Embedder
from dragoman.agents.offline.values import Kind, Value, values_in
from dragoman.catalog.search.words import name_key, parts, stem, telling_words

_WORDS, _MEANING, _SCOPE = 0.55, 0.35, 0.10
_SAME_VERB, _SAME_DEED = 0.14, 0.08
_OTHER_CHANGE, _DOUBT, _CONTRARY = -0.12, -0.12, -0.30
_FITS, _FITS_NOT = 0.03, -0.06
_PASSED_ON = -0.12  # who can do it at once is better than who passes it on
# Found on the cases of the tests: a request is answered when enough of what it speaks of is in the tool,
# or less of it and the meaning is near, or the meaning alone is very near.
ENOUGH_WORDS = 0.34
_SOME_WORDS, _NEAR = 0.12, 0.36
_VERY_NEAR = 0.52
_UNNAMED = 0.6  # what an unknown name of a thing weighs beside a word
LITERAL: frozenset[Kind] = frozenset(
    {"quoted", "url", "address", "datetime", "date", "time", "path", "number"}
)
_READS: frozenset[Deed] = frozenset({"read"})
_DELETES: frozenset[Deed] = frozenset({"delete"})
_VAGUE = word_set(
    "thing things stuff information info data detail details item items summary overview result results"
    " findings output digest list answer new one ones first second third fourth fifth"
)


_ANNOUNCES = re.compile(
    r"\s(?:called|named|titled|entitled|labelled|labeled|saying|says|reading)\s|:\s", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Request:
    """One clause as matching reads it."""

    text: str
    values: tuple[Value, ...]
    verb: str
    deeds: frozenset[Deed]
    nouns: Mapping[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def of(cls, text: str) -> "Request":
        values = tuple(values_in(text))
        verb, deeds = opening(text)
        plain = _without(text, [value for value in values if value.kind in LITERAL | {"handle", "tag"}])
        plain = _before_text(plain)
        named = {
            part for value in values if value.kind in ("name", "code") for part in parts(str(value.value))
        }
        nouns: dict[str, float] = {}
        for word in telling_words(plain):
            if word == verb or word in RECENT or word in PRONOUNS or word in _VAGUE or word in ROLES:
                continue
            weight = 0.5 if deeds_of(word) and not nouns.get(stem(word)) else 1.0
            nouns[stem(word)] = min(weight, _UNNAMED) if word in named else weight
        return cls(text, values, verb, deeds, nouns)


@dataclass(frozen=True, slots=True)
class Match:
    candidate: Candidate
    score: float
    words: float
    meaning: float
    by_verb: bool = False
    """The request names nothing but its verb, which is the tool's, and the tool takes every value in it."""
    rarity: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def fits(self) -> bool:
        return (
            self.by_verb
            or self.words >= ENOUGH_WORDS
            or (self.words >= _SOME_WORDS and self.meaning >= _NEAR)
            or self.meaning >= _VERY_NEAR
        )


def ranked(request: Request, candidates: Sequence[Candidate], words: Embedder) -> list[Match]:
    """The best first; what would do the contrary of what the verb says is left out."""
    fit = [one for one in candidates if not _is_contrary(request, one)]
    if not fit:
        return []
    rarity = _rarity(request, candidates)
    vector = words.of(_before_text(request.text[:600]))
    meanings = np.array([one.meaning for one in fit]) @ vector
    scopes = np.array([one.scope for one in fit]) @ vector
    matches = [
        _match(request, one, rarity, float(meanings[place]), float(scopes[place]))
        for place, one in enumerate(fit)
    ]
    return sorted(matches, key=lambda match: -match.score)


def _match(
    request: Request, candidate: Candidate, rarity: Mapping[str, float], meaning: float, scope: float
) -> Match:
    weights = candidate.weights
    total = sum(rarity.values())
    found = sum(weight * _said(weights[term]) for term, weight in rarity.items() if term in weights)
    mentioned = candidate.mentions & rarity.keys()
    shares_deed = bool(request.deeds & candidate.deeds & CHANGES)
    same_verb = bool(request.verb) and stem(request.verb) == candidate.verb
    if found or same_verb or (shares_deed and len(mentioned) > 1 and mentioned >= rarity.keys()):
        # Names of things that the tool takes count once something else speaks for the tool.
        found += sum(rarity[term] for term in mentioned - weights.keys())
    share = found / total if total else 0.0
    score = _WORDS * share + _MEANING * max(0.0, meaning) + _SCOPE * max(0.0, scope)
    score += _deed(request, candidate) + _arguments(request, candidate)
    score += _PASSED_ON if candidate.given else 0.0
    return Match(candidate, score, share, meaning, _is_by_verb(request, candidate), rarity)


def _is_by_verb(request: Request, candidate: Candidate) -> bool:
    if request.nouns or not request.verb or stem(request.verb) != candidate.verb:
        return False
    kinds: set[Kind] = {value.kind for value in request.values if value.kind in LITERAL}
    return all(any(accepts(one, kind) for one in candidate.parameters) for kind in kinds)


def _said(weight: float) -> float:
    """A word that occurs at all says most of what it can say."""
    return 0.4 + 0.6 * weight


def _rarity(request: Request, candidates: Sequence[Candidate]) -> dict[str, float]:
    count = len(candidates)
    found: dict[str, float] = {}
    for term, weight in request.nouns.items():
        holding = sum(1 for one in candidates if term in one.weights or term in one.mentions)
        found[term] = weight * (0.4 + log(1 + (count - holding + 0.5) / (holding + 0.5)) / log(2 * count + 2))
    return found


def _deed(request: Request, candidate: Candidate) -> float:
    if not request.deeds:
        return _DOUBT if candidate.deeds and not candidate.deeds & {"read"} else 0.0
    if request.verb and stem(request.verb) == candidate.verb:
        return _SAME_VERB
    if not candidate.deeds:
        return 0.0
    if request.deeds & candidate.deeds:
        return _SAME_DEED if len(request.deeds) == 1 or request.deeds & candidate.deeds & CHANGES else 0.0
    both_change = request.deeds & CHANGES and candidate.deeds & CHANGES
    return _OTHER_CHANGE if both_change else _CONTRARY


def _is_contrary(request: Request, candidate: Candidate) -> bool:
    """Nothing is changed for who asks to read, nothing but removed for who asks to remove."""
    if not request.deeds or not candidate.deeds or (request.verb and stem(request.verb) == candidate.verb):
        return False
    if request.deeds == _READS:
        return not candidate.deeds & {"read"}
    if "read" not in request.deeds and candidate.deeds == _READS:
        return True
    return request.deeds == _DELETES and not candidate.deeds & {"delete", "update", "run"}


def _arguments(request: Request, candidate: Candidate) -> float:
    kinds: set[Kind] = {value.kind for value in request.values if value.kind in LITERAL}
    return sum(
        _FITS if any(accepts(one, kind) for one in candidate.parameters) else _FITS_NOT for kind in kinds
    )


def accepts(parameter: Parameter, kind: Kind) -> bool:
    """Whether a value of this kind can be given to the parameter at all."""
    if kind == "number":
        return parameter.takes_number or parameter.is_identifier
    return parameter.takes_text


def named(request: Request, candidates: Sequence[Candidate]) -> Candidate | None:
    """A tool whose name, of more than one word, stands in the request as it is written in code."""
    if "_" not in request.text and "-" not in request.text:
        return None
    spelled = {name_key(word) for word in request.text.split() if "_" in word or "-" in word}
    for one in candidates:
        if (
            one.given is None
            and len(parts(one.title)) > 1
            and {name_key(one.title), name_key(one.name)} & spelled
        ):
            return one
    return None


def _before_text(text: str) -> str:
    """Without what is announced as a text of its own: its words say nothing of what is to be done.

    `create a task named start the agent` is about a task. Kept whole where nothing else would be left.
    """
    for announced in _ANNOUNCES.finditer(text):
        head = text[: announced.end()]
        if len(telling_words(text[: announced.start()])) > 1:
            return head
    return text


def _without(text: str, values: Sequence[Value]) -> str:
    for value in values:
        text = text[: value.start] + " " * (value.end - value.start) + text[value.end :]
    return text
