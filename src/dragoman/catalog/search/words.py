"""Text as search reads it: words split out of names, stop words left out, the rest cut to their stems.

Pure: knows no tool and no index.
"""

import re
from functools import lru_cache

from Stemmer import Stemmer

_RUN = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]")
_CLAUSE = re.compile(r"[.;:,?!\n]+|\b(?:and|then|but|also|so|because|after|before|while)\b", re.IGNORECASE)
_KEY = re.compile(r"[\W_]+")
_STOP_WORDS = frozenset(
    "a about above after again all also am an and any are aren as at be because been before being below"
    " between both but by can cannot could couldn d did didn do does doesn doing don down during each few"
    " for from further had has hasn have haven having he her here hers him his how i if in into is isn it"
    " its itself just ll m may me might more most must my myself no nor not now of off on once only or"
    " other our ours out over own please re s same shall she should so some such t than thank thanks that"
    " the their theirs them then there these they this those through to too under until up upon us ve very"
    " want wants was wasn we were what when where which while who whom whose why will with would you your"
    " yours need needs like help let tell know".split()
)


def parts(text: str) -> list[str]:
    """The words as they are written, in lower case; camelCase and snake_case are split.

    A word of mixed case comes whole as well: `GitHub` is git, hub and github.
    """
    found: list[str] = []
    for run in _RUN.findall(text):
        if run.islower() or run.isdecimal():
            found.append(run) if run.isalpha() else found.extend(_PART.findall(run))
            continue
        pieces = [piece.lower() for piece in _PART.findall(run)]
        found.extend(pieces)
        if len(pieces) > 1:
            found.append(run.lower())
    return found


def terms(text: str) -> list[str]:
    """What the index compares: the stems of all words that carry meaning."""
    return [stem for word in parts(text) if word not in _STOP_WORDS and (stem := _stem(word))]


def clauses(text: str) -> list[str]:
    """The steps of a long question, at least two, each with something to look for; otherwise nothing."""
    found = [clause.strip() for clause in _CLAUSE.split(text)]
    found = [clause for clause in found if len(terms(clause)) > 1]
    return found if len(found) > 1 else []


def name_key(name: str) -> str:
    """The same for every spelling of one name: `getTime`, `get_time`, `get time`."""
    return _KEY.sub("", name).lower()


@lru_cache(maxsize=1)
def _stemmer() -> Stemmer:
    return Stemmer("english")


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    return _stemmer().stemWord(word)
